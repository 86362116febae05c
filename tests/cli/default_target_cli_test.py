#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `lathe build` builds for when it is not told."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import onnx
from onnx import TensorProto, helper

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"]).resolve()
EMULATED = {"LATHE_CUDA_DRIVER": str(BUILD / "fake_cuda/libfake_cuda_driver.so"),
            "LATHE_NVRTC": str(BUILD / "fake_cuda/libnvrtc.so")}


class DefaultTarget(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        tensor = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy"]
        graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "relu", tensor[:1], tensor[1:])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), self.folder / "relu.onnx")

    def build(self, **environment):
        inherited = {name: value for name, value in os.environ.items() if name != "LATHE_TARGET"}
        return subprocess.run([BUILD / "bin/lathe", "build", self.folder / "relu.onnx", "-o", self.folder / "relu.engine",
                               "--buildBudget=0", "--verbose"], capture_output=True, text=True,
                              env={**inherited, "LATHE_CACHE_DIR": str(self.folder), **environment})

    def expect_target(self, words, **environment):
        done = self.build(**environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"the build is for {words}", done.stderr + done.stdout)

    def test_the_gpu_where_there_is_one(self):
        self.expect_target("cuda: there is such a device", **EMULATED)

    def test_the_cpu_where_there_is_no_driver(self):
        self.expect_target("cpu: the CUDA driver cannot be loaded", LATHE_CUDA_DRIVER="/no/driver")

    def test_the_variable_comes_first(self):
        self.expect_target("cpu: LATHE_TARGET names it", LATHE_TARGET="cpu", **EMULATED)

    def test_an_unknown_variable_is_an_error(self):
        done = self.build(LATHE_TARGET="tpu")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("target 'tpu' is not known", done.stderr)


if __name__ == "__main__":
    unittest.main()
