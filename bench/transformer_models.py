#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the transformers that bench/open_sizes.py and bench/quantized.py measure, with open batch and length and random
weights, as PyTorch's exporter spells them: attention as products around a softmax, GELU by Erf. It needs numpy and onnx
alone; bench/open_size_models.py has others, which PyTorch itself exports.
"""
import argparse
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LOWEST = np.finfo(np.float32).min


class Writer:
    """A graph under construction: every method adds nodes and gives the name of their result."""

    def __init__(self):
        self.random, self.nodes, self.weights, self.inputs = np.random.default_rng(1), [], [], []

    def constant(self, value, dtype=np.float32):
        self.weights.append(numpy_helper.from_array(np.array(value, dtype), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def weight(self, *dims, scale=None):
        values = self.random.standard_normal(dims, np.float32)
        return self.constant(values * np.float32(scale or dims[0] ** -0.5))

    def node(self, op, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def input(self, name, kind, *dims):
        self.inputs.append(helper.make_tensor_value_info(name, kind, dims))
        return name

    def tokens(self, vocabulary, width):
        ids = self.input("ids", TensorProto.INT64, "batch", "length")
        return self.node("Gather", self.weight(vocabulary, width, scale=1), ids)

    def linear(self, x, width, out, bias=True):
        y = self.node("MatMul", x, self.weight(width, out))
        return self.node("Add", y, self.weight(out, scale=0.02)) if bias else y

    def layer_norm(self, x, width):
        return self.node("LayerNormalization", x, self.constant(np.ones(width)), self.constant(np.zeros(width)), axis=-1,
                         epsilon=1e-5)

    def rms_norm(self, x, width):
        mean = self.node("ReduceMean", self.node("Pow", x, self.constant(2)), axes=[-1])
        root = self.node("Sqrt", self.node("Add", mean, self.constant(1e-6)))
        return self.node("Mul", self.node("Div", x, root), self.constant(np.ones(width)))

    def gelu(self, x):
        erf = self.node("Erf", self.node("Div", x, self.constant(2**0.5)))
        return self.node("Mul", self.node("Mul", x, self.node("Add", erf, self.constant(1))), self.constant(0.5))

    def gelu_tanh(self, x):
        cube = self.node("Mul", self.node("Pow", x, self.constant(3)), self.constant(0.044715))
        inner = self.node("Mul", self.node("Add", x, cube), self.constant((2 / np.pi) ** 0.5))
        tanh = self.node("Add", self.node("Tanh", inner), self.constant(1))
        return self.node("Mul", self.node("Mul", x, self.constant(0.5)), tanh)

    def silu(self, x):
        return self.node("Mul", x, self.node("Sigmoid", x))

    def perceptron(self, x, width, hidden, act):
        return self.linear(act(self.linear(x, width, hidden)), hidden, width)

    def reshape(self, x, *dims):
        return self.node("Reshape", x, self.constant(dims, np.int64))

    def transpose(self, x, *order):
        return self.node("Transpose", x, perm=order)

    def heads(self, x, heads, size):
        return self.transpose(self.reshape(x, 0, -1, heads, size), 0, 2, 1, 3)

    def attend(self, q, k, v, scale, *masks):
        scores = self.node("MatMul", q, self.transpose(k, 0, 1, 3, 2))
        if scale != 1:
            scores = self.node("Mul", scores, self.constant(scale))
        for mask in masks:
            scores = self.node("Add", scores, mask)
        return self.transpose(self.node("MatMul", self.node("Softmax", scores, axis=-1), v), 0, 2, 1, 3)

    def attention(self, x, width, heads, *masks, bias=True, scale=None):
        size = width // heads
        q, k, v = (self.heads(self.linear(x, width, width, bias), heads, size) for _ in range(3))
        y = self.reshape(self.attend(q, k, v, scale or size**-0.5, *masks), 0, -1, width)
        return self.linear(y, width, width, bias)

    def pre_norm(self, x, width, heads, hidden, act, *masks):
        x = self.node("Add", x, self.attention(self.layer_norm(x, width), width, heads, *masks))
        return self.node("Add", x, self.perceptron(self.layer_norm(x, width), width, hidden, act))

    def length_of(self, x):
        return self.node("Slice", self.node("Shape", x), *(self.constant([i], np.int64) for i in (1, 2)))

    def first(self, table, length, axis):
        """As many of a table's entries along an axis as there are tokens."""
        return self.node("Slice", table, self.constant([0], np.int64), length, self.constant([axis], np.int64))

    def causal_mask(self, x, longest):
        length = self.length_of(x)
        mask = self.constant(np.triu(np.full((1, 1, longest, longest), LOWEST), 1))
        return self.first(self.first(mask, length, 2), length, 3)

    def model(self, result):
        self.nodes.append(helper.make_node("Identity", [result], ["y"]))
        output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "transformer", self.inputs, [output], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def bert(g, width=768, layers=12, heads=12):
    x = g.tokens(8192, width)
    mask = g.node("Cast", g.input("mask", TensorProto.INT64, "batch", "length"), to=TensorProto.FLOAT)
    mask = g.node("Unsqueeze", mask, g.constant([1, 2], np.int64))
    mask = g.node("Mul", g.node("Sub", g.constant(1), mask), g.constant(LOWEST))
    x = g.layer_norm(g.node("Add", x, g.first(g.weight(1, 512, width, scale=0.02), g.length_of(x), 1)), width)
    for _ in range(layers):
        x = g.layer_norm(g.node("Add", x, g.attention(x, width, heads, mask)), width)
        x = g.layer_norm(g.node("Add", x, g.perceptron(x, width, 4 * width, g.gelu)), width)
    return x


