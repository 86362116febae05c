#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each row of src/base/errors.def has exactly one section in docs/errors/, of its kind and with a remedy, and vice versa."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROW = re.compile(r"^LATHE_ERROR\((\w+), (\d+), (\w+), ", re.MULTILINE)
SECTION = re.compile(r"^## LATHE-(\d+) (\w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def rows():
    text = (ROOT / "src/base/errors.def").read_text()
    return {(number, name): kind for name, number, kind in ROW.findall(text)}


def sections():
    found = {}
    for page in sorted((ROOT / "docs/errors").glob("*.md")):
        for number, name, body in SECTION.findall(page.read_text()):
            assert (number, name) not in found, f"{page.name}: LATHE-{number} has two sections"
            found[number, name] = body
    return found


class ErrorPages(unittest.TestCase):
    def test_every_code_has_its_section(self):
        self.assertGreater(len(rows()), 20)
        self.assertEqual(sorted(rows()), sorted(sections()))

    def test_sections_tell_kind_and_remedy(self):
        kinds = rows()
        for key, body in sections().items():
            self.assertTrue(body.startswith(f"Kind: {kinds[key]}. "), key)
            self.assertIn("- Remedy: ", body, key)


if __name__ == "__main__":
    unittest.main()
