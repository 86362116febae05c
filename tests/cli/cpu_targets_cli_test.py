#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is built for another CPU does not depend on the one on which it is built: every instruction set that this machine
has, and any number of its cores, give the same plan."""
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LATHE = pathlib.Path(os.environ["LATHE_BUILD_DIR"], "bin/lathe")
DIGITS = ROOT / "examples/digits/digits.onnx"


class CpuTargets(unittest.TestCase):
    def build(self, target, level=None, cpus=None):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "network.engine")
            words = [LATHE, "build", DIGITS, "-o", path, f"--target={target}", "--optShapes=image:8x1x8x8"]
            environment = os.environ | {"LATHE_CACHE_DIR": folder} | ({"LATHE_CPU_ISA": level} if level else {})
            pin = (lambda: os.sched_setaffinity(0, cpus)) if cpus else None
            result = subprocess.run(words, capture_output=True, text=True, env=environment, preexec_fn=pin)
            self.assertEqual(result.returncode, 0, result.stderr)
            return path.read_bytes()

    # S160.
    def test_plans_for_another_cpu_are_the_same_wherever_they_are_built(self):
        foreign = "cpu-x86_64-avx2" if os.uname().machine == "aarch64" else "cpu-arm64"
        plan = self.build(foreign)
        self.assertIn(foreign.encode(), plan[:256])
        for level in ("baseline", "avx2"):
            self.assertEqual(self.build(foreign, level), plan, level)
        self.assertEqual(self.build(foreign, cpus={min(os.sched_getaffinity(0))}), plan)

    def test_targets_differ(self):
        self.assertNotEqual(self.build("cpu-x86_64"), self.build("cpu-arm64"))


if __name__ == "__main__":
    unittest.main()