def gpt2(g, width=768, longest=1024):
    x = g.tokens(8192, width)
    x = g.node("Add", x, g.first(g.weight(1, longest, width, scale=0.02), g.length_of(x), 1))
    mask = g.causal_mask(x, longest)
    for _ in range(12):
        x = g.pre_norm(x, width, 12, 4 * width, g.gelu_tanh, mask)
    return g.linear(g.layer_norm(x, width), width, 8192, bias=False)


def t5_encoder(g, width=512, heads=8, longest=512):
    x = g.tokens(8192, width)
    length = g.length_of(x)
    bias = g.first(g.first(g.weight(1, heads, longest, longest, scale=0.2), length, 2), length, 3)
    for _ in range(6):
        x = g.node("Add", x, g.attention(g.rms_norm(x, width), width, heads, bias, bias=False, scale=1))
        hidden = g.node("Relu", g.linear(g.rms_norm(x, width), width, 2048, bias=False))
        x = g.node("Add", x, g.linear(hidden, 2048, width, bias=False))
    return g.rms_norm(x, width)


def rotated(g, x, cos, sin, size):
    low, high = g.node("Split", x, outputs=2, axis=-1)
    turned = g.node("Concat", g.node("Neg", high), low, axis=-1)
    return g.node("Add", g.node("Mul", x, cos), g.node("Mul", turned, sin))


