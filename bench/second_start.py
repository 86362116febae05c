#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From the start of a process to its first result, where kernels are specialised before the run: with an empty runtime cache, and with the
one that the first process has left; of it what making these kernels takes, which is what the first run takes more than the second one; and
of the second starts each part. On a GPU that is emulated (the build's fake_cuda), unless --gpu says that there is one.

  .venv/bin/python bench/second_start.py [--rounds N]
  python3 bench/second_start.py --gpu --model resnet50.onnx    whole processes of `lathe run`, of a plan for sm_80+, whose kernels the driver compiles
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import onnx

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get('LATHE_BUILD_DIR', ROOT / 'build')).resolve()
EMULATED = {'LATHE_CUDA_DRIVER': str(BUILD / 'fake_cuda/libfake_cuda_driver.so'), 'LATHE_NVRTC': str(BUILD / 'fake_cuda/libnvrtc.so')}
DIGITS = ROOT / 'examples' / 'digits' / 'digits.onnx'
PROCESS = """
import json, sys, time
started, plan, cache, rows = float(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
sys.path.insert(0, sys.argv[5])
import numpy as np
import lathe
from lathe import tensorrt as trt
times = [started, time.time()]
engine = lathe.load(plan)
times.append(time.time())
with engine.strategies(specialization=trt.DynamicShapesKernelSpecializationStrategy.EAGER, runtime_cache=cache):
    context = engine._context
    x, y = np.ones((rows, 1, 8, 8), np.float32), np.zeros((rows, 10), np.float32)
    (image,), (scores,) = engine.inputs, engine.outputs
    context.set_input_shape(image, x.shape)
    context.set_tensor_address(image, x.ctypes.data)
    context.set_tensor_address(scores, y.ctypes.data)
    begun = time.time()
    times.append(begun)
    assert context.execute_v2([x.ctypes.data, y.ctypes.data])
    ran = time.time()
    assert context.execute_v2([x.ctypes.data, y.ctypes.data])
    again = time.time() - ran
    times.append(ran)
    counts = json.loads(context.get_runtime_config().get_runtime_cache()._json())
parts = dict(zip(('imports', 'load', 'context', 'first run'), (b - a for a, b in zip(times, times[1:])))) | {'second run': again}
print(json.dumps({'parts': parts, 'seconds': ran - started, 'kernels_ready': ran - begun - again, 'compiled': counts['compiled'], 'hits': counts['hits']}))
"""


def start(plan, cache, rows, environment):
    """What a process says that begins with an empty cache on disk of the compiler."""
    with tempfile.TemporaryDirectory() as compiled:
        done = subprocess.run([sys.executable, '-c', PROCESS, str(time.time()), plan, cache, str(rows), BUILD / 'python'],
                              env=environment | {'LATHE_CACHE_DIR': compiled}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def run_of(plan, inputs, cache):
    """Seconds of a process that loads the plan and runs it once, and begins with empty caches on disk of Lathe's compiler and the driver's."""
    with tempfile.TemporaryDirectory() as compiled:
        environment = os.environ | {'LATHE_CACHE_DIR': compiled, 'CUDA_CACHE_PATH': compiled}
        begun = time.perf_counter()
        done = subprocess.run([BUILD / 'bin/lathe', 'run', plan, f'--loadInputs={inputs}', f'--runtimeCacheFile={cache}'], env=environment, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - begun
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    return seconds


def compare_runs(model, rounds):
    print('| first start, s | second start, s | second / first |\n| --- | --- | --- |')
    with tempfile.TemporaryDirectory() as folder:
        plan = pathlib.Path(folder, 'plan')
        image = pathlib.Path(folder, 'image')
        image.write_bytes(bytes(3 * 224 * 224 * 4))
        inputs = f'{onnx.load(model, load_external_data=False).graph.input[0].name}:{image}'
        subprocess.run([BUILD / 'bin/lathe', 'build', model, '-o', plan, '--targets=sm_80+', '--buildBudget=0'], check=True, capture_output=True)
        for number in range(rounds):
            cache = pathlib.Path(folder, f'{number}.cache')
            first, second = (run_of(plan, inputs, cache) for _ in range(2))
            print(f'| {first:.2f} | {second:.2f} | {second / first:.3f} |', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--gpu', action='store_true', help='there is one')
    parser.add_argument('--model', type=pathlib.Path, help='of one picture of 224 x 224; needs --gpu')
    arguments = parser.parse_args()
    if arguments.model and not arguments.gpu:
        parser.error('--model needs a GPU: add --gpu')
    if arguments.model:
        return compare_runs(arguments.model, arguments.rounds)
    environment = dict(os.environ) | ({} if arguments.gpu else EMULATED)
    print('| images | first start, s | compiled | second start, s | compiled | second / first | kernels: first, s | second, s | second / first |\n'
          '| --- | --- | --- | --- | --- | --- | --- | --- | --- |')
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        plan = pathlib.Path(folder, 'digits.engine')
        build = ('import sys; sys.path.insert(0, sys.argv[1]); import lathe\n'
                 'lathe.build(sys.argv[2], shapes={"image": ((1, 1, 8, 8), (8, 1, 8, 8), (4096, 1, 8, 8))}, target="cuda", budget=0).save(sys.argv[3])')
        subprocess.run([sys.executable, '-c', build, BUILD / 'python', DIGITS, plan], env=environment, check=True)
        for number in range(arguments.rounds):
            rows = 3 + (os.getpid() + 7 * number) % 60  # the emulator's own compiler keeps what it has made for a number
            cache = pathlib.Path(folder, f'{number}.cache')
            first, second = (start(plan, cache, rows, environment) for _ in range(2))
            print(f'| {rows} | {first["seconds"]:.2f} | {first["compiled"]} | {second["seconds"]:.2f} | {second["compiled"]} | '
                  f'{second["seconds"] / first["seconds"]:.3f} | {first["kernels_ready"]:.3f} | {second["kernels_ready"]:.3f} | '
                  f'{second["kernels_ready"] / first["kernels_ready"]:.3f} |', flush=True)
            parts.append(second['parts'])
    print('\nThe second starts in parts, s:\n\n| ' + ' | '.join(parts[0]) + ' |\n|' + ' --- |' * len(parts[0]))
    for row in parts:
        print('| ' + ' | '.join(f'{seconds:.3f}' for seconds in row.values()) + ' |')


if __name__ == '__main__':
    main()
