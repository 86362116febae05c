#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layers of BERT-large on a GPU in f16, and with products of 8-bit floats by Q/DQ: milliseconds, and how many times as fast as f16.

  python3 tools/gpu_check/float8_encoder.py --build build --out /tmp/encoder [--layers 6] [--batch 32] [--budget 30]

Variants: f16; "products", whose linear layers have activations with a scale of the tensor and weights with one of each
output channel; "attention", which has the products of queries, keys and values in 8 bits as well. Weights are random.
Each is built on the GPU and timed by `lathe trtexec`; OUT/VARIANT.txt has the steps of its engine.
"""
import argparse
import pathlib

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from timed_model import milliseconds

WIDTH, HEADS, HIDDEN, LENGTH = 1024, 16, 4096, 384
VARIANTS = ("f16", "products", "attention")
LARGEST = 448  # of f8e4m3fn


class Encoder:
    def __init__(self, variant):
        self.variant, self.rng = variant, np.random.default_rng(1)
        self.nodes, self.weights = [], []

    def constant(self, value, dtype=np.float16):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def levels(self, value):
        name = f"c{len(self.weights)}"
        self.weights.append(helper.make_tensor(name, TensorProto.FLOAT8E4M3FN, value.shape,
                                               value.astype(ml_dtypes.float8_e4m3fn).tobytes(), raw=True))
        return name

    def node(self, op, *inputs, **attributes):
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        return name

    def quantized(self, x, scale):
        scale = self.constant(scale)
        return self.node("DequantizeLinear", self.node("QuantizeLinear", x, scale, self.levels(np.zeros(()))), scale)

    def linear(self, x, inputs, outputs):
        w = self.rng.standard_normal((outputs, inputs), np.float32) * inputs**-0.5
        if self.variant == "f16":
            w = self.constant(w)
        else:
            scales = np.abs(w).max(1) / LARGEST
            w = self.node("DequantizeLinear", self.levels(w / scales[:, None]), self.constant(scales), axis=0)
        y = self.node("MatMul", x, self.node("Transpose", w, perm=[1, 0]))
        return self.node("Add", y, self.constant(self.rng.standard_normal(outputs) * 0.02))

    def factor(self, x, scale):
        """Of a product of an attention."""
        return self.quantized(x, scale) if self.variant == "attention" else x

    def activations(self, x):
        return x if self.variant == "f16" else self.quantized(x, 0.02)

    def heads(self, x, *perm):
        split = self.constant([0, 0, HEADS, WIDTH // HEADS], np.int64)
        return self.node("Transpose", self.node("Reshape", x, split), perm=perm)

    def attention(self, x):
        x = self.activations(x)
        scale = self.constant((WIDTH // HEADS) ** -0.25)
        q, k, v = (self.linear(x, WIDTH, WIDTH) for _ in range(3))
        q = self.node("Mul", self.heads(q, 0, 2, 1, 3), scale)
        k = self.node("Mul", self.heads(k, 0, 2, 3, 1), scale)
        p = self.node("Softmax", self.node("MatMul", self.factor(q, 0.02), self.factor(k, 0.02)), axis=-1)
        y = self.node("MatMul", self.factor(p, 1 / LARGEST), self.factor(self.heads(v, 0, 2, 1, 3), 0.02))
        y = self.node("Reshape", self.node("Transpose", y, perm=[0, 2, 1, 3]), self.constant([0, 0, WIDTH], np.int64))
        return self.linear(self.activations(y), WIDTH, WIDTH)

    def perceptron(self, x):
        hidden = self.node("Gelu", self.linear(self.activations(x), WIDTH, HIDDEN))
        return self.linear(self.activations(hidden), HIDDEN, WIDTH)

    def normalized(self, x):
        return self.node("LayerNormalization", x, self.constant(np.ones(WIDTH)), self.constant(np.zeros(WIDTH)))

    def model(self, layers, batch):
        x = "x"
        for _ in range(layers):
            x = self.normalized(self.node("Add", x, self.attention(x)))
            x = self.normalized(self.node("Add", x, self.perceptron(x)))
        self.nodes.append(helper.make_node("Identity", [x], ["y"]))
        dims = [batch, LENGTH, WIDTH]
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, dims) for name in "xy"]
        graph = helper.make_graph(self.nodes, "encoder", ends[:1], ends[1:], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--budget", type=int, default=30, help="seconds for the build of an engine")
    parser.add_argument("--variants", nargs="*", default=VARIANTS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    first = None
    for variant in options.variants:
        model = Encoder(variant).model(options.layers, options.batch)
        time = milliseconds(options.build, model, options.out / f"{variant}.onnx", options.budget, 1)
        if time:
            first = first or time
            print(f"{variant:>10} {time:8.3f} ms {first / time:5.2f}x", flush=True)


if __name__ == "__main__":
    main()
