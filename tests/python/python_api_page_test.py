# SPDX-License-Identifier: Apache-2.0
"""docs/python_api.md lists what the module has."""
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Page(unittest.TestCase):
    def test_is_up_to_date(self):
        checked = subprocess.run([sys.executable, ROOT / 'tools' / 'python_api.py', '--check', '--build',
                                  os.environ['LATHE_BUILD_DIR']], capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stderr)


if __name__ == '__main__':
    unittest.main()