def llama(g, width=1024, layers=8, heads=16, shared=4, hidden=2816, longest=1024):
    x, size = g.tokens(8192, width), width // heads
    angles = np.outer(np.arange(longest), 10000.0 ** -(np.arange(0, size, 2) / size))
    tables = (g.constant(f(np.concatenate([angles] * 2, 1))[None, None]) for f in (np.cos, np.sin))
    cos, sin = (g.first(table, g.length_of(x), 2) for table in tables)
    mask = g.causal_mask(x, longest)

    def repeated(kv):
        kv = g.node("Unsqueeze", kv, g.constant([2], np.int64))
        return g.reshape(g.node("Tile", kv, g.constant([1, 1, heads // shared, 1, 1], np.int64)), 0, heads, -1, size)

    for _ in range(layers):
        n = g.rms_norm(x, width)
        q, k, v = (g.heads(g.linear(n, width, count * size, bias=False), count, size) for count in (heads, shared, shared))
        q, k = (rotated(g, value, cos, sin, size) for value in (q, k))
        y = g.reshape(g.attend(q, repeated(k), repeated(v), size**-0.5, mask), 0, -1, width)
        x = g.node("Add", x, g.linear(y, width, width, bias=False))
        n = g.rms_norm(x, width)
        gated = g.node("Mul", g.silu(g.linear(n, width, hidden, bias=False)), g.linear(n, width, hidden, bias=False))
        x = g.node("Add", x, g.linear(gated, hidden, width, bias=False))
    return g.linear(g.rms_norm(x, width), width, 8192, bias=False)


def whisper_encoder(g, width=384):
    x = g.input("spectrum", TensorProto.FLOAT, "batch", 80, 3000)
    for channels, stride in ((80, 1), (width, 2)):
        weight = g.weight(width, channels, 3, scale=(3 * channels) ** -0.5)
        x = g.gelu(g.node("Conv", x, weight, g.weight(width, scale=0.02), pads=[1, 1], strides=[stride]))
    x = g.node("Add", g.transpose(x, 0, 2, 1), g.weight(1, 1500, width, scale=0.02))
    for _ in range(4):
        x = g.pre_norm(x, width, 6, 4 * width, g.gelu)
    return g.layer_norm(x, width)


def patches(g, width, side):
    x = g.input("x", TensorProto.FLOAT, "batch", 3, 224, 224)
    weight = g.weight(width, 3, side, side, scale=(3 * side * side) ** -0.5)
    x = g.node("Conv", x, weight, g.weight(width, scale=0.02), strides=[side, side])
    return g.transpose(g.reshape(x, 0, width, (224 // side) ** 2), 0, 2, 1)


def vit(g, width=768, heads=12):
    x = patches(g, width, 16)
    batch = g.node("Slice", g.node("Shape", x), *(g.constant([i], np.int64) for i in (0, 1)))
    dims = g.node("Concat", batch, g.constant([1, width], np.int64), axis=0)
    x = g.node("Concat", g.node("Expand", g.weight(1, 1, width), dims), x, axis=1)
    x = g.node("Add", x, g.weight(1, 197, width, scale=0.02))
    for _ in range(12):
        x = g.pre_norm(x, width, heads, 4 * width, g.gelu)
    x = g.node("Gather", g.layer_norm(x, width), g.constant(0, np.int64), axis=1)
    return g.linear(x, width, 1000)


def rolled(g, x, shift):
    for axis in (1, 2):
        ends = [g.constant([end], np.int64) for end in (0, shift, 1 << 30, axis)]
        x = g.node("Concat", g.node("Slice", x, ends[1], ends[2], ends[3]), g.node("Slice", x, ends[0], ends[1], ends[3]),
                   axis=axis)
    return x


def shifted_mask(side, window, shift):
    """-100 between places of a window that do not lie side by side in the image, [windows, 1, places, places]."""
    bands = np.zeros(side, np.int64)
    bands[side - window:], bands[side - shift:] = 1, 2
    regions = (bands[:, None] * 3 + bands).reshape(side // window, window, side // window, window)
    regions = regions.transpose(0, 2, 1, 3).reshape(-1, window * window)
    return np.where(regions[:, None] == regions[:, :, None], 0, -100)[:, None]


def window_attention(g, x, width, heads, side, shift, window=7):
    count, size, places = side // window, width // heads, window * window
    x = g.reshape(x, -1, side, side, width)
    x = rolled(g, x, shift) if shift else x
    x = g.transpose(g.reshape(x, -1, count, window, count, window, width), 0, 1, 3, 2, 4, 5)
    x = g.linear(g.reshape(x, -1, places, width), width, 3 * width)
    parts = g.transpose(g.reshape(x, -1, places, 3, heads, size), 2, 0, 3, 1, 4)
    q, k, v = (g.node("Gather", parts, g.constant(i, np.int64), axis=0) for i in range(3))
    scores = g.node("MatMul", g.node("Mul", q, g.constant(size**-0.5)), g.transpose(k, 0, 1, 3, 2))
    scores = g.node("Add", scores, g.weight(1, heads, places, places, scale=0.2))
    if shift:
        scores = g.reshape(scores, -1, count * count, heads, places, places)
        scores = g.node("Add", scores, g.constant(shifted_mask(side, window, shift)[None]))
        scores = g.reshape(scores, -1, heads, places, places)
    y = g.transpose(g.node("MatMul", g.node("Softmax", scores, axis=-1), v), 0, 2, 1, 3)
    y = g.linear(g.reshape(y, -1, places, width), width, width)
    y = g.transpose(g.reshape(y, -1, count, count, window, window, width), 0, 1, 3, 2, 4, 5)
    y = g.reshape(y, -1, side, side, width)
    return g.reshape(rolled(g, y, side - shift) if shift else y, -1, side * side, width)


def swin_t(g, width=96):
    x, side = g.layer_norm(patches(g, width, 4), width), 56
    for stage, layers in enumerate((2, 2, 6, 2)):
        if stage:
            x = g.transpose(g.reshape(x, -1, side // 2, 2, side // 2, 2, width), 0, 1, 3, 4, 2, 5)
            side, width = side // 2, 2 * width
            x = g.linear(g.layer_norm(g.reshape(x, -1, side * side, 2 * width), 2 * width), 2 * width, width, bias=False)
        for layer in range(layers):
            shift = 3 if layer % 2 and side > 7 else 0
            x = g.node("Add", x, window_attention(g, g.layer_norm(x, width), width, width // 32, side, shift))
            x = g.node("Add", x, g.perceptron(g.layer_norm(x, width), width, 4 * width, g.gelu))
    return g.linear(g.node("ReduceMean", g.layer_norm(x, width), axes=[1], keepdims=0), width, 1000)


def experts(g, gathers, width=512, hidden=1792, count=8, chosen=2):
    """Two of eight gated experts for each token: their matrices are gathered, or all are multiplied and most weigh 0."""
    x = g.input("x", TensorProto.FLOAT, "tokens", width)
    best, places = g.node("TopK", g.linear(x, width, count, bias=False), g.constant([chosen], np.int64), outputs=2)
    shares = g.node("Softmax", best, axis=-1)
    first, third = (g.weight(count, width, hidden, scale=width**-0.5) for _ in range(2))
    second = g.weight(count, hidden, width, scale=hidden**-0.5)
    if gathers:
        rows = g.node("Unsqueeze", x, g.constant([1, 2], np.int64))
        product = lambda rows, weights: g.node("MatMul", rows, g.node("Gather", weights, places))
        y = product(g.node("Mul", g.silu(product(rows, first)), product(rows, third)), second)
        y = g.node("Mul", y, g.node("Unsqueeze", shares, g.constant([2, 3], np.int64)))
        return g.node("ReduceSum", y, g.constant([1, 2], np.int64), keepdims=0)
    scores = g.node("ConstantOfShape", g.node("Concat", g.node("Slice", g.node("Shape", x), *(g.constant([i], np.int64) for i in (0, 1))),
                                              g.constant([count], np.int64), axis=0))
    weights = g.transpose(g.node("ScatterElements", scores, places, shares, axis=1), 1, 0)
    product = lambda x, weights: g.node("MatMul", x, weights)
    y = product(g.node("Mul", g.silu(product(x, first)), product(x, third)), second)
    return g.node("ReduceSum", g.node("Mul", y, g.node("Unsqueeze", weights, g.constant([2], np.int64))),
                  g.constant([0], np.int64), keepdims=0)


NETWORKS = {
    "experts_gathered": lambda g: experts(g, gathers=True),
    "experts_weighed": lambda g: experts(g, gathers=False),
    "bert_base": bert,
    "minilm": lambda g: bert(g, 384, 6),
    "t5_small_encoder": t5_encoder,
    "gpt2": gpt2,
    "llama": llama,
    "whisper_tiny_encoder": whisper_encoder,
    "vit_b_16": vit,
    "deit_s": lambda g: vit(g, 384, 6),
    "swin_t": swin_t,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="where NAME.onnx go")
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), choices=NETWORKS)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.networks:
        writer = Writer()
        model = writer.model(NETWORKS[name](writer))
        onnx.save(onnx.shape_inference.infer_shapes(model), arguments.folder / f"{name}.onnx")
        print(name, flush=True)


if __name__ == "__main__":
    main()
