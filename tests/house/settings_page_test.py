#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/settings.md are those of src/api/settings.def. `settings_page_test.py --write` brings them up to date."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "src/api/settings.def"
PAGE = ROOT / "docs/settings.md"
HEADING = re.compile(r"^// ---- (.+?) -+$")
ROW = re.compile(r'^LATHE_(SETTER|VALUE)\((\w+), (\w+), (\w+), "(.*)"\)$')
EFFECTS = {"honoured": "honoured", "no_effect": "no effect", "refused": "refused"}
START = "<!-- from here on made from src/api/settings.def -->\n"


def tables():
    lines = []
    for line in TABLE.read_text().splitlines():
        if heading := HEADING.match(line):
            lines += ["", f"## {heading[1]}", "", "| setting | what becomes of it | |", "| --- | --- | --- |"]
        elif row := ROW.match(line):
            _, owner, name, effect, words = row.groups()
            lines.append(f"| `{owner}::{name}` | {EFFECTS[effect]} | {words} |")
        elif line.startswith("LATHE_"):
            raise ValueError(f"{TABLE.name}: a row in one line, please: {line}")
    return "\n".join(lines).replace("`process::", "`") + "\n"


def parts():
    head, start, rest = PAGE.read_text().partition(START)
    return head + start, rest


class SettingsPage(unittest.TestCase):
    def test_the_page_is_the_table(self):
        head, rest = parts()
        self.assertIn(START, head)
        self.assertGreater(rest.count("\n| `"), 150)
        self.assertEqual(rest, tables(), "run tests/house/settings_page_test.py --write")


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(parts()[0] + tables())
    else:
        unittest.main()
