#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Single operators of the shapes that a list has: as one ONNX model of unconnected nodes, and as PyTorch runs them.

  python3 tools/gpu_check/shapes.py write OUT.onnx     the model; node NAME computes line NAME
  python3 tools/gpu_check/shapes.py torch              microseconds by line, as JSON: cuBLAS, cuDNN + separate epilogues
  python3 tools/gpu_check/shapes.py torch --list FILE  of that list, and not shapes.txt

Epilogues: convolutions have a bias, the residual where the line says so, and ReLU or SiLU; products what the line says. Lines of i8 and f8 (e4m3) multiply
levels and make levels of the result (Q/DQ); PyTorch has products of those alone: of f8 to bf16, sums promoted to f32.
"""
import argparse
import json
import pathlib
import sys

SHAPES = pathlib.Path(__file__).resolve().parent / "shapes.txt"
BYTES = {"i8": 1, "f8": 1, "f16": 2, "bf16": 2, "f32": 4}

LEVELS = ("i8", "f8")


class Shape:
    def __init__(self, line):
        kind, name, self.dtype, *words = line.split()
        self.kind, self.name = kind, f"{kind}-{name}-{self.dtype}"
        self.numbers = [int(word) for word in words if word.isdigit()]
        self.flags = {word for word in words if not word.isdigit()}

    def flop(self):
        n = self.numbers
        if self.kind == "gemm":
            return 2 * n[0] * n[1] * n[2]
        if self.kind == "conv":
            batch, c, h, w, k, r, s, stride, pad = n
            return 2 * batch * k * c * r * s * self.out(h, r) * self.out(w, s)
        return 0

    def out(self, extent, window):
        stride, pad = self.numbers[-2:]
        return (extent + 2 * pad - window) // stride + 1

    def bytes(self):
        """That have to be read and written."""
        n, size = self.numbers, BYTES[self.dtype]
        if self.kind == "gemm":
            return size * (n[0] * n[2] + n[1] * n[2] + n[0] * n[1])
        if self.kind in ("conv", "depthwise"):
            batch, c, h, w = n[:4]
            k, (r, s) = (n[4], n[5:7]) if self.kind == "conv" else (c, n[4:6])
            result = batch * k * self.out(h, r) * self.out(w, s)
            weights = k * r * s * (c if self.kind == "conv" else 1)
            return size * (batch * c * h * w + weights + result * (2 if "residual" in self.flags else 1))
        return 2 * size * n[0] * n[1]


def read_shapes(path=SHAPES, types=tuple(BYTES)):
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return [shape for shape in map(Shape, lines) if shape.dtype in types]


class Writer:
    def __init__(self):
        import ml_dtypes
        import numpy
        self.numpy, self.random = numpy, numpy.random.default_rng(1)
        self.types = {"f16": numpy.float16, "f32": numpy.float32, "bf16": ml_dtypes.bfloat16, "i8": numpy.int8,
                      "f8": ml_dtypes.float8_e4m3fn}
        self.nodes, self.inputs, self.outputs, self.weights = [], [], [], []

    def onnx_type(self, shape):
        from onnx import TensorProto
        return {"f16": TensorProto.FLOAT16, "f32": TensorProto.FLOAT, "bf16": TensorProto.BFLOAT16,
                "i8": TensorProto.INT8, "f8": TensorProto.FLOAT8E4M3FN}[shape.dtype]

    def input(self, shape, suffix, dims):
        from onnx import helper
        self.inputs.append(helper.make_tensor_value_info(f"{shape.name}.{suffix}", self.onnx_type(shape), dims))
        return self.dequantized(shape, suffix)

    def weight(self, shape, suffix, dims):
        from onnx import helper
        values = self.random.standard_normal(dims, dtype=self.numpy.float32) * (30 if shape.dtype == "i8" else 1)
        values = values.astype(self.types[shape.dtype])
        if "sparse" in shape.flags and suffix in "bw" and len(dims) > 1:
            self.prune(values.reshape(dims[0], dims[1], -1), 0 if shape.kind == "gemm" else 1)
        name = f"{shape.name}.{suffix}"
        self.weights.append(helper.make_tensor(name, self.onnx_type(shape), dims, values.tobytes(), raw=True))
        return self.dequantized(shape, suffix)

    def scale(self, shape, suffix, value):
        from onnx import TensorProto, helper
        name = f"{shape.name}.{suffix}.scale"
        self.weights.append(helper.make_tensor(name, TensorProto.FLOAT, [], [value]))
        return name

    def dequantized(self, shape, suffix):
        """What products read of a tensor."""
        name = f"{shape.name}.{suffix}"
        if shape.dtype not in LEVELS:
            return name
        return self.node(shape, "DequantizeLinear", [name, self.scale(shape, suffix, 0.02)], f".{suffix}.dq")

    def result(self, shape, y):
        from onnx import helper
        if shape.dtype in LEVELS:
            y = self.node(shape, "QuantizeLinear", [y, self.scale(shape, "y", 0.5)], ".q",
                          output_dtype=self.onnx_type(shape))
        self.outputs.append(helper.make_tensor_value_info(y, self.onnx_type(shape), None))

    def prune(self, values, dim):
        """Two of each four neighbours become zero, by chance."""
        groups = self.numpy.moveaxis(values, dim, -1).shape
        chance = self.random.random((*groups[:-1], groups[-1] // 4, 4)).argsort(axis=-1) < 2
        self.numpy.moveaxis(values, dim, -1)[chance.reshape(groups)] = 0

    def node(self, shape, op, inputs, suffix="", **attributes):
        from onnx import helper
        name = shape.name + suffix
        self.nodes.append(helper.make_node(op, inputs, [name + ".y"], name=name, **attributes))
        return name + ".y"

    def add(self, shape):
        n = shape.numbers
        if shape.kind == "gemm":
            a = self.input(shape, "a", [n[0], n[2]])
            if "transposed" in shape.flags:
                b = self.node(shape, "Transpose", [self.input(shape, "b", [n[1], n[2]])], ".b", perm=[1, 0])
            else:
                b = (self.weight if "weights" in shape.flags else self.input)(shape, "b", [n[2], n[1]])
            y = self.epilogue(shape, self.node(shape, "MatMul", [a, b]))
        elif shape.kind in ("conv", "depthwise"):
            y = self.add_convolution(shape)
        else:
            x = self.input(shape, "x", n)
            if shape.kind == "layernorm":
                x = [x, self.weight(shape, "scale", n[1:]), self.weight(shape, "bias", n[1:])]
                y = self.node(shape, "LayerNormalization", x)
            else:
                y = self.node(shape, {"softmax": "Softmax", "gelu": "Gelu"}[shape.kind], [x])
        self.result(shape, y)

    def epilogue(self, shape, y):
        """Of a product: what its flags name, the bias first."""
        m, n = shape.numbers[:2]
        if "bias" in shape.flags:
            y = self.node(shape, "Add", [y, self.weight(shape, "bias", [n])], ".bias")
        if "gelu" in shape.flags:
            y = self.node(shape, "Gelu", [y], ".gelu")
        if "residual" in shape.flags:
            y = self.node(shape, "Add", [y, self.input(shape, "r", [m, n])], ".add")
        return y

    def add_convolution(self, shape):
        batch, c, h, w = shape.numbers[:4]
        k, (r, s) = (shape.numbers[4], shape.numbers[5:7]) if shape.kind == "conv" else (c, shape.numbers[4:6])
        stride, pad = shape.numbers[-2:]
        x = self.input(shape, "x", [batch, c, h, w])
        weights = [self.weight(shape, "w", [k, c if shape.kind == "conv" else 1, r, s]), self.weight(shape, "b", [k])]
        y = self.node(shape, "Conv", [x, *weights], strides=[stride] * 2, pads=[pad] * 4,
                      group=1 if shape.kind == "conv" else c)
        if "residual" in shape.flags:
            residual = self.input(shape, "r", [batch, k, shape.out(h, r), shape.out(w, s)])
            y = self.node(shape, "Add", [y, residual], ".add")
        if "silu" in shape.flags:
            return self.node(shape, "Mul", [y, self.node(shape, "Sigmoid", [y], ".sigmoid")], ".silu")
        return self.node(shape, "Relu", [y], ".relu")

    def model(self):
        from onnx import helper
        graph = helper.make_graph(self.nodes, "shapes", self.inputs, self.outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def write(path, shapes):
    writer = Writer()
    for shape in shapes:
        writer.add(shape)
    path.write_bytes(writer.model().SerializeToString())


def torch_work(shape):
    import torch
    import torch.nn.functional as F
    dtype = {"f16": torch.float16, "f32": torch.float32, "bf16": torch.bfloat16}.get(shape.dtype)
    n = shape.numbers

    def tensor(*dims):
        made = torch.randn(dims, device="cuda", dtype=dtype)
        return made.to(memory_format=torch.channels_last) if len(dims) == 4 else made

    if shape.dtype == "i8":
        if shape.kind != "gemm":
            return None
        a, b = (torch.randint(-128, 128, dims, device="cuda", dtype=torch.int8) for dims in ((n[0], n[2]), (n[1], n[2])))
        return lambda: torch._int_mm(a, b.t())
    if shape.dtype == "f8":
        if shape.kind != "gemm":
            return None
        a, b = (torch.randn(dims, device="cuda").to(torch.float8_e4m3fn) for dims in ((n[0], n[2]), (n[1], n[2])))
        one = torch.ones((), device="cuda")
        return lambda: torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16)
    if shape.kind == "gemm":
        a, b = tensor(n[0], n[2]), tensor(n[1], n[2])
        if not shape.flags & {"weights", "transposed"}:
            b = b.t().contiguous()
            return lambda: a @ b
        bias = tensor(n[1]) if "bias" in shape.flags else None
        residual = tensor(n[0], n[1]) if "residual" in shape.flags else None

        def product():
            y = F.linear(a, b, bias)
            y = F.gelu(y) if "gelu" in shape.flags else y
            return y if residual is None else y + residual
        return product
    if shape.kind in ("conv", "depthwise"):
        batch, c, h, w = n[:4]
        k, (r, s) = (n[4], n[5:7]) if shape.kind == "conv" else (c, n[4:6])
        groups = 1 if shape.kind == "conv" else c
        x, weights, bias = tensor(batch, c, h, w), tensor(k, c // groups, r, s), tensor(k)
        residual = tensor(batch, k, shape.out(h, r), shape.out(w, s)) if "residual" in shape.flags else None

        def convolve():
            y = F.conv2d(x, weights, bias, stride=n[-2], padding=n[-1], groups=groups)
            if residual is not None:
                y += residual
            return F.silu(y, inplace=True) if "silu" in shape.flags else y.relu_()
        return convolve
    x, scale, bias = tensor(*n), tensor(n[1]), tensor(n[1])
    return {"layernorm": lambda: F.layer_norm(x, (n[1],), scale, bias), "softmax": lambda: F.softmax(x, -1),
            "gelu": lambda: F.gelu(x)}[shape.kind]


def measure_with_torch(shapes):
    import torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    times, runs = {}, 20
    for shape in shapes:
        work, stream = torch_work(shape), torch.cuda.Stream()
        if work is None:
            continue
        with torch.no_grad(), torch.cuda.stream(stream):
            for _ in range(3):
                work()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                for _ in range(runs):
                    work()
            samples = []
            for _ in range(7):
                start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                start.record(stream)
                graph.replay()
                end.record(stream)
                stream.synchronize()
                samples.append(start.elapsed_time(end) * 1e3 / runs)
        times[shape.name] = sorted(samples)[2]
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("write", "torch"))
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    parser.add_argument("--list", type=pathlib.Path, default=SHAPES)
    arguments = parser.parse_args()
    shapes = read_shapes(arguments.list)
    if arguments.what == "torch":
        json.dump(measure_with_torch(shapes), sys.stdout)
    else:
        write(arguments.out, shapes)


if __name__ == "__main__":
    main()
