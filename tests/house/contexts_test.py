#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Contexts are made in one place, whichever function of the interface asks for one."""
import pathlib
import re
import unittest

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "src"


class Contexts(unittest.TestCase):
    # S200, S229.
    def test_one_place_makes_contexts(self):
        calls = [f"{path.relative_to(SOURCES)}" for path in sorted((SOURCES / "api").rglob("*.cpp"))
                 for _ in re.finditer(r"(?<!> )ExecutionContext::make\(", path.read_text())]
        self.assertEqual(calls, ["api/runtime/runtime_config.cpp"])


if __name__ == "__main__":
    unittest.main()
