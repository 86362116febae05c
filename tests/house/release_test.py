#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the last release had is still there: exported functions, places in tables, numbers of enumerators and errors. The record is
release.txt; `release_test.py --write` makes it anew, for a release of a new major version, or to take up what was added."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORD = ROOT / "tests/house/release.txt"
LIBRARIES = ("lathe", "lathe_lean", "lathe_dispatch", "lathe_10", "lathe_lean_10", "lathe_dispatch_10")
NUMBERED = re.compile(r"^(?:SLOT|SLOT_OF|VALUE|LATHE_ERROR)\((.*)\)$")


def rows(*patterns):
    for pattern in patterns:
        for path in sorted(ROOT.glob(pattern)):
            for line in path.read_text().splitlines():
                if match := NUMBERED.match(line.strip()):
                    yield [word.strip() for word in match[1].split(",")]


def numbers():
    """What the tables of the tests say, which hold the headers to them."""
    for generation, patterns in (("11", ("tests/api/slots_*.def",)), ("10", ("tests/interface/slots_*_10_16.def",))):
        for row in rows(*patterns):
            yield f"slot {generation} {row[0]} {row[1]} {row[2]}"
    for generation, pattern in (("11", "tests/api/enums.def"), ("10", "tests/api/enums_10_16.def")):
        for row in rows(pattern):
            yield f"enum {generation} {row[0]} {row[1]} {row[2]}"
    for row in rows("src/base/errors.def"):
        yield f"error {row[1]} {row[0]}"


def exported(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return [line.split()[2] for line in lines.splitlines() if line.split()[1] == "T"]


def symbols(build):
    for name in LIBRARIES:
        path = build / f"lib/lib{name}.so"
        if path.exists():
            for symbol in exported(path):
                yield f"symbol {name} {symbol}"


class Release(unittest.TestCase):
    def setUp(self):
        self.record = RECORD.read_text().splitlines()

    def kinds(self, *kinds):
        return {line for line in self.record if line.split()[0] in kinds}

    # S8.
    def test_no_number_has_changed(self):
        recorded = self.kinds("slot", "enum", "error")
        self.assertGreater(len(recorded), 1500)
        self.assertEqual(sorted(recorded - set(numbers())), [])

    # S8, S176.
    def test_no_function_is_gone(self):
        build = pathlib.Path(os.environ.get("LATHE_BUILD_DIR", ROOT / "build"))
        present = set(symbols(build))
        if not present:
            self.skipTest("the libraries are not built")
        built = {line.split()[1] for line in present}
        recorded = {line for line in self.kinds("symbol") if line.split()[1] in built}
        self.assertGreater(len(recorded), 20)
        self.assertEqual(sorted(recorded - present), [])


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        build_folder = pathlib.Path(os.environ.get("LATHE_BUILD_DIR", ROOT / "build"))
        RECORD.write_text("\n".join(sorted({*numbers(), *symbols(build_folder)})) + "\n")
    else:
        unittest.main()
