# SPDX-License-Identifier: Apache-2.0
"""Times ONNX Runtime on the layers of `bench_kernels list`: one chain of Conv nodes per layer, so that its own layout
changes stay outside, with the activation fused where it can. Usage: onnxruntime_layers.py BENCH_KERNELS [threads] [filter]
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

COPIES = 3  # of the layer in one model; the fastest of the later ones counts


def model(kind, channels, out_channels, kernel, stride, size, program):
    groups = channels if kind == 2 else 1
    rng = np.random.default_rng(0)
    out = (size + 2 * (kernel // 2) - kernel) // stride + 1
    nodes, weights = [], []
    source = "x"
    if kind != 1:  # something ahead of it, so that the layer's input is in ORT's own layout already
        weights.append(numpy_helper.from_array(rng.standard_normal((channels, 1, 1, 1)).astype(np.float32), "w"))
        nodes.append(helper.make_node("Conv", ["x", "w"], ["y"], group=channels, name="ahead"))
        source = "y"
    outputs = []
    for i in range(COPIES):
        shape = (out_channels, channels // groups, kernel, kernel)
        weights.append(numpy_helper.from_array((rng.standard_normal(shape) * 0.01).astype(np.float32), f"w{i}"))
        weights.append(numpy_helper.from_array(rng.standard_normal(out_channels).astype(np.float32), f"b{i}"))
        nodes.append(helper.make_node("Conv", [source, f"w{i}", f"b{i}"], [f"c{i}"], group=groups, name=f"layer{i}",
                                      kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4))
        value = f"c{i}"
        if "in=3" in program:
            nodes.append(helper.make_node("Add", [value, f"c{(i + 1) % COPIES}" if i else "r"], [f"s{i}"], name=f"layer{i}_sum"))
            value = f"s{i}"
        if "relu" in program:
            nodes.append(helper.make_node("Relu", [value], [f"a{i}"], name=f"layer{i}_act"))
            value = f"a{i}"
        elif "clip" in program:
            for n, v in (("low", 0), ("high", 6)):
                weights.append(numpy_helper.from_array(np.float32(v), f"{n}{i}"))
            nodes.append(helper.make_node("Clip", [value, f"low{i}", f"high{i}"], [f"a{i}"], name=f"layer{i}_act"))
            value = f"a{i}"
        elif "silu" in program:
            nodes.append(helper.make_node("Sigmoid", [value], [f"g{i}"], name=f"layer{i}_act"))
            nodes.append(helper.make_node("Mul", [value, f"g{i}"], [f"a{i}"], name=f"layer{i}_mul"))
            value = f"a{i}"
        outputs.append(value)
    graph = helper.make_graph(nodes, "layer", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, channels, size, size])],
                              [helper.make_tensor_value_info(o, TensorProto.FLOAT, [1, out_channels, out, out]) for o in outputs],
                              weights)
    if "in=3" in program:  # the sums read a layer of their own
        weights_r = numpy_helper.from_array(rng.standard_normal((out_channels, channels, 1, 1)).astype(np.float32), "wr")
        graph.initializer.append(weights_r)
        graph.node.insert(1 if kind != 1 else 0, helper.make_node("Conv", [source, "wr"], ["r"], strides=[stride] * 2, name="r"))
        for node in graph.node:
            if node.op_type == "Add":
                node.input[1] = "r"
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(made)
    return made


def milliseconds(made, threads, folder):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.enable_profiling = True
    options.profile_file_prefix = os.path.join(folder, "profile")
    options.log_severity_level = 3
    session = ort.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    entry = session.get_inputs()[0]
    x = np.random.default_rng(1).standard_normal(entry.shape).astype(np.float32)
    for _ in range(25):
        session.run(None, {entry.name: x})
    path = session.end_profiling()
    with open(path) as file:
        events = json.load(file)
    os.remove(path)
    # Everything of one layer: the convolution and what could not be fused into it. The middle layer only.
    per_node = {}
    for event in events:
        name = event.get("name", "")
        if event.get("cat") == "Node" and name.endswith("_kernel_time"):
            per_node.setdefault(name, []).append(event["dur"])
    total, kinds = 0.0, []
    for name, times in per_node.items():
        if name.split("_")[0] in ("layer1", "a1", "s1", "c1", "g1"):  # a fused node is named after its output
            total += min(times) / 1000
            kinds.append(name.replace("_kernel_time", ""))
    return total, kinds


def main():
    bench = sys.argv[1]
    threads = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    wanted = sys.argv[3] if len(sys.argv) > 3 else ""
    sums = {}
    for line in subprocess.run([bench, "list"], check=True, capture_output=True, text=True).stdout.splitlines():
        network, kind, channels, out_channels, kernel, stride, size, count, program = line.split(" ", 8)
        kind, channels, out_channels, kernel, stride, size, count = map(
            int, (kind, channels, out_channels, kernel, stride, size, count))
        text = f"{['conv', 'stem', 'depthwise'][kind]} {channels} -> {out_channels} {kernel}x{kernel}/{stride} @{size}"
        if wanted not in f"{network} {text}":
            continue
        with tempfile.TemporaryDirectory() as folder:
            ms, kinds = milliseconds(model(kind, channels, out_channels, kernel, stride, size, program), threads, folder)
        sums[network] = sums.get(network, 0) + ms * count
        print(f"{network:16} {text:34} x{count} {ms:8.3f} ms  {' + '.join(kinds)}", flush=True)
    for network, ms in sums.items():
        print(f"{network}: {ms:.2f} ms")


if __name__ == "__main__":
    main()
