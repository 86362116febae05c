#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tests that docs/fusion.md names for its worked examples are there."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = (ROOT / "docs/fusion.md").read_text().partition("## Worked examples")[2]
ROWS = [line for line in EXAMPLES.splitlines() if line.startswith("| ")][2:]


class FusionPage(unittest.TestCase):
    def test_named_tests_exist(self):
        sources = "".join(path.read_text() for path in (ROOT / "tests").rglob("*_test.cpp"))
        self.assertGreater(len(ROWS), 7)
        for row in ROWS:
            cell = row.rsplit("|", 2)[1]
            tests = re.findall(r"`(\w+)\.(\w+)`(?! in)", cell.replace(".graph", "_graph"))
            cases = re.findall(r"`([^`]+)` in `(\w+\.graph)`", cell)
            self.assertTrue(tests or cases, row)
            for suite, name in tests:
                self.assertRegex(sources, rf"TEST(_F|_P)?\({suite}, {name}\)")
            for case, file in cases:
                self.assertIn(f"\ncase {case}\n", (ROOT / "tests/kernels" / file).read_text())


if __name__ == "__main__":
    unittest.main()
