#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the README tells C++ programmers to type works: a program compiled against include/ and the library alone."""
import os
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"]).absolute()


def commands(heading):
    section = (ROOT / "README.md").read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.search(r"```\n(.*?)```", section, re.DOTALL)[1].strip().splitlines()


class Readme(unittest.TestCase):
    # S62.
    def test_from_cpp(self):
        if re.search(r"^LATHE_SANITIZE:\w+=.+$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE):
            self.skipTest("a program must be instrumented like its library")
        for command in commands("From C++"):
            # The README's build folder is this build's.
            words = re.sub(r"(?:\$PWD/|(?<=-L)|(?<= )|^)build(?=/)", str(BUILD), command)
            result = subprocess.run(words, shell=True, cwd=ROOT, capture_output=True, text=True)
            self.assertEqual(result.returncode, 0, command + result.stdout + result.stderr)
        self.assertIn("digit: 7", result.stdout)


if __name__ == "__main__":
    unittest.main()
