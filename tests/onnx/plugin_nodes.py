# SPDX-License-Identifier: Apache-2.0
"""A test of nodes that name standard plugins of TensorRT, on the CPU and on an emulated GPU."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
from onnx import helper, numpy_helper

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"])
LATHE = BUILD / "bin/lathe"


class PluginNodes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = {**os.environ, "LATHE_CUDA_DRIVER": str(BUILD / "fake_cuda/libfake_cuda_driver.so"),
                            "LATHE_NVRTC": str(BUILD / "fake_cuda/libnvrtc.so"), "LATHE_CACHE_DIR": str(self.folder / "cache")}
        self.random = np.random.default_rng(5)

    def model(self, op, inputs, outputs, constants=None, domain="TRT", order=None, fixed=(), axes=None, **fields):
        """`axes`: input -> which of its dimensions is open, and its name; of others the first, "n", but for inputs of `fixed`."""
        self.axes = {name: (0, "n") for name in inputs if name not in fixed} | (axes or {})
        node = helper.make_node(op, order or [*inputs, *(constants or {})], outputs, name="plugin", domain=domain,
                                **{name: field for name, field in fields.items() if field != []})
        node.attribute.extend(helper.make_attribute(name, [], attr_type=onnx.AttributeProto.FLOATS)
                              for name, field in fields.items() if field == [])
        graph = helper.make_graph(
            [node], "g",
            [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), self.shape_of(name, x, lambda n, symbol: symbol))
             for name, x in inputs.items()],
            [helper.make_empty_tensor_value_info(name) for name in outputs],
            [numpy_helper.from_array(x, name) for name, x in (constants or {}).items()])
        opsets = [helper.make_opsetid("", 17)] + ([helper.make_opsetid(domain, 1)] if domain else [])
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), self.folder / "m.onnx")

    def shape_of(self, name, x, change):
        """x's, its open dimension changed."""
        axis, symbol = self.axes.get(name, (None, None))
        return [change(n, symbol) if i == axis else n for i, n in enumerate(x.shape)]

    def build(self, inputs, target="cpu"):
        def shapes(factor):
            return ",".join(f"{name}:{'x'.join(map(str, self.shape_of(name, x, lambda n, _: factor * n)))}" for name, x in inputs.items()
                            if name in self.axes)
        profile = [f"--{which}Shapes={shapes(factor)}" for which, factor in (("min", 1), ("opt", 1), ("max", 3))] if self.axes else []
        return subprocess.run([LATHE, "build", self.folder / "m.onnx", "-o", self.folder / "m.engine", "--buildBudget=0",
                               f"--target={target}", "--noTF32", *profile], capture_output=True, text=True, env=self.environment)

    def expect(self, op, inputs, expected, *, tolerance=1e-5, **fields):
        """`expected`: name -> result, on both devices."""
        self.model(op, inputs, list(expected), **fields)
        for name, x in inputs.items():
            np.save(self.folder / f"{name}.npy", x)
        files = ",".join(f"{name}:{self.folder}/{name}.npy" for name in inputs)
        for target in ("cpu", "cuda"):
            with self.subTest(target=target):
                built = self.build(inputs, target)
                self.assertEqual(built.returncode, 0, built.stderr)
                ran = subprocess.run([LATHE, "run", self.folder / "m.engine", f"--loadInputs={files}",
                                      f"--exportOutput={self.folder}"], capture_output=True, text=True, env=self.environment)
                self.assertEqual(ran.returncode, 0, ran.stderr)
                for name, y in expected.items():
                    result = np.load(self.folder / f"{name}.npy")
                    self.assertEqual((result.shape, result.dtype), (y.shape, y.dtype), name)
                    np.testing.assert_allclose(result, y, rtol=tolerance, atol=tolerance, err_msg=name)

    def refuse(self, op, inputs, *texts, **fields):
        self.model(op, inputs, ["y"], **fields)
        built = self.build(inputs)
        self.assertEqual(built.returncode, 1, built.stderr)
        for text in (op, *texts):
            self.assertIn(text, built.stderr)

    @staticmethod
    def bilinear(image, v, u):
        """Of an image that is 0 beyond its edges."""
        total = 0.0
        for i, j in np.ndindex(2, 2):
            row, column = int(np.floor(v)) + i, int(np.floor(u)) + j
            if 0 <= row < image.shape[0] and 0 <= column < image.shape[1]:
                total += image[row, column] * max(0, 1 - abs(v - row)) * max(0, 1 - abs(u - column))
        return total
