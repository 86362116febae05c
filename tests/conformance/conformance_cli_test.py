#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ONNX's own test cases at the official tolerance: none may fail or crash, each unsupported one names its reason, and no
fewer pass than passed before (FLOOR; raise it with every gain)."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LATHE = pathlib.Path(os.environ["LATHE_BUILD_DIR"], "bin/lathe")
TOTAL, FLOOR = 1914, 1517


class Conformance(unittest.TestCase):
    def test_official_cases(self):
        subprocess.run([sys.executable, ROOT / "tools/conformance_data.py"], check=True, stdout=subprocess.DEVNULL)
        with tempfile.NamedTemporaryFile(suffix=".json") as report:
            result = subprocess.run([LATHE, "conformance", ROOT / "data/conformance", f"--json={report.name}"],
                                    capture_output=True, text=True)
            self.assertTrue(json.loads(pathlib.Path(report.name).read_text()))
        lines = result.stdout.strip().splitlines()
        summary = re.fullmatch(r"passed=(\d+) failed=(\d+) unsupported=(\d+)", lines[-1] if lines else "")
        self.assertTrue(summary, result.stdout[-2000:] + result.stderr[-2000:])
        passed, failed, unsupported = map(int, summary.groups())
        print(summary[0])
        self.assertEqual(passed + failed + unsupported, TOTAL)
        self.assertEqual(failed, 0, "\n".join(line for line in lines if "fail" in line.lower())[:4000])
        self.assertGreaterEqual(passed, FLOOR)


if __name__ == "__main__":
    unittest.main()
