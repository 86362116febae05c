#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes networks of packed weights for bench_networks, and the same in f16: `experts_int4` and the like are a mixture of
eight experts of 1024 x 3584, of which two are chosen for each token; `product_2048x8192_int8` and the like one product.
Matrices of 4 and 8 bits have a scale for 32 neighbours along K. The number of rows is open."""
import argparse
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper

BLOCK = 32
TYPES = {"int4": TensorProto.INT4, "int8": TensorProto.INT8, "mxfp4": TensorProto.FLOAT4E2M1}


class Network:
    def __init__(self, kind):
        self.kind = kind
        self.random = np.random.default_rng(0)
        self.nodes, self.weights = [], []

    def node(self, op, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, f"{op}{len(self.nodes)}", **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, array):
        return self.raw(helper.np_dtype_to_tensor_dtype(array.dtype), array.shape, array.tobytes())

    def raw(self, kind, dims, content):
        name = f"w{len(self.weights)}"
        self.weights.append(helper.make_tensor(name, kind, dims, content, raw=True))
        return name

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def floats(self, dims, scale):
        pool = self.random.standard_normal(1 << 18, np.float32) * scale
        return self.constant(np.resize(pool, dims).astype(np.float16))

    def matrix(self, *dims, k):
        """`k`: the axis that is summed over."""
        if self.kind == "f16":
            return self.floats(dims, dims[k] ** -0.5)
        codes = np.prod(dims) * (8 if self.kind == "int8" else 4) // 8
        levels = self.raw(TYPES[self.kind], dims, np.resize(self.random.integers(0, 256, 1 << 18, np.uint8), codes).tobytes())
        blocks = [dim // BLOCK if axis == k else dim for axis, dim in enumerate(dims)]
        if self.kind == "mxfp4":
            scales = self.raw(TensorProto.FLOAT8E8M0, blocks, np.full(blocks, 121, np.uint8).tobytes())
            return self.node("DequantizeLinear", levels, scales, axis=k, block_size=BLOCK, output_dtype=TensorProto.FLOAT16)
        step = dims[k] ** -0.5 / (64 if self.kind == "int8" else 4)
        scales = self.constant((self.random.uniform(0.5, 1.5, blocks) * step).astype(np.float16))
        return self.node("DequantizeLinear", levels, scales, axis=k, block_size=BLOCK)

    def write(self, path, y, width_in, width_out):
        self.nodes.append(helper.make_node("Identity", [y], ["y"]))
        sides = [[helper.make_tensor_value_info(name, TensorProto.FLOAT16, ["rows", width])]
                 for name, width in (("x", width_in), ("y", width_out))]
        graph = helper.make_graph(self.nodes, path.stem, *sides, self.weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13), path)


def experts(kind, path, width=1024, hidden=3584, count=8, chosen=2):
    net = Network(kind)
    best, places = net.node("TopK", net.node("MatMul", "x", net.floats((width, count), width**-0.5)), net.ints(chosen), outputs=2)
    shares = net.node("Softmax", best, axis=-1)

    def product(rows, matrices):
        return net.node("Squeeze", net.node("MatMul", net.node("Gather", matrices, places), rows), net.ints(3))
    both = product(net.node("Unsqueeze", "x", net.ints(1, 3)), net.matrix(count, 2 * hidden, width, k=2))
    gate, up = net.node("Split", both, net.ints(hidden, hidden), axis=2, outputs=2)
    y = net.node("Mul", up, net.node("Mul", gate, net.node("Sigmoid", gate)))
    y = product(net.node("Unsqueeze", y, net.ints(3)), net.matrix(count, width, hidden, k=2))
    y = net.node("Mul", y, net.node("Unsqueeze", shares, net.ints(2)))
    net.write(path, net.node("ReduceSum", y, net.ints(1), keepdims=0), width, width)


def product(kind, path, k, n):
    net = Network(kind)
    net.write(path, net.node("MatMul", "x", net.matrix(k, n, k=0)), k, n)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--kinds", nargs="+", default=["f16", *TYPES], choices=["f16", *TYPES])
    parser.add_argument("--products", nargs="+", default=["2048x8192", "8192x2048"], metavar="KxN")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for kind in options.kinds:
        experts(kind, options.folder / f"experts_{kind}.onnx")
        for sizes in options.products:
            product(kind, options.folder / f"product_{sizes}_{kind}.onnx", *map(int, sizes.split("x")))


if __name__ == "__main__":
    main()
