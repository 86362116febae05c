#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products of 8-bit floats with scales by blocks on a GPU, beside those of f16 and PyTorch's: microseconds and TFLOP/s.

  python3 tools/gpu_check/block_scales.py --build build --out /tmp/blocks [--shapes 4096x4096x4096 512x2048x7168]

Shapes are rows x columns x K. Variants: f16; "blocks", whose activations are inputs of f8e4m3fn with scales of 1 x 128
and whose weights have scales of 128 x 128; "columns", whose weights have scales of 1 x 128; "quantised", whose
activations of f16 are quantised in blocks by the network. Each is built on the GPU and timed by `lathe trtexec`.
"""
import argparse
import pathlib

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from timed_model import milliseconds

SHAPES = ("4096x4096x4096", "512x2048x7168", "4096x2048x7168", "1x2048x7168", "16x2048x7168", "64x2048x7168")
VARIANTS = ("f16", "blocks", "columns", "quantised")
BLOCK = 128


def weights(n, k, variant, rng):
    """Initializers and the node that dequantises them; scales of 128 x 128 are repeated along the rows."""
    levels = np.clip(rng.standard_normal((n, k), np.float32) * 100, -448, 448).astype(ml_dtypes.float8_e4m3fn)
    rows = n if variant == "columns" else -(-n // BLOCK)
    scales = rng.uniform(1e-4, 2e-4, (rows, -(-k // BLOCK))).astype(np.float32)
    if variant != "columns":
        scales = np.repeat(scales, BLOCK, 0)[:n]
    node = helper.make_node("DequantizeLinear", ["levels", "scales"], ["w"], axis=1, block_size=BLOCK)
    tensors = [helper.make_tensor("levels", TensorProto.FLOAT8E4M3FN, levels.shape, levels.tobytes(), raw=True),
               numpy_helper.from_array(scales, "scales")]
    return tensors, [node]


def activations(k):
    """x[M, K] of f16 to levels and scales, by the largest magnitude of each block."""
    blocks = -(-k // BLOCK)
    tensors = [numpy_helper.from_array(np.array([0, blocks, BLOCK], np.int64), "split"),
               numpy_helper.from_array(np.array([2], np.int64), "last"),
               numpy_helper.from_array(np.array(1e-4, np.float32), "least"),
               numpy_helper.from_array(np.array(448, np.float32), "most")]
    nodes = [helper.make_node("Cast", ["x"], ["wide"], to=TensorProto.FLOAT),
             helper.make_node("Reshape", ["wide", "split"], ["blocks"]), helper.make_node("Abs", ["blocks"], ["abs"]),
             helper.make_node("ReduceMax", ["abs", "last"], ["largest"], keepdims=0),
             helper.make_node("Max", ["largest", "least"], ["bounded"]), helper.make_node("Div", ["bounded", "most"], ["s"]),
             helper.make_node("QuantizeLinear", ["wide", "s"], ["q"], axis=1, block_size=BLOCK,
                              output_dtype=TensorProto.FLOAT8E4M3FN)]
    return tensors, nodes


def model(m, n, k, variant):
    rng = np.random.default_rng(1)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [m, k])]
    tensors, nodes = [], []
    if variant == "f16":
        tensors = [numpy_helper.from_array((rng.standard_normal((k, n)) * 0.02).astype(np.float16), "w")]
        nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    else:
        tensors, nodes = weights(n, k, variant, rng)
        if variant == "quantised":
            more, before = activations(k)
            tensors, nodes = tensors + more, nodes + before
        else:
            inputs = [helper.make_tensor_value_info("q", TensorProto.FLOAT8E4M3FN, [m, k]),
                      helper.make_tensor_value_info("s", TensorProto.FLOAT, [m, -(-k // BLOCK)])]
        nodes += [helper.make_node("DequantizeLinear", ["q", "s"], ["d"], axis=1, block_size=BLOCK),
                  helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]), helper.make_node("MatMul", ["d", "t"], ["p"]),
                  helper.make_node("Cast", ["p"], ["y"], to=TensorProto.FLOAT16)]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT16, [m, n])
    graph = helper.make_graph(nodes, "product", inputs, [output], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--budget", type=int, default=10, help="seconds for the build of an engine")
    parser.add_argument("--shapes", nargs="*", default=SHAPES)
    parser.add_argument("--variants", nargs="*", default=VARIANTS)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for shape in arguments.shapes:
        m, n, k = (int(size) for size in shape.split("x"))
        for variant in arguments.variants:
            path = arguments.out / f"{variant}-{shape}.onnx"
            time = milliseconds(arguments.build, model(m, n, k, variant), path, arguments.budget, 0.3)
            if time is None:
                continue
            print(f"{shape:>16} {variant:>10} {1e3 * time:8.1f} us {2e-9 * m * n * k / time:6.0f} TFLOP/s", flush=True)


if __name__ == "__main__":
    main()
