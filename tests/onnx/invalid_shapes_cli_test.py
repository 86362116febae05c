#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models whose shapes ONNX forbids, though every part of them could be broadcast: each is refused, and the node is named."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import onnx
from onnx import TensorProto, helper

LATHE = pathlib.Path(os.environ["LATHE_BUILD_DIR"], "bin/lathe")

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
OPSETS = {"Attention": 23, "GridSample": 20, "Split": 13}  # of the others 17
OUTPUTS = {"Split": ["y", "z"]}
RESULTS = {"QuantizeLinear": TensorProto.UINT8}  # of the others f32

# op, attributes, inputs (shape, type), what the report says; and a first input that makes the model right.
CASES = {
    "gemm_c_of_more_rows": ("Gemm", {}, [([1, 3], FLOAT), ([3, 4], FLOAT), ([3, 4], FLOAT)], "the product plus C has the shape [3, 4], but must have [1, 4]", [3, 3]),
    "gemm_c_of_more_dimensions": ("Gemm", {}, [([2, 3], FLOAT), ([3, 4], FLOAT), ([1, 2, 4], FLOAT)], "the product plus C has the shape [1, 2, 4]", None),
    "grid_of_another_batch": ("GridSample", {}, [([2, 3, 4, 4], FLOAT), ([1, 3, 3, 2], FLOAT)], "grid has the shape [1, 3, 3, 2], but must have [2, 3, 3, 2]",
                              [1, 3, 4, 4]),
    "too_few_lengths": ("ReverseSequence", {}, [([4, 6, 2], FLOAT), ([1], INT64)], "sequence_lens", [4, 1, 2]),
    "mask_of_more_batches": ("Attention", {}, [([1, 2, 3, 4], FLOAT)] * 3 + [([5, 2, 3, 3], FLOAT)],
                             "the scores under the mask has the shape [5, 2, 3, 3]", None),
    "zero_points_for_one_scale": ("QuantizeLinear", {"axis": 1}, [([2, 5], FLOAT), ([1], FLOAT), ([5], TensorProto.UINT8)],
                                  "the zero point has the shape [5], but must have [1]", None),
    "unequal_parts": ("Split", {"axis": 1}, [([2, 3], FLOAT)], "the sizes add up to 2", [2, 4]),
    "labels_of_another_batch": ("NegativeLogLikelihoodLoss", {}, [([3, 4], FLOAT), ([2], INT64)],
                                "the target has the shape [2], but must have [3]", [2, 4]),
    "diagonal_of_a_row": ("Einsum", {"equation": "ii->i"}, [([1, 3], FLOAT)], "one label", [3, 3]),
}

# The same with dimensions that the model leaves open: what the report says of these sizes, and sizes that are right.
OPEN = {
    "gemm_c_of_more_rows": ("Gemm", {}, [(["n", 3], FLOAT), ([3, 4], FLOAT), (["m", 4], FLOAT)], "", {"n": 1, "m": 4},
                            {"n": 4, "m": 1}),
    "grid_of_another_batch": ("GridSample", {}, [(["n", 3, 4, 4], FLOAT), (["m", 3, 3, 2], FLOAT)], "", {"n": 2, "m": 1},
                              {"n": 2, "m": 2}),
    "too_few_lengths": ("ReverseSequence", {}, [(["t", "n", 2], FLOAT), (["m"], INT64)], "", {"t": 4, "n": 3, "m": 1},
                        {"t": 4, "n": 3, "m": 3}),
    "mask_of_more_batches": ("Attention", {}, [(["n", 2, 3, 4], FLOAT)] * 3 + [(["m", 2, 3, 3], FLOAT)], "", {"n": 1, "m": 5},
                             {"n": 5, "m": 1}),
    "zero_points_for_one_scale": ("QuantizeLinear", {"axis": 1},
                                  [([2, 5], FLOAT), (["s"], FLOAT), (["z"], TensorProto.UINT8)], "", {"s": 1, "z": 5},
                                  {"s": 5, "z": 5}),
    "unequal_parts": ("Split", {"axis": 1}, [([2, "n"], FLOAT)], "the sizes add up to 2", {"n": 3}, {"n": 4}),
    "labels_of_another_batch": ("SoftmaxCrossEntropyLoss", {}, [(["n", 4], FLOAT), (["m"], INT64)], "", {"n": 3, "m": 2},
                                {"n": 3, "m": 3}),
    "window_beyond_the_image": ("AveragePool", {"kernel_shape": [3, 3]}, [([1, 2, "h", 8], FLOAT)], "does not fit into spatial axis 0 of extent 2", {"h": 2},
                                {"h": 3}),
    "kernel_beyond_the_image": ("Conv", {}, [([1, 2, "h", 8], FLOAT), ([4, 2, 3, 3], FLOAT)], "does not fit into spatial axis 0 of extent 2", {"h": 2},
                                {"h": 3}),
}


class InvalidShapes(unittest.TestCase):
    def build(self, op, attributes, inputs, sizes=None):
        with tempfile.TemporaryDirectory() as folder:
            names = [f"x{i}" for i in range(len(inputs))]
            info = [helper.make_tensor_value_info(n, t, shape) for n, (shape, t) in zip(names, inputs)]
            graph = helper.make_graph([helper.make_node(op, names, OUTPUTS.get(op, ["y"]), name="the_node", **attributes)], "g", info,
                                      [helper.make_tensor_value_info("y", RESULTS.get(op, FLOAT), None)])
            model = pathlib.Path(folder, "m.onnx")
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSETS.get(op, 17))],
                                        ir_version=10), model)
            shapes = [f"{n}:" + "x".join(str(sizes.get(d, d)) for d in shape) for n, (shape, _) in zip(names, inputs)
                      if any(isinstance(d, str) for d in shape)] if sizes else []
            profile = [f"--{which}Shapes=" + ",".join(shapes) for which in ("min", "opt", "max")] if shapes else []
            return subprocess.run([LATHE, "build", model, "-o", pathlib.Path(folder, "m.engine"), "--buildBudget=0", *profile],
                                  capture_output=True, text=True)

    def is_refused_when_sized(self, op, attributes, inputs, words, wrong, right):
        refused = self.build(op, attributes, inputs, wrong)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("the_node", refused.stderr)
        self.assertIn(words, refused.stderr)
        built = self.build(op, attributes, inputs, right)
        self.assertEqual(built.returncode, 0, built.stderr)

    def is_refused(self, op, attributes, inputs, words, right):
        refused = self.build(op, attributes, inputs)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("the_node", refused.stderr)
        self.assertIn(words, refused.stderr)
        if right:
            built = self.build(op, attributes, [(right, inputs[0][1]), *inputs[1:]])
            self.assertEqual(built.returncode, 0, built.stderr)


for name, case in CASES.items():
    setattr(InvalidShapes, f"test_{name}", lambda self, case=case: self.is_refused(*case))
for name, case in OPEN.items():
    setattr(InvalidShapes, f"test_open_{name}", lambda self, case=case: self.is_refused_when_sized(*case))


if __name__ == "__main__":
    unittest.main()
