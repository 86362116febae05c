#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One engine for several machines: a GPU, other GPUs, and none."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"])
DIGITS = pathlib.Path(__file__).resolve().parents[2] / "examples/digits/digits.onnx"
FAKE = BUILD / "fake_cuda"
GPU = {"LATHE_CUDA_DRIVER": FAKE / "libfake_cuda_driver.so", "LATHE_NVRTC": FAKE / "libnvrtc.so"}
NO_GPU = {"LATHE_CUDA_DRIVER": "/nowhere/libcuda.so", "LATHE_NVRTC": GPU["LATHE_NVRTC"]}


class Targets(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        np.save(self.folder / "image.npy", np.random.default_rng(3).standard_normal((1, 1, 8, 8), np.float32))

    def lathe(self, *words, status=0, **variables):
        result = subprocess.run([str(word) for word in (BUILD / "bin/lathe", *words)], capture_output=True, text=True,
                                env=os.environ | {key: str(value) for key, value in variables.items()})
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def build(self, name, *options, **variables):
        path = self.folder / name
        self.lathe("build", DIGITS, "-o", path, "--buildBudget=0", "--noTF32", *options, **(variables or NO_GPU))
        return path

    def answer(self, engine, **variables):
        out = self.folder / "out"
        self.lathe("run", engine, f"--loadInputs=image:{self.folder / 'image.npy'}", f"--exportOutput={out}", **variables)
        return np.load(next(out.glob("*.npy")))

    def test_the_same_file_everywhere(self):
        engine = self.build("fat.engine", "--targets=sm_90,sm_80+,cpu-x86_64")
        expected = self.answer(self.build("cpu.engine", "--target=cpu-x86_64"), **NO_GPU)
        np.testing.assert_array_equal(self.answer(engine, **NO_GPU), expected)
        np.testing.assert_allclose(self.answer(engine, **GPU), expected, rtol=1e-4, atol=1e-5)
        self.lathe("inspect", engine, "--json", self.folder / "report.json", **NO_GPU)
        report = json.loads((self.folder / "report.json").read_text())
        self.assertEqual([variant["target"] for variant in report["variants"]], ["cuda-sm_90", "cuda-sm_80+", "cpu-x86_64-baseline"])

    def test_merging(self):
        names = {"sm_90": "gpu.engine", "cpu-x86_64": "cpu.engine"}
        parts = [self.build(name, f"--target={target}") for target, name in names.items()]
        self.lathe("merge", *parts, "-o", self.folder / "merged.engine")
        fat = self.build("fat.engine", f"--targets={','.join(names)}")
        self.assertEqual((self.folder / "merged.engine").read_bytes(), fat.read_bytes())
        self.assertIn("two plans are for", self.lathe("merge", parts[0], parts[0], "-o", self.folder / "x", status=1))

    # S18, S69, S72: with a runtime in it, and signed.
    def test_with_what_other_plans_have(self):
        engine = self.build("fat.engine", "--targets=sm_90,cpu-x86_64", "--versionCompatible")
        self.lathe("key", "new", self.folder / "our")
        self.lathe("sign", engine, "--key", self.folder / "our.key")
        options = (f"--loadInputs=image:{self.folder / 'image.npy'}", f"--trustedKeys={self.folder / 'our.pub'}")
        self.lathe("run", engine, "--allowHostCode", *options, **NO_GPU)
        self.lathe("run", engine, "--allowHostCode", *options, **GPU)
        self.assertIn("LATHE-4006", self.lathe("run", engine, *options, status=1, **NO_GPU))

    def test_without_a_variant_for_the_machine(self):
        engine = self.build("gpus.engine", "--targets=sm_90,sm_80")
        said = self.lathe("run", engine, f"--loadInputs=image:{self.folder / 'image.npy'}", status=1, **NO_GPU)
        self.assertIn("none of the plan's 2 variants runs here", said)
        self.assertIn("/nowhere/libcuda.so", said)


if __name__ == "__main__":
    unittest.main()
