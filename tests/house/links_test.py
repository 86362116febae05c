#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every relative link in the documentation leads to something that exists."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


def pages():
    yield from ROOT.glob("*.md")
    for folder in ("docs", "bench", "examples", "tests", "tools", "src"):
        yield from (ROOT / folder).rglob("*.md")


class Links(unittest.TestCase):
    def test_relative_links(self):
        dead = [f"{page.relative_to(ROOT)}: {target}" for page in pages() for target in LINK.findall(page.read_text())
                if not (page.parent / target).exists()]
        self.assertEqual(dead, [])


if __name__ == "__main__":
    unittest.main()
