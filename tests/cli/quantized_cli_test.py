#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A network with Q/DQ pairs, on the CPU and on an emulated GPU, beside ONNX's reference; types of single layers."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"])
LATHE = BUILD / "bin/lathe"
random = np.random.default_rng(0)
CPU_FLAGS = pathlib.Path("/proc/cpuinfo").read_text().split()
MULTIPLIES_BYTES = "avx512_vnni" in CPU_FLAGS or ("avx_vnni" in CPU_FLAGS and "avx512f" not in CPU_FLAGS)


class Model:
    """Convolutions with a residual, a pooling, a depthwise convolution and a product, all quantised."""

    def __init__(self, zero=np.int8(0)):
        self.nodes, self.constants, self.zero = [], [], zero
        x = self.qdq("x", 0.03, "input")
        x = self.qdq(self.op("Relu", [self.conv(x, "stem", 16, 3, 3, stride=2)], "stem_relu"), 0.02, "stem_out")
        x = self.qdq(self.op("MaxPool", [x], "pool", kernel_shape=[2, 2], strides=[2, 2]), 0.02, "pooled")
        y = self.qdq(self.op("Relu", [self.conv(x, "first", 16, 16, 3)], "first_relu"), 0.02, "first_out")
        y = self.op("Add", [self.conv(y, "second", 16, 16, 3), x], "sum")
        y = self.qdq(self.op("Relu", [y], "sum_relu"), 0.03, "sum_out")
        y = self.qdq(self.op("Relu", [self.conv(y, "depthwise", 16, 16, 3, group=16)], "relu"), 0.03, "out")
        y = self.op("Flatten", [self.op("GlobalAveragePool", [self.conv(y, "point", 24, 16, 1)], "mean")], "flat")
        y = self.qdq(y, 0.02, "flat_out")
        self.op("Gemm", [y, self.weights("dense", (10, 24)), self.constant("bias", random.normal(0, 0.1, 10))], "y",
                transB=1)

    def constant(self, name, values, dtype=np.float32):
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def op(self, kind, inputs, name, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def qdq(self, x, scale, name):
        operands = [self.constant(name + "_scale", scale), self.constant(name + "_zero", self.zero, self.zero.dtype)]
        q = self.op("QuantizeLinear", [x, *operands], name + "_q")
        return self.op("DequantizeLinear", [q, *operands], name)

    def weights(self, name, shape):
        q = self.constant(name + "_q", random.integers(-127, 128, shape), np.int8)
        spread = 0.02 / np.sqrt(np.prod(shape[1:]))
        scale = self.constant(name + "_scale", random.uniform(0.5, 1.5, shape[0]) * spread)
        return self.op("DequantizeLinear", [q, scale, self.constant(name + "_zero", [0] * shape[0], np.int8)],
                       name + "_w", axis=0)

    def conv(self, x, name, outputs, channels, kernel, stride=1, group=1):
        w = self.weights(name, (outputs, channels // group, kernel, kernel))
        bias = self.constant(name + "_bias", random.normal(0, 0.1, outputs))
        return self.op("Conv", [x, w, bias], name, pads=[kernel // 2] * 4, strides=[stride] * 2, group=group)

    def save(self, path):
        graph = helper.make_graph(self.nodes, "quantized",
                                  [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 32, 32])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 10])], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
        onnx.save(model, path)
        return model


class Quantized(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = os.environ | {
            "LATHE_CUDA_DRIVER": str(BUILD / "fake_cuda/libfake_cuda_driver.so"),
            "LATHE_NVRTC": str(BUILD / "fake_cuda/libnvrtc.so"),
            "LATHE_CACHE_DIR": str(self.folder / "cache")}
        self.path = self.folder / "model.onnx"
        self.model = Model().save(self.path)

    def lathe(self, *words):
        return subprocess.run([LATHE, *map(str, words)], capture_output=True, text=True, env=self.environment)

    def checked(self, *words):
        result = self.lathe(*words)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def expect_result(self, target):
        x = random.normal(0, 1, (2, 3, 32, 32)).astype(np.float32)
        np.save(self.folder / "x.npy", x)
        engine = self.folder / f"{target}.engine"
        self.checked("build", self.path, "-o", engine, f"--target={target}", "--buildBudget=0")
        self.checked("run", engine, f"--loadInputs=x:{self.folder / 'x.npy'}", "--exportOutput", self.folder / "out")
        wanted = ReferenceEvaluator(self.model).run(None, {"x": x})[0]
        got = np.load(self.folder / "out/y.npy")
        # A level of one activation may differ, where rounding before it does.
        np.testing.assert_allclose(got, wanted, atol=0.05)
        self.assertLess(np.median(np.abs(got - wanted)), 1e-4)
        return self.checked("inspect", engine)

    def test_cpu_computes_in_integers(self):
        if not MULTIPLIES_BYTES:
            self.skipTest("the CPU has no VNNI")
        steps = [line for line in self.expect_result("cpu").splitlines() if line[:4].strip().isdigit()]
        self.assertEqual(sum(" conv_integer " in step for step in steps), 4, "\n".join(steps))
        self.assertEqual(sum(" depthwise_integer " in step for step in steps), 1, "\n".join(steps))
        self.assertFalse([step for step in steps if "plain evaluation" in step])

    def test_cpu_computes_in_floats(self):
        self.environment["LATHE_CPU_ISA"] = "baseline"
        shown = self.expect_result("cpu")
        self.assertNotIn(" i8 ", shown)
        self.assertIn("about 0.0 % of the time goes to plain evaluations", shown)

    def test_cpu_says_that_weights_are_dequantised(self):
        self.environment["LATHE_CPU_ISA"] = "baseline"
        self.assertRegex(self.build().stderr, r"[0-9]+ weights \([0-9.]+ MB\) are dequantised while building")

    def test_gpu_computes_in_integers(self):
        steps = [line for line in self.expect_result("cuda").splitlines() if line[:4].strip().isdigit()]
        self.assertEqual(len(steps), 8, "\n".join(steps))  # no layer of Q/DQ is left, and the stem quantises its image
        self.assertEqual(sum(" i8 " in step for step in steps), 6, "\n".join(steps))

    def test_gpu_computes_with_zero_points_in_integers(self):
        for zero in (np.uint8(0), np.uint8(128), np.uint8(37), np.int8(-5)):
            self.model = Model(zero).save(self.path)
            steps = [line for line in self.expect_result("cuda").splitlines() if line[:4].strip().isdigit()]
            self.assertEqual(len(steps), 8, f"{zero}\n" + "\n".join(steps))
            self.assertEqual(sum(" i8 " in step for step in steps), 6, f"{zero}\n" + "\n".join(steps))

    def test_reasons_for_floats(self):
        self.model = Model(np.int8(3)).save(self.path)
        report = self.folder / "report.json"
        self.environment["LATHE_CPU_ISA"] = "baseline"
        shown = self.checked("inspect", self.path, "--target=cpu", "--buildBudget=0", "--json", report)
        products = {product["tensor"]: product["why"] for product in json.loads(report.read_text())["float_products"]}
        self.assertEqual(len(products), 6, shown)
        self.assertEqual(set(products.values()), {"the target multiplies floats only"}, shown)
        for product in products:
            self.assertIn(product, shown)
        self.model = Model().save(self.path)
        shown = self.checked("inspect", self.path, "--target=cuda", "--buildBudget=0", "--precisionConstraints=prefer",
                             "--layerPrecisions=second:fp32", "--json", report)
        self.assertEqual([product["why"] for product in json.loads(report.read_text())["float_products"]],
                         ["it is told to compute in floats"], shown)

    def save_attention(self, of_weights):
        """An attention of f8e4m3fn, as ModelOpt writes it; `of_weights`: the scale of what multiplies the values."""
        nodes = []

        def op(kind, inputs, name, **attributes):
            nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
            return name

        def quantized(x, name, scale="scale"):
            return op("DequantizeLinear", [op("QuantizeLinear", [x, scale], name + "_q",
                                              output_dtype=TensorProto.FLOAT8E4M3FN), scale], name)

        constants = [numpy_helper.from_array(np.float32(value), name)
                     for name, value in (("scale", 0.0625), ("of_weights", of_weights or 1), ("factor", 0.125))]
        keys = op("Transpose", [quantized("k", "keys")], "turned", perm=[0, 1, 3, 2])
        scores = op("Mul", [op("MatMul", [quantized("q", "queries"), keys], "product"), "factor"], "scores")
        weights = op("Softmax", [scores], "weights")
        if of_weights:
            weights = quantized(weights, "rounded", "of_weights")
        op("MatMul", [weights, quantized("v", "values")], "y")
        graph = helper.make_graph(
            nodes, "attention", [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2, 40, 64]) for name in "qkv"],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, 40, 64])], constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        onnx.save(model, self.path)
        return model

    def test_attention_of_8_bit_floats(self):
        inputs = {name: random.normal(0, 1, (1, 2, 40, 64)).astype(np.float32) for name in "qkv"}
        files = []
        for name, tensor in inputs.items():
            np.save(self.folder / f"{name}.npy", tensor)
            files.append(f"{name}:{self.folder / name}.npy")
        why = {("cpu", 1 / 448): "the target multiplies no 8-bit floats",
               ("cpu", None): "the target multiplies no 8-bit floats",
               ("cuda", None): "its probabilities are not rounded to 8-bit floats"}
        unrounded = ReferenceEvaluator(self.save_attention(None)).run(None, inputs)[0]
        for of_weights in (1 / 448, None):
            wanted = ReferenceEvaluator(self.save_attention(of_weights)).run(None, inputs)[0]
            rounding = np.linalg.norm(wanted - unrounded)
            for target in ("cpu", "cuda"):
                shown, products = self.float_products(f"--target={target}")
                reason = why.get((target, of_weights))
                if reason and (target == "cuda" or MULTIPLIES_BYTES):
                    self.assertEqual(products, {"y": reason}, shown)
                self.assertRegex(shown, r" attention +attention")
                self.assertNotRegex(shown, "softmax|plain evaluation ")
                engine = self.folder / "e.engine"
                self.checked("build", self.path, "-o", engine, f"--target={target}", "--buildBudget=0")
                self.checked("run", engine, f"--loadInputs={','.join(files)}", "--exportOutput", self.folder / "out")
                # Weights are rounded relative to another number than in the network, and no more of them is lost.
                error = np.linalg.norm(np.load(self.folder / "out/y.npy") - unrounded)
                self.assertLess(error, 1.1 * rounding if of_weights else 1e-3 * np.linalg.norm(unrounded), target)
                if of_weights:
                    self.assertGreater(error, 0.5 * rounding, target)

    def save_block(self, floats, levels):
        """Rows that a sum reads as they are, and a product as levels; gives the model."""
        dtype = helper.tensor_dtype_to_np_dtype(floats)
        nodes, constants = [], []

        def op(kind, inputs, name, **attributes):
            nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
            return name

        def constant(name, values):
            constants.append(numpy_helper.from_array(np.asarray(values, dtype), name))
            return name

        scale = constant("scale", 0.0625)
        constants.append(helper.make_tensor("zero", levels, [], b"\0", raw=True))
        codes = random.integers(0, 0x48, (64, 64)).astype(np.uint8).tobytes()
        constants.append(helper.make_tensor("w", levels, [64, 64], codes, raw=True))
        x = op("LayerNormalization", ["x", constant("g", random.normal(1, 0.1, 64)), constant("b", random.normal(0, 0.1, 64))], "rows")
        x = op("DequantizeLinear", [op("QuantizeLinear", [x, scale, "zero"], "levels"), scale], "rounded")
        w = op("DequantizeLinear", ["w", constant("scale_w", 0.002)], "weights")
        op("Add", [op("MatMul", [x, w], "product"), "rows"], "y")
        x, y = (helper.make_tensor_value_info(name, floats, [24, 64]) for name in "xy")
        graph = helper.make_graph(nodes, "block", [x], [y], constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        onnx.save(model, self.path)
        return model

    def test_rows_and_their_levels_are_one_step_of_a_gpu(self):
        for floats, levels in ((TensorProto.FLOAT16, TensorProto.FLOAT8E4M3FN), (TensorProto.FLOAT16, TensorProto.INT8),
                               (TensorProto.FLOAT, TensorProto.FLOAT8E5M2)):
            model = self.save_block(floats, levels)
            x = random.normal(0, 1, (24, 64)).astype(helper.tensor_dtype_to_np_dtype(floats))
            np.save(self.folder / "x.npy", x)
            engine = self.folder / "e.engine"
            self.checked("build", self.path, "-o", engine, "--target=cuda", "--buildBudget=0")
            self.checked("run", engine, f"--loadInputs=x:{self.folder / 'x.npy'}", "--exportOutput", self.folder / "out")
            wanted = ReferenceEvaluator(model).run(None, {"x": x})[0]
            np.testing.assert_allclose(np.load(self.folder / "out/y.npy"), wanted, atol=0.05)
            shown = self.checked("inspect", engine)
            steps = [line for line in shown.splitlines() if line[:4].strip().isdigit()]
            self.assertEqual(len(steps), 2, shown)
            self.assertIn("rows + levels", shown)
        compared = self.checked("compare", self.path, "--target=cuda", "--buildBudget=0")  # both, of f32
        for name in ("rows", "levels"):
            self.assertRegex(compared, rf"(?m)^{name} +1536 .* good$")

    def save_float8(self):
        """Two layers of f8e4m3fn, of which the second multiplies computed operands that do not run along K."""
        nodes, constants = [], []

        def op(kind, inputs, name, **attributes):
            nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
            return name

        def quantized(x, name):
            return op("DequantizeLinear", [op("QuantizeLinear", [x, "scale"], name + "_q",
                                              output_dtype=TensorProto.FLOAT8E4M3FN), "scale"], name)

        constants.append(numpy_helper.from_array(np.float32(0.125), "scale"))
        codes = random.integers(0, 0x50, (64, 48)).astype(np.uint8).tobytes()
        constants.append(helper.make_tensor("w", TensorProto.FLOAT8E4M3FN, [64, 48], codes, raw=True))
        y = op("MatMul", [quantized("x", "left"), op("DequantizeLinear", ["w", "scale"], "weights")], "y")
        op("MatMul", [quantized(y, "again"), quantized("z", "right")], "product")
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [32, 64]),
                  helper.make_tensor_value_info("z", TensorProto.FLOAT, [48, 16])]
        outputs = [helper.make_tensor_value_info("product", TensorProto.FLOAT, [32, 16])]
        graph = helper.make_graph(nodes, "float8", inputs, outputs, constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), self.path)

    def float_products(self, *words):
        report = self.folder / "report.json"
        shown = self.checked("inspect", self.path, "--buildBudget=0", "--json", report, *words)
        products = json.loads(report.read_text())["float_products"]
        return shown, {product["tensor"]: product["why"] for product in products}

    def test_8_bit_floats_and_reasons_for_wide_ones(self):
        self.save_float8()
        shown, products = self.float_products("--target=cuda")
        self.assertEqual(products, {"product": "both operands are computed, and do not run along K in memory"}, shown)
        self.assertIn(" f8e4m3fn ", shown)
        self.assertNotIn("plain evaluation ", shown)
        shown, products = self.float_products("--target=cpu")
        self.assertEqual(set(products), {"y", "product"}, shown)
        if MULTIPLIES_BYTES:
            self.assertEqual(set(products.values()), {"the target multiplies no 8-bit floats"}, shown)
        self.assertIn(" gemm_weight_only ", shown)

    def save_modelopt(self, scale_of_weights=TensorProto.UINT8, axis=-1):
        """A layer of MXFP8 and one of f8e4m3fn, with the operators of ModelOpt; gives its weights."""
        nodes = []

        def op(kind, inputs, outputs, domain="trt", **attributes):
            nodes.append(helper.make_node(kind, inputs, outputs, outputs[0], domain=domain, **attributes))
            return outputs[0]

        codes = random.integers(0, 0x50, (48, 64)).astype(np.uint8)
        exponents = random.integers(118, 124, (48, 2)).astype(np.uint8)
        blocks = {"axis": axis, "block_size": 32}
        constants = [helper.make_tensor("w", TensorProto.FLOAT8E4M3FN, [48, 64], codes.tobytes(), raw=True),
                     helper.make_tensor("w_scale", scale_of_weights, [48, 2], exponents.tobytes(), raw=True),
                     numpy_helper.from_array(np.float32(0.125), "scale")]
        op("TRT_MXFP8DynamicQuantize", ["x"], ["levels", "scales"], output_dtype=TensorProto.FLOAT8E4M3FN, **blocks)
        x = op("TRT_MXFP8DequantizeLinear", ["levels", "scales"], ["xd"], output_dtype=TensorProto.FLOAT, **blocks)
        w = op("TRT_MXFP8DequantizeLinear", ["w", "w_scale"], ["wd"], output_dtype=TensorProto.FLOAT, **blocks)
        y = op("Gemm", [x, w], ["product"], domain="", transB=1)
        op("TRT_FP8DequantizeLinear", [op("TRT_FP8QuantizeLinear", [y, "scale"], ["again"]), "scale"], ["y"])
        graph = helper.make_graph(nodes, "modelopt", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [20, 64])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [20, 48])], constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("trt", 1)],
                                    ir_version=10), self.path)
        powers = np.exp2(exponents.astype(np.float32) - 127)
        return codes.view(ml_dtypes.float8_e4m3fn).astype(np.float32) * np.repeat(powers, 32, axis=1)

    def test_operators_of_modelopt(self):
        weights = self.save_modelopt()
        x = random.normal(0, 1, (20, 64)).astype(np.float32)
        np.save(self.folder / "x.npy", x)
        blocks = x.reshape(20, 2, 32)
        powers = np.exp2(np.ceil(np.log2(np.abs(blocks).max(-1, keepdims=True) / 448)))
        rounded = ((blocks / powers).astype(ml_dtypes.float8_e4m3fn).astype(np.float32) * powers).reshape(20, 64)
        wanted = rounded @ weights.T
        for target in ("cpu", "cuda"):
            engine = self.folder / "e.engine"
            self.checked("build", self.path, "-o", engine, f"--target={target}", "--buildBudget=0")
            self.checked("run", engine, f"--loadInputs=x:{self.folder / 'x.npy'}", "--exportOutput", self.folder / "out")
            got = np.load(self.folder / "out/y.npy")
            step = 2.0 ** np.floor(np.log2(np.maximum(np.abs(wanted), 1e-6))) / 8  # between neighbouring 8-bit floats
            self.assertTrue((np.abs(got - wanted) <= np.maximum(0.51 * step, 1e-3)).all(), target)
            self.assertNotIn("plain evaluation ", self.checked("inspect", engine))
        self.save_modelopt(axis=0)
        self.assertIn("blocks of 32 along axis 0", self.build().stderr)
        self.save_modelopt(scale_of_weights=TensorProto.INT8)
        self.assertEqual(self.build().returncode, 1)

    def build(self, *words):
        return self.lathe("build", self.path, "-o", self.folder / "e.engine", "--buildBudget=0", *words)

    def test_types_of_layers(self):
        self.assertEqual(self.build("--precisionConstraints=obey", "--layerPrecisions=stem*:fp32").returncode, 0)
        refusals = {
            "--layerPrecisions=nowhere:fp32": "which the network does not have",
            "--layerPrecisions=first:fp16": "'first' cannot compute in f16: the target computes in f32",
            "--layerOutputTypes=first:int8": "cannot be made i8",
        }
        for words, reason in refusals.items():
            result = self.build("--precisionConstraints=obey", words)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn(reason, result.stderr)
        preferred = self.build("--precisionConstraints=prefer", "--layerPrecisions=first:fp16")
        self.assertEqual(preferred.returncode, 0, preferred.stderr)
        self.assertIn("the target computes in f32", preferred.stderr)
        self.assertIn("no effect", self.build("--layerPrecisions=first:fp16").stderr)
        for words in ("--layerPrecisions=first", "--layerPrecisions=first:fp12", "--layerPrecisions=*f*:fp16",
                      "--layerPrecisions=first:int32", "--precisionConstraints=perhaps"):
            self.assertEqual(self.build(words).returncode, 2, words)


    def test_int8_without_quantisation_is_reported(self):
        self.assertNotIn("nothing is quantised", self.build("--int8").stderr)
        graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"], "relu")], "plain",
                                  [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 10])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 10])])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9), self.path)
        self.assertIn("nothing is quantised", self.build("--int8").stderr)
        result = self.build("--precisionConstraints=obey", "--layerPrecisions=relu:int8")
        self.assertEqual(result.returncode, 1)
        self.assertIn("its operands are not quantised", result.stderr)


if __name__ == "__main__":
    unittest.main()
