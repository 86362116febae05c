#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a run costs from Python beside one from C++ (`lathe bench`), on one thread, for an activation of four numbers, for
the digits network and for engines that are given: the least of many, in microseconds.

  .venv/bin/python bench/python_calls.py [ENGINE...]
"""
import functools
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
MOST_SECONDS = 5  # of all rounds


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
    best, calls, until = float('inf'), 1, time.monotonic() + MOST_SECONDS
    for _ in range(ROUNDS):
        if time.monotonic() > until:
            break
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
    subprocess.run([ROOT / 'build/bin/lathe', 'bench', plan, '--threads=1', f'--seconds={MOST_SECONDS}', f'--json={report}'], check=True,
                   capture_output=True)
    return json.loads(report.read_text())['min_ms'] * 1000


def main():
    makers = {'activation': activation, 'digits': digits}
    makers |= {pathlib.Path(path).stem: functools.partial(lathe.load, path, threads=1) for path in sys.argv[1:]}
    print('| engine | C++ | bound run | more than C++ | bound run / C++ | new arrays, engine(x) |\n|---|---|---|---|---|---|')
    with tempfile.TemporaryDirectory() as folder:
        for name_of_engine, make in makers.items():
            engine = make()
            (name, (dtype, shape)), (output, (result, shape_of_result)) = *engine.inputs.items(), *engine.outputs.items()
            x, y = np.ones([abs(size) for size in shape], dtype), np.empty([abs(size) for size in shape_of_result], result)
            cpp, bound = from_cpp(engine, pathlib.Path(folder)), least(engine.bind({name: x, output: y}))
            print(f'| {name_of_engine} | {cpp:.2f} | {bound:.2f} | {bound - cpp:.2f} | {bound / cpp:.3f} | {least(lambda: engine(x)):.2f} |')


if __name__ == '__main__':
    main()
