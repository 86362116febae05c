#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layers of recurrent networks, 128 steps: as ONNX models of one layer each, and as PyTorch runs them (cuDNN).

  python3 tools/gpu_check/recurrences.py write NAME OUT.onnx     NAME as in `list`: lstm-256-1
  python3 tools/gpu_check/recurrences.py torch                   milliseconds by NAME-TYPE, as JSON: torch.nn.LSTM, GRU
  python3 tools/gpu_check/recurrences.py list

The input is as wide as the layer. GRUs reset after the product (linear_before_reset), as PyTorch's do. Products of f32
may use TF32 on both sides.
"""
import argparse
import json
import pathlib
import sys

STEPS = 128
GATES = {"lstm": 4, "gru": 3}
LAYERS = {f"{cell}-{hidden}-{batch}": (cell, hidden, batch)
          for cell in GATES for hidden in (256, 512, 1024) for batch in (1, 16)}
TYPES = ("f32", "f16")


def write(name, path):
    import numpy
    from onnx import TensorProto, helper, numpy_helper
    cell, hidden, batch = LAYERS[name]
    rows, random = GATES[cell] * hidden, numpy.random.default_rng(1)
    weights = [numpy_helper.from_array((random.uniform(-1, 1, dims) * hidden**-0.5).astype(numpy.float32), leaf)
               for leaf, dims in (("w", (1, rows, hidden)), ("r", (1, rows, hidden)), ("b", (1, 2 * rows)))]
    extra = {"linear_before_reset": 1} if cell == "gru" else {}
    node = helper.make_node(cell.upper(), ["x", "w", "r", "b"], ["y"], name=name, hidden_size=hidden, **extra)
    graph = helper.make_graph([node], name,
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [STEPS, batch, hidden])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [STEPS, 1, batch, hidden])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path.write_bytes(model.SerializeToString())


def time_with_torch(name, dtype):
    import torch
    cell, hidden, batch = LAYERS[name]
    make = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[cell]
    layer = make(hidden, hidden).to("cuda", {"f32": torch.float32, "f16": torch.float16}[dtype]).eval()
    layer.flatten_parameters()
    x = torch.randn(STEPS, batch, hidden, device="cuda", dtype=next(layer.parameters()).dtype)
    stream, runs, samples = torch.cuda.Stream(), 20, []
    with torch.no_grad(), torch.cuda.stream(stream):
        for _ in range(3):
            layer(x)
        for _ in range(7):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record(stream)
            for _ in range(runs):
                layer(x)
            end.record(stream)
            stream.synchronize()
            samples.append(start.elapsed_time(end) / runs)
    return sorted(samples)[len(samples) // 2]


def measure_with_torch():
    import torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    return {f"{name}-{dtype}": time_with_torch(name, dtype) for name in LAYERS for dtype in TYPES}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("write", "torch", "list"))
    parser.add_argument("name", nargs="?", choices=sorted(LAYERS))
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.what == "torch":
        json.dump(measure_with_torch(), sys.stdout)
    elif arguments.what == "list":
        print(*LAYERS, sep="\n")
    elif arguments.name and arguments.out:
        write(arguments.name, arguments.out)
    else:
        parser.error("write needs NAME and OUT.onnx")


if __name__ == "__main__":
    main()
