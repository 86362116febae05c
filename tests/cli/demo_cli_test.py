#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make demo` does what the README says, down to the accuracy."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Demo(unittest.TestCase):
    # S62.
    def test_demo(self):
        with tempfile.TemporaryDirectory() as folder:
            result = subprocess.run([sys.executable, ROOT / "tools/demo.py", "--folder", folder], capture_output=True,
                                    text=True)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r"accuracy  9[789]\.\d+% of 360 held-out images")


if __name__ == "__main__":
    unittest.main()
