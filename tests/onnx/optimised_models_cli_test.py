#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A network as ONNX Runtime's optimiser writes it again: its operators are taken, and answers stay those of the network as it
was."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

LATHE = pathlib.Path(os.environ["LATHE_BUILD_DIR"], "bin/lathe")
HIDDEN, HEADS, SIZE = 64, 4, 16


class OptimisedModels(unittest.TestCase):
    def network(self):
        """A convolution whose pixels are the tokens of a transformer's block."""
        random = np.random.default_rng(3)
        node, constants = helper.make_node, {}

        def constant(name, *dims):
            constants[name] = random.normal(0, 0.2, dims).astype(np.float32)
            return name

        def number(name, value, dtype=np.float32):
            constants[name] = np.asarray(value, dtype)
            return name

        def dense(x, name, rows, columns):
            return [node("MatMul", [x, constant(f"w_{name}", rows, columns)], [f"m_{name}"]),
                    node("Add", [f"m_{name}", constant(f"b_{name}", columns)], [name])]

        def heads(x):
            return [node("Reshape", [x, number("split", [0, 0, HEADS, SIZE], np.int64)], [f"{x}_4"]),
                    node("Transpose", [f"{x}_4"], [f"{x}_h"], perm=[0, 2, 1, 3])]
        nodes = [node("Conv", ["x", constant("kernel", HIDDEN, 3, 2, 2), constant("offset", HIDDEN)], ["c"], strides=[2, 2]),
                 node("LeakyRelu", ["c"], ["r"], alpha=0.1), node("Reshape", ["r", number("rows", [0, HIDDEN, -1], np.int64)], ["f"]),
                 node("Transpose", ["f"], ["t"], perm=[0, 2, 1])]
        for part in "qkv":
            nodes += dense("t", part, HIDDEN, HIDDEN) + heads(part)
        nodes += [node("Transpose", ["k_h"], ["k_t"], perm=[0, 1, 3, 2]), node("MatMul", ["q_h", "k_t"], ["s"]),
                  node("Div", ["s", number("root", SIZE**0.5)], ["scaled"]), node("Softmax", ["scaled"], ["p"], axis=-1),
                  node("MatMul", ["p", "v_h"], ["a_h"]), node("Transpose", ["a_h"], ["a_4"], perm=[0, 2, 1, 3]),
                  node("Reshape", ["a_4", number("join", [0, 0, HIDDEN], np.int64)], ["a"])]
        nodes += dense("a", "o", HIDDEN, HIDDEN)
        nodes += [node("Add", ["o", "t"], ["sum"]), node("LayerNormalization", ["sum", constant("g", HIDDEN), constant("h", HIDDEN)], ["n"])]
        nodes += dense("n", "up", HIDDEN, 4 * HIDDEN)
        nodes += [node("Div", ["up", number("root2", 2**0.5)], ["d"]), node("Erf", ["d"], ["e"]), node("Add", ["e", number("one", 1)], ["e1"]),
                  node("Mul", ["up", "e1"], ["u"]), node("Mul", ["u", number("half", 0.5)], ["gelu"])]
        nodes += dense("gelu", "down", 4 * HIDDEN, HIDDEN)
        nodes += [node("Add", ["down", "n"], ["last"]), node("LayerNormalization", ["last", "g", "h"], ["y"])]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, "height", "width"])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                                  [numpy_helper.from_array(value, name) for name, value in constants.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def test_operators_of_the_optimiser(self):
        with tempfile.TemporaryDirectory() as holder:
            folder = pathlib.Path(holder)
            plain, made, engine = folder / "plain.onnx", folder / "made.onnx", folder / "made.engine"
            onnx.save(self.network(), plain)
            options = onnxruntime.SessionOptions()
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
            options.optimized_model_filepath = str(made)
            onnxruntime.InferenceSession(plain, options, providers=["CPUExecutionProvider"])
            kinds = {node.op_type for node in onnx.load(made).graph.node if node.domain == "com.microsoft"}
            self.assertLessEqual({"FusedConv", "FusedMatMul", "BiasGelu"}, kinds)
            shapes = [f"--{kind}Shapes=x:{dims}" for kind, dims in (("min", "1x3x2x2"), ("opt", "2x3x8x8"), ("max", "4x3x16x12"))]
            result = subprocess.run([LATHE, "build", made, "-o", engine, "--target=cpu", "--buildBudget=0", *shapes], capture_output=True, text=True)
            self.assertEqual(result.returncode, 0, result.stderr)
            text = subprocess.run([LATHE, "inspect", engine], capture_output=True, text=True).stdout
            self.assertRegex(text, r"(?m)^ *\d+ +attention ")
            session = onnxruntime.InferenceSession(plain, providers=["CPUExecutionProvider"])
            for dims in ((2, 3, 8, 8), (1, 3, 2, 2), (4, 3, 16, 12)):
                x = np.random.default_rng(1).normal(0, 1, dims).astype(np.float32)
                np.save(folder / "x.npy", x)
                result = subprocess.run([LATHE, "run", engine, f"--loadInputs=x:{folder / 'x.npy'}", "--exportOutput", folder / "out"],
                                        capture_output=True, text=True)
                self.assertEqual(result.returncode, 0, result.stderr)
                np.testing.assert_allclose(np.load(folder / "out/y.npy"), session.run(None, {"x": x})[0], rtol=0, atol=2e-5)


if __name__ == "__main__":
    unittest.main()
