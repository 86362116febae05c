#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an op of shape arithmetic costs that remains in an engine: chains of Mul, Add, Div and Sub over the sizes of an
input with open sizes, whose result is the output, on one thread, beside ONNX Runtime.

  .venv/bin/python bench/shape_arithmetic.py

Arithmetic that only says shapes of other tensors is not in an engine at all: it is evaluated when the sizes are set."""
import json
import pathlib
import subprocess
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
LATHE = ROOT / "build/bin/lathe"
SHORT, LONG = 8, 72  # ops of the two chains whose times are subtracted
SIZES = (8, 128)
PROFILE = [f"--{which}Shapes=x:{rows}x{columns}" for which, rows, columns in (("min", 1, 1), ("opt", *SIZES), ("max", 64, 512))]


def chain(length):
    constants = {"zero": np.array(0), "one": np.array(1), "factor": np.array(64), "axis": np.array([0])}
    nodes = [helper.make_node("Shape", ["x"], ["shape"]), helper.make_node("Gather", ["shape", "zero"], ["rows"]),
             helper.make_node("Gather", ["shape", "one"], ["columns"])]
    value = "rows"
    for i in range(length):
        op = ("Mul", "Add", "Div", "Sub")[i % 4]
        nodes.append(helper.make_node(op, [value, "columns" if i % 2 else "factor"], [f"value{i}"]))
        value = f"value{i}"
    nodes.append(helper.make_node("Unsqueeze", [value, "axis"], ["y"]))
    graph = helper.make_graph(nodes, "chain", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "m"])],
                              [helper.make_tensor_value_info("y", TensorProto.INT64, [1])],
                              [numpy_helper.from_array(array, name) for name, array in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def time_lathe(model, folder):
    engine, report = folder / "engine", folder / "report.json"
    subprocess.run([LATHE, "build", model, "-o", engine, "--buildBudget=0", *PROFILE], check=True, capture_output=True)
    subprocess.run([LATHE, "bench", engine, "--threads=1", "--seconds=0.5", f"--json={report}"], check=True, capture_output=True)
    return json.loads(report.read_text())["median_ms"] * 1e6


def time_peer(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    binding.bind_cpu_input("x", np.zeros(SIZES, np.float32))
    binding.bind_output("y")
    times = []
    for _ in range(5000):
        start = time.perf_counter_ns()
        session.run_with_iobinding(binding)
        times.append(time.perf_counter_ns() - start)
    return float(np.median(times))


def main():
    with tempfile.TemporaryDirectory() as name:
        folder, times = pathlib.Path(name), {}
        for length in (SHORT, LONG):
            onnx.save(chain(length), folder / f"{length}.onnx")
            times[length] = time_lathe(folder / f"{length}.onnx", folder), time_peer(folder / f"{length}.onnx")
    ours, theirs = ((times[LONG][i] - times[SHORT][i]) / (LONG - SHORT) for i in range(2))
    print(f"nanoseconds an op: Lathe {ours:.0f}, ONNX Runtime {theirs:.0f}; {theirs / ours:.2f}x")


if __name__ == "__main__":
    main()
