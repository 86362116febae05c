#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a run costs from Python beside one from C++ (`lathe bench`), on one thread, for an activation of four numbers and for
the digits network: the least of many, in microseconds.

  .venv/bin/python bench/python_calls.py
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'build' / 'python'))
import lathe  # noqa: E402
from lathe import tensorrt as trt  # noqa: E402

ROUNDS, SECONDS = 5000, 2e-4  # short, so that other programs interrupt few of them


def activation():
    builder = trt.Builder(trt.Logger())
    network = builder.create_network(0)
    relu = network.add_activation(network.add_input('x', trt.float32, (1, 4)), trt.ActivationType.RELU)
    network.mark_output(relu.get_output(0))
    config = builder.create_builder_config()
    config._target = 'cpu'
    return lathe.Engine(bytes(builder.build_serialized_network(network, config)), threads=1)


def digits():
    return lathe.build(ROOT / 'examples' / 'digits' / 'digits.onnx', shapes={'image': (1, 1, 8, 8)}, threads=1)


def least(function):
    """Microseconds of a call, in the best of ROUNDS rounds."""
    best, calls = float('inf'), 1
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(calls):
            function()
        spent = time.perf_counter() - began
        best = min(best, spent / calls)
        calls = max(int(calls * SECONDS / max(spent, 1e-6)), 1)
    return best * 1e6


def from_cpp(engine, folder):
    plan, report = folder / 'plan.engine', folder / 'report.json'
    engine.save(plan)
    subprocess.run([ROOT / 'build/bin/lathe', 'bench', plan, '--threads=1', '--seconds=1', f'--json={report}'], check=True,
                   capture_output=True)
    return json.loads(report.read_text())['min_ms'] * 1000


def main():
    print('| engine | C++ | bound run | more than C++ | new arrays, engine(x) |\n|---|---|---|---|---|')
    with tempfile.TemporaryDirectory() as folder:
        for make in (activation, digits):
            engine = make()
            (name, (dtype, shape)), (output, (result, shape_of_result)) = *engine.inputs.items(), *engine.outputs.items()
            x, y = np.ones([abs(size) for size in shape], dtype), np.empty([abs(size) for size in shape_of_result], result)
            cpp, bound = from_cpp(engine, pathlib.Path(folder)), least(engine.bind({name: x, output: y}))
            print(f'| {make.__name__} | {cpp:.2f} | {bound:.2f} | {bound - cpp:.2f} | {least(lambda: engine(x)):.2f} |')


if __name__ == '__main__':
    main()
