#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Q/DQ as several quantisers place it: the same answers as ONNX Runtime, and all convolutions in integers."""
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
CPU_FLAGS = pathlib.Path("/proc/cpuinfo").read_text().split()
MULTIPLIES_BYTES = "avx512_vnni" in CPU_FLAGS or ("avx_vnni" in CPU_FLAGS and "avx512f" not in CPU_FLAGS)
random = np.random.default_rng(3)


class Network:
    """conv, relu, conv + residual, relu, conv; `act`, `weight` and `bias` say how a quantiser writes each."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, name, value, dtype):
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def op(self, kind, inputs, name, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def pair(self, x, scale, zero, dtype):
        operands = [self.constant(f"{x}_s", scale, np.float32), self.constant(f"{x}_z", zero, dtype)]
        return self.op("DequantizeLinear", [self.op("QuantizeLinear", [x, *operands], f"{x}_q"), *operands], f"{x}_dq")

    def floats(self, name, dims):
        return random.normal(0, 0.5 / np.sqrt(np.prod(dims[1:]) or 1), dims).astype(np.float32)

    def levels(self, name, values, scale, axis=None):
        shape = [1] * values.ndim
        if axis is not None:
            shape[axis] = -1
        levels = np.clip(np.rint(values / np.reshape(scale, shape)), -128, 127)
        operands = [self.constant(f"{name}_s", scale, np.float32), self.constant(f"{name}_z", np.zeros_like(scale), np.int8)]
        return self.op("DequantizeLinear", [self.constant(f"{name}_q", levels, np.int8), *operands], f"{name}_dq",
                       **({} if axis is None else {"axis": axis}))

    def build(self, path):
        x = self.act("x", 4)
        y = self.act(self.op("Relu", [self.after_conv(self.conv(x, "c1", 16, 3))], "r1"), 3)
        z = self.add(self.conv(y, "c2", 16, 16), y)
        z = self.act(self.op("Relu", [z], "r2"), 4)
        self.after_conv(self.conv(z, "c3", 8, 16))
        graph = helper.make_graph(self.nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 12, 12])],
                                  [helper.make_tensor_value_info(self.nodes[-1].output[0], TensorProto.FLOAT, [1, 8, 12, 12])],
                                  self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, path)

    def conv(self, x, name, outputs, channels):
        w, b = self.weight(f"{name}_w", self.floats(name, (outputs, channels, 3, 3))), self.bias(f"{name}_b", self.floats(name, (outputs,)))
        return self.op("Conv", [x, w, b], name, pads=[1] * 4)

    def after_conv(self, y):
        return y

    def bias(self, name, values):
        return self.constant(name, values, np.float32)

    def weight(self, name, values):
        return self.levels(name, values, (np.abs(values).max((1, 2, 3)) / 127).astype(np.float32), 0)


class ModelOpt(Network):
    """i8 without zero points; weights are quantised in the graph; one operand of an addition is quantised, results are not."""

    def act(self, x, largest):
        return self.pair(x, largest / 127, 0, np.int8)

    def weight(self, name, values):
        operands = [self.constant(f"{name}_s", np.abs(values).max((1, 2, 3)) / 127, np.float32),
                    self.constant(f"{name}_z", np.zeros(len(values)), np.int8)]
        q = self.op("QuantizeLinear", [self.constant(name, values, np.float32), *operands], f"{name}_q", axis=0)
        return self.op("DequantizeLinear", [q, *operands], f"{name}_dq", axis=0)

    def add(self, a, b):
        return self.op("Add", [a, b], "sum")


class Pt2e(Network):
    """u8 with zero points, around each operand of an addition and each result."""

    def act(self, x, largest):
        return self.pair(x, 2 * largest / 255, 117, np.uint8)

    def after_conv(self, y):
        return y if y == "c1" else self.act(y, 4)

    def add(self, a, b):
        return self.op("Add", [self.act(a, 4), b], "sum")


class Quark(Network):
    """Scales that are powers of two; i8 throughout, biases too; a pair behind every operator."""

    def act(self, x, largest):
        return self.pair(x, 2.0 ** np.ceil(np.log2(largest / 127)), 0, np.int8)

    def weight(self, name, values):
        return self.levels(name, values, np.float32(2.0 ** np.ceil(np.log2(np.abs(values).max() / 127))))

    bias = weight

    def after_conv(self, y):
        return self.act(y, 4)

    def add(self, a, b):
        return self.act(self.op("Add", [self.act(a, 4), b], "sum"), 4)


class Placement(unittest.TestCase):
    def check(self, network):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            network.build(folder / "model.onnx")
            x = random.normal(0, 1, (1, 3, 12, 12)).astype(np.float32)
            np.save(folder / "x.npy", x)
            options = onnxruntime.SessionOptions()
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            session = onnxruntime.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])
            expected = session.run(None, {"x": x})[0]
            run = lambda *words: subprocess.run([LATHE, *words], check=True, capture_output=True, text=True).stdout  # noqa: E731
            run("build", folder / "model.onnx", "-o", folder / "e.engine", "--target=cpu", "--buildBudget=0")
            run("run", folder / "e.engine", f"--loadInputs=x:{folder / 'x.npy'}", "--exportOutput", folder / "out")
            got = np.load(next((folder / "out").iterdir()))
            level = 8 / 255  # of an activation, which may differ by one
            self.assertLess(np.abs(got - expected).max(), 2 * level)
            self.assertGreater((np.abs(got - expected) < level / 2).mean(), 0.98)
            if MULTIPLIES_BYTES:
                steps = [line for line in run("inspect", folder / "e.engine").splitlines() if line[:4].strip().isdigit()]
                self.assertEqual(sum(" conv_integer " in step for step in steps), 3, "\n".join(steps))

    def test_modelopt(self):
        self.check(ModelOpt())

    def test_pt2e(self):
        self.check(Pt2e())

    def test_quark(self):
        self.check(Quark())


if __name__ == "__main__":
    unittest.main()
