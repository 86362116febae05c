#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a build says of TF32 where products of float32 do not use it."""
import os
import pathlib
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"])
DIGITS = pathlib.Path(__file__).resolve().parents[2] / "examples/digits/digits.onnx"
NVRTC = BUILD / "fake_cuda/libnvrtc.so"


class Tf32(unittest.TestCase):
    def said(self, target, *options, **variables):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [str(word) for word in (BUILD / "bin/lathe", "build", DIGITS, "-o", f"{folder}/engine", "--buildBudget=0", "--verbose",
                                        f"--target={target}", *options)], capture_output=True, text=True,
                env=os.environ | {"LATHE_CUDA_DRIVER": "/nowhere/libcuda.so", "LATHE_NVRTC": str(NVRTC)} | variables)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return [line for line in (done.stdout + done.stderr).splitlines() if "TF32" in line]

    # S256: one line below compute capability 8.0, none from there on.
    def test_the_architecture(self):
        line, = self.said("sm_75")
        self.assertIn("TF32 is off, although BuilderFlag::kTF32 is set: sm_75 (Turing) has compute capability 7.5, and TF32 needs 8.0",
                      line)
        self.assertEqual(self.said("sm_80"), [])

    # S257: which condition does not hold.
    def test_the_other_conditions(self):
        line, = self.said("sm_90", "--noTF32")
        self.assertIn("TF32 is off: BuilderFlag::kTF32 is cleared", line)
        line, = self.said("sm_90", NVIDIA_TF32_OVERRIDE="0")
        self.assertIn("the environment has NVIDIA_TF32_OVERRIDE=0", line)
        self.assertEqual(self.said("sm_90", NVIDIA_TF32_OVERRIDE="1"), [])
        self.assertEqual(self.said("cpu-x86_64"), [])


if __name__ == "__main__":
    unittest.main()
