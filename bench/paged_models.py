#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a step of a llama-like decoder whose keys and values lie in one buffer for each sequence, or in blocks of a pool
that a table names: `contiguous` (GroupQueryAttention), `paged_16` and the like (PagedAttention), `gathered_16` (blocks that
Gather reads, before attention as exporters write it). Sequences have `--used` tokens of 1024, a few less each. What is
read from inputs stays as it is whatever they hold, for bench_networks fills them randomly."""
import argparse
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CONTEXT, WIDTH, HEADS, SHARED, SIZE, HIDDEN = 1024, 2048, 32, 8, 64, 8192


class Model:
    def __init__(self, batch, layers, used, dtype):
        self.batch, self.layers, self.dtype = batch, layers, dtype
        self.type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.random = np.random.default_rng(0)
        self.pool = self.random.standard_normal(1 << 20, np.float32)
        self.nodes, self.weights, self.inputs, self.outputs = [], [], [], []
        self.past = used - 1 - 5 * np.arange(batch)

    def node(self, op, *inputs, outputs=1, domain="", **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, f"{op}{len(self.nodes)}", domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def matrix(self, rows, columns):
        """No two are equal, for those would be one tensor."""
        values = np.resize(np.roll(self.pool, 1009 * len(self.weights)), (rows, columns))
        return self.constant((values / np.float32(np.sqrt(rows))).astype(self.dtype))

    def input(self, name, kind, dims):
        self.inputs.append(helper.make_tensor_value_info(name, kind, dims))
        return name

    def numbers(self, name, array):
        """Integers that are those of the array whatever the input of that name holds."""
        array = np.asarray(array, np.int32)
        given = self.input(name, TensorProto.INT32, list(array.shape))
        is_large = self.node("Greater", given, self.constant(np.int32(1 << 30)))
        return self.node("Where", is_large, given, self.constant(array))

    def cache(self, name, dims):
        return self.input(name, self.type, dims)

    def norm(self, x):
        scale = self.constant(np.ones(WIDTH, self.dtype))
        return self.node("SimplifiedLayerNormalization", x, scale, domain="com.microsoft", axis=-1, epsilon=1e-5)

    def rotations(self):
        angles = np.outer(np.arange(CONTEXT), 500000.0 ** -(np.arange(0, SIZE, 2) / SIZE))
        return [self.constant(table.astype(self.dtype)) for table in (np.cos(angles), np.sin(angles))]

    def keep(self, name):
        self.outputs.append(name)

    def shape(self, x, *dims):
        return self.node("Reshape", x, self.constant(np.array(dims, np.int64)))

    def write(self, form, path):
        attend = getattr(self, form.split("_")[0])(*map(int, form.split("_")[1:]))
        x = self.input("x", self.type, [self.batch, WIDTH])
        for layer in range(self.layers):
            normal = self.norm(x)
            width = WIDTH + 2 * SHARED * SIZE
            y = attend(layer, self.node("MatMul", normal, self.matrix(WIDTH, width)))
            x = self.node("Add", x, self.node("MatMul", y, self.matrix(WIDTH, WIDTH)))
            normal = self.norm(x)
            gate = self.node("MatMul", normal, self.matrix(WIDTH, HIDDEN))
            gate = self.node("Mul", gate, self.node("Sigmoid", gate))
            up = self.node("Mul", gate, self.node("MatMul", normal, self.matrix(WIDTH, HIDDEN)))
            x = self.node("Add", x, self.node("MatMul", up, self.matrix(HIDDEN, WIDTH)))
        self.keep(x)
        results = [helper.make_tensor_value_info(name, self.type, None) for name in self.outputs]
        graph = helper.make_graph(self.nodes, form, self.inputs, results, self.weights)
        opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)

    def contiguous(self):
        tables, lengths = self.rotations(), self.numbers("past", self.past)
        total = self.constant(np.int32(CONTEXT))

        def attend(layer, rows):
            caches = [self.cache(f"{what}{layer}", [self.batch, SHARED, CONTEXT, SIZE]) for what in ("keys", "values")]
            y, *written = self.node("GroupQueryAttention", self.shape(rows, self.batch, 1, -1), "", "", *caches, lengths, total, *tables, outputs=3,
                                    domain="com.microsoft", num_heads=HEADS, kv_num_heads=SHARED, do_rotary=1)
            for name in written:
                self.keep(name)
            return self.shape(y, self.batch, -1)
        return attend

    def tables(self, block):
        """Of blocks in random order, each of one sequence."""
        blocks = self.batch * CONTEXT // block
        table = self.random.permutation(blocks).reshape(self.batch, -1)
        return blocks, self.numbers("table", table)

    def paged(self, block):
        tables, past = self.rotations(), self.numbers("past", self.past)
        starts = self.numbers("starts", np.arange(self.batch + 1))
        blocks, table = self.tables(block)

        def attend(layer, rows):
            caches = [self.cache(f"{what}{layer}", [blocks, block, SHARED, SIZE]) for what in ("keys", "values")]
            y, *written = self.node("PagedAttention", rows, "", "", *caches, starts, past, table, *tables, outputs=3, domain="com.microsoft",
                                    num_heads=HEADS, kv_num_heads=SHARED, do_rotary=1)
            for name in written:
                self.keep(name)
            return y
        return attend

    def gathered(self, block):
        """Of caches that hold the new token already: neither rotations nor writes."""
        blocks, table = self.tables(block)
        places = self.node("Range", *(self.constant(np.int64(n)) for n in (0, CONTEXT, 1)))
        ends = self.node("Cast", self.shape(self.numbers("past", self.past), self.batch, 1, 1, 1), to=TensorProto.INT64)
        mask = self.node("LessOrEqual", places, ends)

        def attend(layer, rows):
            query = self.node("Slice", rows, *(self.constant(np.array([n], np.int64)) for n in (0, WIDTH, 1)))
            query = self.shape(query, self.batch, HEADS, 1, SIZE)
            keys, values = (self.node("Transpose", self.shape(self.node("Gather", self.cache(f"{what}{layer}", [blocks, block, SHARED, SIZE]), table),
                                                              self.batch, CONTEXT, SHARED, SIZE), perm=[0, 2, 1, 3]) for what in ("keys", "values"))
            return self.shape(self.node("Attention", query, keys, values, mask), self.batch, -1)
        return attend


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--forms", nargs="+", default=["contiguous", "paged_16", "paged_256", "gathered_16"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--used", type=int, default=CONTEXT, help="tokens of the longest sequence, the new one included")
    parser.add_argument("--type", default="float16", choices=("float16", "float32"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for form in options.forms:
        for batch in options.batches:
            path = options.folder / f"{form}.{batch}.onnx"
            Model(batch, options.layers, options.used, np.dtype(options.type).type).write(form, path)
            print(path, flush=True)


if __name__ == "__main__":
    main()
