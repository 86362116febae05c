#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ifs whose branches yield tensors of different ranks, as PyTorch writes `x.squeeze(0)` of an open dimension: the sizes
of the profile decide which branch the engine has."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LATHE = pathlib.Path(os.environ["LATHE_BUILD_DIR"], "bin/lathe")


def branch(name, nodes):
    """A body without inputs, whose last node gives `name`."""
    return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)])


def squeezed(values, name):
    """Nodes that squeeze axis 0 of `values` if it is 1."""
    yes = branch(f"{name}_yes", [helper.make_node("Squeeze", [values, "axis"], [f"{name}_yes"])])
    no = branch(f"{name}_no", [helper.make_node("Identity", [values], [f"{name}_no"])])
    return [helper.make_node("Shape", [values], [f"{name}_shape"]),
            helper.make_node("Gather", [f"{name}_shape", "axis"], [f"{name}_extent"]),
            helper.make_node("Equal", [f"{name}_extent", "axis_extent"], [f"{name}_one"]),
            helper.make_node("If", [f"{name}_one"], [name], then_branch=yes, else_branch=no, name=f"the_if_{name}")]


def model(nodes, dims, output):
    constants = [numpy_helper.from_array(np.array([0]), "axis"), numpy_helper.from_array(np.array([1]), "axis_extent"),
                 numpy_helper.from_array(np.arange(8, dtype=np.float32).reshape(4, 2), "w")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
                              [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class Branches(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def build(self, proto, least, most):
        onnx.save(proto, self.folder / "m.onnx")
        profile = [f"--{which}Shapes=x:{dims}" for which, dims in (("min", least), ("opt", most), ("max", most))]
        return subprocess.run([LATHE, "build", self.folder / "m.onnx", "-o", self.folder / "m.engine", "--buildBudget=0", *profile],
                              capture_output=True, text=True)

    def run_engine(self, x):
        np.save(self.folder / "x.npy", x)
        ran = subprocess.run([LATHE, "run", self.folder / "m.engine", f"--loadInputs=x:{self.folder}/x.npy", f"--exportOutput={self.folder}"],
                             capture_output=True, text=True)
        return ran, (np.load(self.folder / "y.npy") if ran.returncode == 0 else None)

    def expect(self, proto, least, most, x, y):
        built = self.build(proto, least, most)
        self.assertEqual(built.returncode, 0, built.stderr)
        ran, result = self.run_engine(x)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        np.testing.assert_array_equal(result, y)
        return built

    def test_profile_decides(self):
        proto = model([*squeezed("x", "s"), helper.make_node("Relu", ["s"], ["y"])], ["n", 3, 4], "y")
        x = np.random.default_rng(1).standard_normal((1, 3, 4), np.float32)
        self.expect(proto, "1x3x4", "1x3x4", x, np.maximum(x[0], 0))
        x = np.random.default_rng(2).standard_normal((5, 3, 4), np.float32)
        self.expect(proto, "2x3x4", "5x3x4", x, np.maximum(x, 0))

    def test_one_after_the_other(self):
        nodes = [*squeezed("x", "s"), *squeezed("s", "t"), helper.make_node("Relu", ["t"], ["y"])]
        proto = model(nodes, ["n", "m", 4], "y")
        x = np.random.default_rng(3).standard_normal((1, 1, 4), np.float32)
        self.expect(proto, "1x1x4", "1x1x4", x, np.maximum(x[0, 0], 0))
        self.expect(proto, "1x2x4", "1x6x4", np.repeat(x, 6, 1), np.maximum(np.repeat(x[0], 6, 0), 0))

    def test_sizes_of_both_kinds_fail_at_the_rarer(self):
        proto = model([*squeezed("x", "s"), helper.make_node("Relu", ["s"], ["y"])], ["n", 3, 4], "y")
        x = np.ones((4, 3, 4), np.float32)
        built = self.expect(proto, "1x3x4", "4x3x4", x, x)
        self.assertIn("the_if_s", built.stderr)
        ran, _ = self.run_engine(x[:1])
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("the_if_s", ran.stderr)
        self.assertIn("its condition is true", ran.stderr)

    def test_rest_that_fits_one_branch_only(self):
        nodes = [*squeezed("x", "s"), helper.make_node("Gemm", ["s", "w"], ["y"])]  # takes matrices alone
        proto = model(nodes, ["n", 3, 4], "y")
        x = np.arange(12, dtype=np.float32).reshape(1, 3, 4)
        self.expect(proto, "1x3x4", "1x3x4", x, x[0] @ np.arange(8, dtype=np.float32).reshape(4, 2))
        refused = self.build(proto, "2x3x4", "5x3x4")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("Gemm", refused.stderr)


if __name__ == "__main__":
    unittest.main()
