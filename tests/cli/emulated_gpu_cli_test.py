#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole stack on a GPU, where there is none: the stand-in driver runs kernels on the CPU, and a stand-in for NVRTC
compiles them for it. The demo reads its digits, and a share of ONNX's cases (every 17th) gives the CPU's verdicts."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"])
LATHE = BUILD / "bin/lathe"
SHARE = 17


class EmulatedGpu(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.environment = os.environ | {
            "LATHE_CUDA_DRIVER": str(BUILD / "fake_cuda/libfake_cuda_driver.so"),
            "LATHE_NVRTC": str(BUILD / "fake_cuda/libnvrtc.so"),
            "LATHE_CACHE_DIR": self.folder.name}

    def run_checked(self, *command):
        result = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=self.environment)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def verdicts(self, cases, target):
        report = pathlib.Path(self.folder.name) / f"{target}.json"
        self.run_checked(LATHE, "conformance", *cases, f"--target={target}", "--noTF32", "--quiet", "--json", report)
        return {case["case"]: case["result"] for case in json.loads(report.read_text())["cases"]}

    def test_demo(self):
        output = self.run_checked(sys.executable, ROOT / "tools/demo.py", "--device=cuda")
        self.assertRegex(output, r"accuracy  9[789]\.\d+% of 360 held-out images")

    def test_conformance(self):
        subprocess.run([sys.executable, ROOT / "tools/conformance_data.py"], check=True, stdout=subprocess.DEVNULL)
        cases = sorted((ROOT / "data/conformance/node").iterdir())[::SHARE]
        cpu, cuda = self.verdicts(cases, "cpu"), self.verdicts(cases, "cuda")
        self.assertGreater(len(cpu), 50)
        self.assertEqual(cpu, cuda)

    def test_engines_are_inspected_without_a_gpu(self):
        engine = pathlib.Path(self.folder.name) / "digits.engine"
        self.run_checked(LATHE, "build", ROOT / "examples/digits/digits.onnx", "-o", engine, "--target=cuda",
                         "--buildBudget=0")
        without = {name: value for name, value in os.environ.items() if not name.startswith("LATHE_")}
        shown = subprocess.run([LATHE, "inspect", engine], capture_output=True, text=True, env=without)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("cuda-sm_90", shown.stdout)

    def test_doctor_sees_the_gpu(self):
        self.assertIn("cuda-sm_90", self.run_checked(LATHE, "doctor"))


if __name__ == "__main__":
    unittest.main()
