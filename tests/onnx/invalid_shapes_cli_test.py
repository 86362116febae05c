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

# op, attributes, inputs (shape, type), what the report says; and a first input that makes the model right.
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
CASES = {
    "gemm_c_of_more_rows": ("Gemm", {}, [([1, 3], FLOAT), ([3, 4], FLOAT), ([3, 4], FLOAT)], "C of shape [3, 4]", [3, 3]),
    "gemm_c_of_more_dimensions": ("Gemm", {}, [([2, 3], FLOAT), ([3, 4], FLOAT), ([1, 2, 4], FLOAT)], "C of shape", None),
    "grid_of_another_batch": ("GridSample", {}, [([2, 3, 4, 4], FLOAT), ([1, 3, 3, 2], FLOAT)], "different batches",
                              [1, 3, 4, 4]),
    "too_few_lengths": ("ReverseSequence", {}, [([4, 6, 2], FLOAT), ([1], INT64)], "sequence_lens", [4, 1, 2]),
    "diagonal_of_a_row": ("Einsum", {"equation": "ii->i"}, [([1, 3], FLOAT)], "one label", [3, 3]),
}


class InvalidShapes(unittest.TestCase):
    def build(self, op, attributes, inputs):
        with tempfile.TemporaryDirectory() as folder:
            names = [f"x{i}" for i in range(len(inputs))]
            info = [helper.make_tensor_value_info(n, t, shape) for n, (shape, t) in zip(names, inputs)]
            graph = helper.make_graph([helper.make_node(op, names, ["y"], name="the_node", **attributes)], "g", info,
                                      [helper.make_tensor_value_info("y", FLOAT, None)])
            model = pathlib.Path(folder, "m.onnx")
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
            return subprocess.run([LATHE, "build", model, "-o", pathlib.Path(folder, "m.engine"), "--buildBudget=0"],
                                  capture_output=True, text=True)

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


if __name__ == "__main__":
    unittest.main()
