#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An ONNX model as PyTorch runs it on a GPU: float16, channels last, torch.compile with CUDA graphs.

Prints one line of JSON: {"eager_ms", "compiled_ms"}: medians of GPU time per run, replayed back to back, on random
normal input. Only the operators of the networks that tools/models writes are translated.
"""
import argparse
import json
import statistics
import sys

import numpy
import onnx
import torch
import torch.fx
import torch.nn.functional as F


def attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def pool_padding(pads):
    half = len(pads) // 2
    if list(pads[:half]) != list(pads[half:]):
        raise ValueError(f"asymmetric padding {pads}")
    return list(pads[:half])


class Network(torch.nn.Module):
    """Weights are parameters; integer constants (shapes, axes) stay on the host, as Python lists."""

    def __init__(self, model):
        super().__init__()
        self.graph = model.graph
        self.weights = torch.nn.ParameterDict()
        self.numbers = {}
        self.scales = {node.input[2] for node in model.graph.node if node.op_type == "Resize" and len(node.input) > 2}
        for tensor in model.graph.initializer:
            self.define(tensor.name, onnx.numpy_helper.to_array(tensor))
        for node in model.graph.node:
            if node.op_type == "Constant":
                self.define(node.output[0], onnx.numpy_helper.to_array(attributes(node)["value"]))

    def define(self, name, array):
        if array.dtype == numpy.float32 and array.size > 0 and array.ndim > 0 and name not in self.scales:
            key = f"w{len(self.weights)}"
            self.weights[key] = torch.nn.Parameter(torch.from_numpy(array.copy()), requires_grad=False)
            self.numbers[name] = key
        else:
            self.numbers[name] = array.tolist()

    def forward(self, x):
        values = {self.graph.input[0].name: x}

        def get(name):
            if name in values:
                return values[name]
            known = self.numbers[name]
            return self.weights[known] if isinstance(known, str) else known

        for node in self.graph.node:
            if node.op_type == "Constant":
                continue
            inputs = [get(name) if name else None for name in node.input]
            result = getattr(self, "op_" + node.op_type)(attributes(node), *inputs)
            several = len(node.output) > 1
            values.update((name, result[i] if several else result) for i, name in enumerate(node.output))
        return [values[output.name] for output in self.graph.output]

    def op_Conv(self, a, x, w, b=None):
        return F.conv2d(x, w, b, a.get("strides", [1, 1]), pool_padding(a.get("pads", [0] * 4)),
                        a.get("dilations", [1, 1]), a.get("group", 1))

    def op_BatchNormalization(self, a, x, scale, bias, mean, variance):
        return F.batch_norm(x, mean, variance, scale, bias, False, 0.0, a.get("epsilon", 1e-5))

    def op_Gemm(self, a, x, w, b=None):
        return F.linear(x, w if a.get("transB", 0) else w.t(), b)

    def op_MatMul(self, a, x, y):
        return torch.matmul(x, y)

    def op_MaxPool(self, a, x):
        return F.max_pool2d(x, a["kernel_shape"], a.get("strides"), pool_padding(a.get("pads", [0] * 4)))

    def op_GlobalAveragePool(self, a, x):
        return x.mean((2, 3), keepdim=True)

    def op_ReduceMean(self, a, x, axes=None):
        return x.mean(tuple(a.get("axes", axes)), keepdim=bool(a.get("keepdims", 1)))

    def op_Resize(self, a, x, roi=None, scales=None, sizes=None):
        return F.interpolate(x, scale_factor=scales[2:] if scales else None, size=sizes[2:] if sizes else None,
                             mode="nearest")

    def op_Clip(self, a, x, low=None, high=None):
        return torch.clamp(x, low, high)

    def op_Split(self, a, x, sizes=None):
        axis = a.get("axis", 0)
        sizes = a.get("split", sizes)
        return torch.split(x, sizes, axis) if sizes else torch.chunk(x, a["num_outputs"], axis)

    def op_Slice(self, a, x, starts, ends, axes=None, steps=None):
        for i, (start, end) in enumerate(zip(starts, ends)):
            axis = axes[i] if axes else i
            x = x.narrow(axis, start, min(end, x.shape[axis]) - start)
        return x

    def op_Reshape(self, a, x, shape):
        return x.reshape([x.shape[i] if d == 0 else d for i, d in enumerate(shape)])

    def op_Relu(self, a, x):
        return F.relu(x)

    def op_Sigmoid(self, a, x):
        return torch.sigmoid(x)

    def op_HardSigmoid(self, a, x):
        return F.hardsigmoid(x)

    def op_Mul(self, a, x, y):
        return x * y

    def op_Add(self, a, x, y):
        return x + y

    def op_Sub(self, a, x, y):
        return x - y

    def op_Div(self, a, x, y):
        return x / y

    def op_Concat(self, a, *parts):
        return torch.cat(parts, a["axis"])

    def op_Transpose(self, a, x):
        return x.permute(a["perm"])

    def op_Softmax(self, a, x):
        return torch.softmax(x, a.get("axis", -1))

    def op_Flatten(self, a, x):
        return x.flatten(a.get("axis", 1))

    def op_Identity(self, a, x):
        return x


def median_ms(run, repeats=50, rounds=11):
    times = []
    for _ in range(rounds):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(repeats):
            run()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / repeats)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--wait", action="store_true",
                        help="after compiling, print a line, and measure when one comes in")
    arguments = parser.parse_args()
    model = onnx.load(arguments.model)
    network = torch.fx.symbolic_trace(Network(model))  # torch.compile need not see the ONNX file
    network = network.cuda().half().eval().to(memory_format=torch.channels_last)
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    x = torch.randn([arguments.batch, *shape[1:]], device="cuda").half().to(memory_format=torch.channels_last)
    with torch.inference_mode():
        for _ in range(3):
            network(x)
        if not arguments.no_compile:
            compiled = torch.compile(network, mode="reduce-overhead", fullgraph=True)
            for _ in range(5):
                compiled(x)
        torch.cuda.synchronize()
        if arguments.wait:
            print("compiled", flush=True)
            sys.stdin.readline()
        result = {"eager_ms": median_ms(lambda: network(x), 10)}
        if not arguments.no_compile:
            result["compiled_ms"] = median_ms(lambda: compiled(x))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
