#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds whose compiler of device code crashes: each kernel that is lost costs a candidate and a warning, and the engine
is right. On the stand-ins for the driver and NVRTC, from the build tree and from an installed one."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"])
LATHE = BUILD / "bin/lathe"


class Compiler(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = {name: value for name, value in os.environ.items() if name != "LATHE_COMPILER"} | {
            "LATHE_CUDA_DRIVER": str(BUILD / "fake_cuda/libfake_cuda_driver.so"),
            "LATHE_NVRTC": str(BUILD / "fake_cuda/libnvrtc.so"), "LATHE_CACHE_DIR": ""}
        self.x, self.y = np.random.default_rng(1).standard_normal((2, 8, 33), np.float32)
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, self.x.shape) for name in "xyz"]
        nodes = [helper.make_node("Mul", ["x", "y"], ["m"]), helper.make_node("Relu", ["m"], ["z"])]
        graph = helper.make_graph(nodes, "network", infos[:2], infos[2:])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), self.folder / "m.onnx")
        np.save(self.folder / "x.npy", self.x)
        np.save(self.folder / "y.npy", self.y)

    def run_lathe(self, *words, lathe=LATHE, **variables):
        result = subprocess.run([str(word) for word in (lathe, *words)], capture_output=True, text=True,
                                cwd=self.folder, env=self.environment | variables)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def build_and_run(self, **variables):
        """What the build said; the engine's numbers are right."""
        said = self.run_lathe("build", "m.onnx", "-o", "m.engine", "--target=cuda", "--buildBudget=0", **variables)
        self.run_lathe("run", "m.engine", "--loadInputs=x:x.npy,y:y.npy", "--exportOutput", "out", **variables)
        np.testing.assert_allclose(np.load(self.folder / "out/z.npy"), np.maximum(self.x * self.y, 0), rtol=1e-5)
        return said

    def test_kernels_that_crash_the_compiler(self):
        self.assertNotIn("is left out", self.build_and_run())
        said = self.build_and_run(FAKE_NVRTC_FAULT="crash:pointwise/pointwise.cuh")
        lost = [line for line in said.splitlines() if "is left out" in line]
        self.assertGreaterEqual(len(lost), 1, said)
        self.assertEqual(len(set(lost)), len(lost), "one warning for each")
        for line in lost:
            self.assertRegex(line, r"pointwise .*compiling the kernel: the compiler has ended: signal 11")
        self.assertNotIn("pointwise", self.run_lathe("inspect", "m.engine").replace("Pointwise", ""))

    def test_a_compiler_that_always_crashes(self):
        """What no kernel does runs by its plain evaluation."""
        said = self.build_and_run(FAKE_NVRTC_FAULT="crash:lathe_kernel")
        self.assertIn("signal 11", said)
        self.assertIn("eval", self.run_lathe("inspect", "m.engine"))

    def test_without_processes(self):
        self.assertNotIn("warning", self.build_and_run(LATHE_COMPILER=""))
        said = self.build_and_run(LATHE_COMPILER="/nowhere/lathe-compiler")
        warnings = re.findall("^warning: .*", said, re.M)
        self.assertEqual(len(warnings), 1, said)
        self.assertIn("/nowhere/lathe-compiler", warnings[0])

    def test_installed(self):
        tree = self.folder / "installed"
        result = subprocess.run(["cmake", "--install", BUILD, "--prefix", tree], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertTrue((tree / "libexec/lathe/lathe-compiler").exists())
        said = self.run_lathe("build", "m.onnx", "-o", "m.engine", "--target=cuda", "--buildBudget=0",
                              lathe=tree / "bin/lathe")
        self.assertNotIn("warning", said)


if __name__ == "__main__":
    unittest.main()
