#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators on quantised tensors of ONNX Runtime's domain, and what its quantiser makes of networks, beside ONNX Runtime: levels
differ by one at most, where a sum or a quotient lies between two of them."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

LATHE = pathlib.Path(os.environ["LATHE_BUILD_DIR"], "bin/lathe")
random = np.random.default_rng(11)
FLOAT = np.float32


def levels(dtype, *dims):
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max + 1, dims).astype(dtype)


def scale(value):
    return np.asarray(value, FLOAT)


class Feeds(CalibrationDataReader):
    def __init__(self, feeds):
        self.feeds = iter(feeds)

    def get_next(self):
        return next(self.feeds, None)


class QLinear(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.model = self.folder / "model.onnx"

    def both(self, model, feeds, reference=None):
        """First outputs, of ONNX Runtime without fusions, which may run another model, and of Lathe."""
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(reference or model, options, providers=["CPUExecutionProvider"])
        expected = session.run(None, feeds)[0]
        for name, value in feeds.items():
            np.save(self.folder / f"{name}.npy", value)
        files = ",".join(f"{name}:{self.folder / name}.npy" for name in feeds)
        result = subprocess.run([LATHE, "run", model, f"--loadInputs={files}", "--exportOutput", self.folder / "out",
                                 "--target=cpu", "--buildBudget=0"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        return expected, np.load(self.folder / "out" / f"{session.get_outputs()[0].name}.npy")

    def check(self, op, operands, output, computed=(0,), domain="com.microsoft", equal=0.98, reference=(), **attributes):
        """Operands of the numbers `computed` are inputs, the others constants; None is left out. Nodes of a reference give
        y where ONNX Runtime has no kernel."""
        names = ["" if operand is None else f"x{i}" for i, operand in enumerate(operands)]
        tensors = {name: numpy_helper.from_array(np.array(operand, order="C"), name)
                   for name, operand in zip(names, operands) if name}
        info = [helper.make_tensor_value_info(f"x{i}", tensors[f"x{i}"].data_type, list(operands[i].shape)) for i in computed]
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        for path, nodes in ((self.model, [helper.make_node(op, names, ["y"], "node", domain=domain, **attributes)]),
                            (self.folder / "reference.onnx", reference)):
            graph = helper.make_graph(nodes, "g", info, [helper.make_tensor_value_info("y", output, None)],
                                      [tensor for name, tensor in tensors.items() if int(name[1:]) not in computed])
            onnx.save(helper.make_model(graph, ir_version=8, opset_imports=opsets), path)
        expected, got = self.both(self.model, {f"x{i}": operands[i] for i in computed}, path if reference else None)
        self.assertEqual(got.shape, expected.shape, op)
        self.assertEqual(got.dtype, expected.dtype, op)
        if got.dtype == FLOAT:
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max(), err_msg=op)
            return
        apart = np.abs(got.astype(int) - expected.astype(int))
        self.assertLessEqual(apart.max(), 1, (op, got.dtype))
        self.assertGreaterEqual((apart == 0).mean(), equal, (op, got.dtype))

    TYPES = ((np.uint8, TensorProto.UINT8), (np.int8, TensorProto.INT8))

    def test_elements(self):
        for dtype, proto in self.TYPES:
            a, b, zero = levels(dtype, 2, 3, 5, 7), levels(dtype, 3, 1, 7), levels(dtype)
            for op in ("QLinearAdd", "QLinearMul"):
                wide = 0.05 if op == "QLinearAdd" else 2.5
                self.check(op, [a, scale(0.02), zero, b, scale(0.03), levels(dtype), scale(wide), levels(dtype)], proto, (0, 3))
                self.check(op, [a, scale(0.02), zero, b, scale(0.03), levels(dtype), scale(wide)], proto)
            self.check("QLinearSigmoid", [a, scale(0.05), zero, scale(1 / 256), dtype(0)], proto)
            for alpha in (0.01, 0.3):
                self.check("QLinearLeakyRelu", [a, scale(0.05), zero, scale(0.04), levels(dtype)], proto, alpha=alpha)
            condition = random.integers(0, 2, (2, 3, 5, 7)).astype(bool)
            self.check("QLinearWhere", [condition, a, scale(0.02), zero, b, scale(0.03), levels(dtype), scale(0.04), levels(dtype)],
                       proto, (0, 1))

    def test_rows_and_windows(self):
        for dtype, proto in self.TYPES:
            x, zero, other = levels(dtype, 2, 8, 9, 11), levels(dtype), levels(dtype)
            operands = [x, scale(0.05), zero, scale(0.0437), other]
            self.check("QLinearGlobalAveragePool", [x, scale(0.05), zero, scale(0.005), other], proto, channels_last=0)
            self.check("QLinearAveragePool", operands, proto, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 1, 1, 0])
            self.check("QLinearAveragePool", operands, proto, kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1)
            self.check("QLinearAveragePool", operands, proto, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
            for axis, opset in ((-1, 13), (1, 13), (1, 11), (3, 11)):
                self.check("QLinearSoftmax", [x, scale(0.05), zero, scale(1 / 256), dtype(0)], proto, axis=axis, opset=opset)
            b, c = levels(dtype, 2, 3, 9, 11), levels(dtype, 2, 1, 9, 11)
            self.check("QLinearConcat", [scale(0.04), other, x, scale(0.05), zero, b, scale(0.04), other, c, scale(0.03), zero],
                       proto, (2, 5, 8), axis=1)

    def test_means(self):
        for dtype, proto in self.TYPES:
            operands = [levels(dtype, 2, 8, 9, 11), scale(0.05), levels(dtype), scale(0.01), levels(dtype)]
            node = helper.make_node
            for attributes in (dict(axes=[1], keepdims=1), dict(axes=[-1, 2], keepdims=0)):
                reference = [node("DequantizeLinear", ["x0", "x1", "x2"], ["d"]), node("ReduceMean", ["d"], ["m"], **attributes),
                             node("QuantizeLinear", ["m", "x3", "x4"], ["y"])]
                self.check("QLinearReduceMean", operands, proto, reference=reference, **attributes)

    def test_transposed_convolutions(self):
        """For which ONNX Runtime has a kernel on some devices alone."""
        node = helper.make_node
        for dtype, proto in self.TYPES:
            for columns in ((), (6,)):
                w, of_weights = levels(np.int8, 8, 6, 3, 3), scale(random.uniform(0.01, 0.02, columns))
                bias = random.integers(-3000, 3000, 6).astype(np.int32)
                operands = [levels(dtype, 2, 8, 5, 7), scale(0.02), levels(dtype), w, of_weights, np.zeros(columns, np.int8), scale(0.1), levels(dtype), bias]
                attributes = dict(strides=[2, 2], pads=[1, 0, 0, 1], output_padding=[1, 0])
                reference = [node("DequantizeLinear", ["x0", "x1", "x2"], ["d"]), node("DequantizeLinear", ["x3", "x4", "x5"], ["w"], axis=1),
                             node("Mul", ["x1", "x4"], ["s"]), node("Cast", ["x8"], ["b"], to=TensorProto.FLOAT), node("Mul", ["b", "s"], ["c"]),
                             node("ConvTranspose", ["d", "w", "c"], ["m"], **attributes), node("QuantizeLinear", ["m", "x6", "x7"], ["y"])]
                self.check("QLinearConvTranspose", operands, proto, reference=reference, **attributes)

    def test_products(self):
        for dtype, proto in self.TYPES:
            for weights in (np.int8, np.uint8):
                a, b, bias = levels(dtype, 6, 32), levels(weights, 32, 24), random.integers(-3000, 3000, 24).astype(np.int32)
                zeros = (weights(0 if weights == np.int8 else 128), levels(weights))
                for zero in zeros:
                    columns = scale(random.uniform(0.01, 0.02, 24))
                    if not (dtype == np.int8 and weights == np.uint8):  # ONNX Runtime has no such kernel
                        for output in ([scale(0.2), levels(dtype)], []):
                            self.check("QGemm", [a, scale(0.02), levels(dtype), b, columns, np.full(24, zero), bias, *output],
                                       proto if output else TensorProto.FLOAT)
                            self.check("QGemm", [a, scale(0.02), levels(dtype), b.T.copy(), scale(0.01), zero, bias, *output],
                                       proto if output else TensorProto.FLOAT, transB=1, alpha=0.5)
                        self.check("MatMulIntegerToFloat", [a, b, scale(0.02), columns, levels(dtype), np.full(24, zero), columns],
                                   TensorProto.FLOAT)
                        self.check("MatMulIntegerToFloat", [a, b, scale(0.02), scale(0.01), None, zero], TensorProto.FLOAT, (0, 1))
                        self.check("QLinearMatMul", [a, scale(0.02), levels(dtype), b, columns, np.full(24, zero), scale(0.2), levels(dtype)],
                                   proto, domain="")
                        w, x = levels(weights, 16, 8, 3, 3), levels(dtype, 1, 8, 9, 9)
                        self.check("QLinearConv", [x, scale(0.02), levels(dtype), w, scale(random.uniform(0.01, 0.02, 16)), np.full(16, zero),
                                                   scale(0.4), levels(dtype), random.integers(-3000, 3000, 16).astype(np.int32)],
                                   proto, domain="", pads=[1] * 4)
        for weights in (np.int8, np.uint8):
            x, b = random.normal(0, 1, (6, 32)).astype(FLOAT), levels(weights, 32, 24)
            self.check("DynamicQuantizeMatMul", [x, b, scale(0.01), levels(weights), scale(random.normal(0, 1, 24))], TensorProto.FLOAT)
            self.check("DynamicQuantizeMatMul", [x, b, scale(random.uniform(0.01, 0.02, 24)), levels(weights, 24)], TensorProto.FLOAT)

    def network(self):
        """Every operator that the quantiser knows by integers."""
        node = helper.make_node
        weights = {"w1": (16, 3, 3, 3), "b1": (16,), "w2": (16, 16, 3, 3), "w3": (16, 1, 3, 3), "w4": (32, 32), "b4": (32,), "w5": (32, 8)}
        nodes = [node("Conv", ["x", "w1", "b1"], ["c1"], "first", pads=[1] * 4), node("Relu", ["c1"], ["r1"], "relu"),
                 node("MaxPool", ["r1"], ["p1"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
                 node("Conv", ["p1", "w2"], ["c2"], "second", pads=[1] * 4), node("Add", ["c2", "p1"], ["s"], "sum"),
                 node("Conv", ["s", "w3"], ["c3"], "depthwise", pads=[1] * 4, group=16), node("Sigmoid", ["c3"], ["g"], "gate"),
                 node("Mul", ["s", "g"], ["m"], "gated"), node("LeakyRelu", ["m"], ["l"], "leaky", alpha=0.1),
                 node("AveragePool", ["l"], ["a"], "mean", kernel_shape=[2, 2], strides=[2, 2]),
                 node("Resize", ["a", "", "factors"], ["z"], "larger", mode="nearest"),
                 node("Concat", ["z", "l"], ["k"], "both", axis=1), node("Transpose", ["k"], ["t"], "turn", perm=[0, 1, 3, 2]),
                 node("GlobalAveragePool", ["t"], ["q"], "global"), node("Flatten", ["q"], ["f"], "flat"),
                 node("Gemm", ["f", "w4", "b4"], ["d"], "dense", transB=1), node("MatMul", ["d", "w5"], ["y"], "last")]
        constants = [numpy_helper.from_array(random.normal(0, 0.3, dims).astype(FLOAT), name) for name, dims in weights.items()]
        constants.append(numpy_helper.from_array(scale([1, 1, 2, 2]), "factors"))
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 16, 16])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 8])], constants)
        onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), self.model)
        return [{"x": random.normal(0, 1, (2, 3, 16, 16)).astype(FLOAT)} for _ in range(3)]

    def test_networks(self):
        feeds, made = self.network(), self.folder / "made.onnx"
        kinds = (("u8 x s8", QuantType.QUInt8, QuantType.QInt8), ("s8 x s8", QuantType.QInt8, QuantType.QInt8),
                 ("u8 x u8", QuantType.QUInt8, QuantType.QUInt8))
        for name, activations, weights in kinds:
            for form in (QuantFormat.QOperator, QuantFormat.QDQ):
                for per_channel in (False, True):
                    quantize_static(self.model, made, Feeds(feeds), quant_format=form, per_channel=per_channel,
                                    activation_type=activations, weight_type=weights)
                    expected, got = self.both(made, feeds[0])
                    what = (name, form, per_channel)
                    # Differences of a level grow from layer to layer.
                    self.assertLess(np.abs(got - expected).max(), 0.08 * np.abs(expected).max(), what)
                    self.assertLess(np.abs(got - expected).mean(), 0.02 * np.abs(expected).max(), what)

    def test_dynamic_networks(self):
        feeds, made = self.network(), self.folder / "made.onnx"
        for weights in (QuantType.QInt8, QuantType.QUInt8):
            for per_channel in (False, True):
                quantize_dynamic(self.model, made, weight_type=weights, per_channel=per_channel)
                kinds = {node.op_type for node in onnx.load(made).graph.node}
                self.assertTrue({"MatMulInteger", "ConvInteger", "DynamicQuantizeLinear"} <= kinds, kinds)
                expected, got = self.both(made, feeds[0])
                self.assertLess(np.abs(got - expected).max(), 0.02 * np.abs(expected).max(), (weights, per_channel))


if __name__ == "__main__":
    unittest.main()
