#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products of bf16 on CPUs: who asks for them, what they weigh, and how far results are off."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LATHE = pathlib.Path(os.environ["LATHE_BUILD_DIR"], "bin/lathe")
SIZE = 256  # of the matrices: 256 KiB in f32


def save_model(path, element_type):
    """relu(x w) v, of factors of the type."""
    random = np.random.default_rng(1)
    weights = []
    for name in "wv":
        values = random.standard_normal((SIZE, SIZE)).astype(np.float32) / 16
        tensor = numpy_helper.from_array(values, name)
        if element_type == TensorProto.BFLOAT16:
            bits = values.view(np.uint32)
            tensor = helper.make_tensor(name, element_type, values.shape, (bits >> 16).astype(np.uint16).tobytes(), raw=True)
        weights.append(tensor)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("MatMul", ["b", "v"], ["y"])]
    value = [helper.make_tensor_value_info(name, element_type, [24, SIZE]) for name in "xy"]
    onnx.save(helper.make_model(helper.make_graph(nodes, "products", value[:1], value[1:], weights),
                                opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)


class Bf16(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        for name, element_type in (("f32", TensorProto.FLOAT), ("bf16", TensorProto.BFLOAT16)):
            save_model(self.path / f"{name}.onnx", element_type)

    def lathe(self, *words):
        done = subprocess.run([str(word) for word in (LATHE, *words)], capture_output=True, text=True,
                              env=os.environ | {"LATHE_CACHE_DIR": self.folder.name})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def build(self, model, target, *options):
        engine = self.path / "engine"
        self.lathe("build", self.path / f"{model}.onnx", "-o", engine, f"--target={target}", "--buildBudget=0", *options)
        return engine

    def weights(self, *arguments):
        """KiB of an engine's weights, about: of matrices of 256 x 256."""
        return round(self.build(*arguments).stat().st_size / (SIZE * SIZE * 2)) * 128

    def test_who_has_bf16(self):
        self.assertEqual(self.weights("f32", "cpu-x86_64-bf16"), 512)
        self.assertEqual(self.weights("f32", "cpu-x86_64-bf16", "--fp16"), 512)
        self.assertEqual(self.weights("f32", "cpu-x86_64-bf16", "--bf16"), 256)
        self.assertEqual(self.weights("bf16", "cpu-x86_64-bf16"), 256)
        for other in ("cpu-x86_64-avx2", "cpu-arm64"):
            self.assertEqual(self.weights("f32", other, "--bf16"), 512)
            self.assertEqual(self.weights("bf16", other), 512)

    def test_layers_that_stay_f32(self):
        layers = ("--precisionConstraints=obey", "--layerPrecisions=*:fp32")
        self.assertEqual(self.weights("f32", "cpu-x86_64-bf16", "--bf16", *layers), 512)

    def test_plans_for_several_targets(self):
        engine = self.path / "fat"
        self.lathe("build", self.path / "f32.onnx", "-o", engine, "--targets=cpu-x86_64-bf16,cpu-x86_64-avx2", "--bf16",
                   "--buildBudget=0")
        self.assertEqual(round(engine.stat().st_size / (SIZE * SIZE * 2)), 2 + 4)  # weights in both types

    def test_attention_without_a_scale_has_a_kernel(self):
        """As T5 has it: random queries that nothing makes small would have scores whose rounding decides the result."""
        inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
                  for name, dims in (("q", [1, 8, 128, 64]), ("k", [1, 8, 128, 64]), ("v", [1, 8, 128, 64]))]
        bias = np.random.default_rng(1).standard_normal((1, 8, 128, 128)).astype(np.float32) / 6
        nodes = [helper.make_node("Transpose", ["k"], ["keys"], perm=[0, 1, 3, 2]),
                 helper.make_node("MatMul", ["q", "keys"], ["products"]), helper.make_node("Add", ["products", "bias"], ["scores"]),
                 helper.make_node("Softmax", ["scores"], ["weights"], axis=-1),
                 helper.make_node("MatMul", ["weights", "v"], ["y"])]
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 128, 64])
        onnx.save(helper.make_model(helper.make_graph(nodes, "attention", inputs, [y], [numpy_helper.from_array(bias, "bias")]),
                                    opset_imports=[helper.make_opsetid("", 18)], ir_version=9), self.path / "attention.onnx")
        shown = self.lathe("inspect", self.path / "attention.onnx", "--target=cpu", "--bf16", "--buildBudget=2")
        self.assertIn("attention  attention", shown)
        self.assertNotIn("plain evaluation  ", shown)

    def test_results(self):
        """Each factor is off by 2^-8 of itself at most, so is each product by 2^-7 of it, and a sum of magnitudes."""
        x = np.random.default_rng(2).standard_normal((24, SIZE), np.float32)
        np.save(self.path / "x.npy", x)
        w, v = (numpy_helper.to_array(tensor).astype(np.float64) for tensor in onnx.load(self.path / "f32.onnx").graph.initializer)
        a = x.astype(np.float64) @ w
        b = np.maximum(a, 0)
        bound = 2**-7 * (np.abs(x) @ np.abs(w)) @ np.abs(v) + 2**-7 * b @ np.abs(v)
        for options in ([], ["--bf16"]):
            engine = self.build("f32", "cpu", *options)
            self.lathe("run", engine, f"--loadInputs=x:{self.path / 'x.npy'}", "--exportOutput", self.path / "out")
            error = np.abs(np.load(self.path / "out/y.npy") - b @ v)
            self.assertTrue((error <= (bound * 1.02 if options else 1e-4)).all(), error.max())


if __name__ == "__main__":
    unittest.main()
