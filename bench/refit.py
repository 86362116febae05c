#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the refit of all weights of an engine beside copying the same bytes, and prints a table.

  .venv/bin/python bench/refit.py [--rounds N] [--threads N] [--device cpu|cuda] [--precision f32|f16|bf16]

The copy is one of each array into memory that was written to before (cuda: from the host's memory, as the application has it, to the GPU's), by as many
threads as the refit. The arrays are of f32, whatever the engine's precision is. Times are the least of the rounds, in which copies and refits alternate:
of one thread on the CPU the processor time, which other processes change less, else the wall time. "unchecked" is a refit after
set_weights_validation(False): nobody looks for numbers that a narrower type of the engine cannot hold. "first" is the first refit of the engine, once.
"""
import argparse
import concurrent.futures
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("LATHE_BUILD_DIR", ROOT / "build"))
sys.path.insert(0, str(BUILD / "python"))
import lathe.tensorrt as trt  # noqa: E402

LOGGER = trt.Logger(trt.Logger.ERROR)


def transformer(network, layers=6, width=768, hidden=3072):
    """Products and normalisations of a transformer: as many weights, without what has none."""
    random = np.random.default_rng(0)
    held, x = [], network.add_input("x", trt.float32, (16, width))

    def weights(name, *shape):
        held.append(random.standard_normal(shape, np.float32) * np.float32(shape[0] ** -0.5))
        layer = network.add_constant(shape, held[-1])
        network.set_weights_name(trt.Weights(held[-1]), name)
        return layer.get_output(0)

    def product(x, name, *shape):
        y = network.add_matrix_multiply(x, trt.MatrixOperation.NONE, weights(name, *shape), trt.MatrixOperation.NONE).get_output(0)
        return network.add_elementwise(y, weights(name + ".bias", 1, shape[1]), trt.ElementWiseOperation.SUM).get_output(0)
    for i in range(layers):
        y = x
        for part in ("query", "key", "value", "out"):
            y = product(y, f"{i}.{part}", width, width)
        y = network.add_activation(product(y, f"{i}.up", width, hidden), trt.ActivationType.RELU).get_output(0)
        x = network.add_elementwise(x, product(y, f"{i}.down", hidden, width), trt.ElementWiseOperation.SUM).get_output(0)
    network.mark_output(x)
    return held


def resnet(network, folder, batch_norm):
    path = folder / f"resnet50_{batch_norm}.onnx"
    subprocess.run([sys.executable, ROOT / "tools/models/write.py", "resnet50", "--bn", batch_norm, "--out", path], check=True,
                   capture_output=True)
    parser = trt.OnnxParser(network, LOGGER)
    if not parser.parse_from_file(str(path)):
        raise SystemExit(parser.get_error(0))
    return parser


PRECISIONS = {"f32": None, "f16": trt.float16, "bf16": trt.bfloat16}


def engine_of(make, device, precision):
    builder = trt.Builder(LOGGER)
    network, config = builder.create_network(0), builder.create_builder_config()
    held = make(network)
    config.set_flag(trt.BuilderFlag.REFIT)
    config._build_budget = 0.0
    config._target = device
    if precision is not None:
        config._set_precision(precision)
    plan = builder.build_serialized_network(network, config)
    del held
    return trt.Runtime(LOGGER).deserialize_cuda_engine(plan)


def seconds(work, clock):
    begin = clock()
    work()
    return clock() - begin


class Host:
    """Memory that engines on a CPU read."""
    def __init__(self, arrays):
        self.copies = [np.zeros_like(each) for each in arrays]

    def copy(self, numbers, arrays):
        for i in numbers:
            np.copyto(self.copies[i], arrays[i])


class Gpu:
    """Memory of the first GPU, by the driver."""
    def __init__(self, arrays):
        self.driver, self.context, self.copies = ctypes.CDLL(os.environ.get("LATHE_CUDA_DRIVER", "libcuda.so.1")), ctypes.c_void_p(), []
        self.driver.cuInit(0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0)
        self.call("cuCtxPushCurrent_v2", self.context)
        for each in arrays:
            self.copies.append(ctypes.c_uint64())
            self.call("cuMemAlloc_v2", ctypes.byref(self.copies[-1]), ctypes.c_size_t(each.nbytes))
        self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def call(self, name, *arguments):
        if result := getattr(self.driver, name)(*arguments):
            raise SystemExit(f"{name}: {result}")

    def copy(self, numbers, arrays):
        self.call("cuCtxPushCurrent_v2", self.context)
        for i in numbers:
            self.call("cuMemcpyHtoDAsync_v2", self.copies[i], ctypes.c_void_p(arrays[i].ctypes.data), ctypes.c_size_t(arrays[i].nbytes), None)
        self.call("cuStreamSynchronize", None)
        self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


def measure(engine, device, rounds, threads):
    """Bytes, and the least seconds of a copy, a refit, and a refit that looks at no numbers; those of the first refit."""
    refitter = trt.Refitter(engine, LOGGER)
    refitter.max_threads = threads
    random = np.random.default_rng(1)
    new = {}
    for name in refitter.get_all_weights():
        prototype = refitter.get_weights_prototype(name)
        new[name] = np.abs(random.standard_normal(prototype.size, np.float32))  # variances among them
        if not refitter.set_named_weights(name, trt.Weights(new[name])):
            raise SystemExit(name)
    # Of several threads each has pieces of the arrays, which are as large as one of them copies before the next begins.
    arrays = list(new.values()) if threads == 1 else [piece for each in new.values()
                                                      for piece in np.array_split(each, -(-each.nbytes // (1 << 20)))]
    memory = (Gpu if device == "cuda" else Host)(arrays)
    pool = concurrent.futures.ThreadPoolExecutor(threads)

    def copy():
        if threads == 1:
            return memory.copy(range(len(arrays)), arrays)
        for done in [pool.submit(memory.copy, range(i, len(arrays), threads), arrays) for i in range(threads)]:
            done.result()

    def refit(checked):
        refitter.weights_validation = checked
        if not refitter.refit_cuda_engine():
            raise SystemExit("refit failed")
    works = (copy, lambda: refit(True), lambda: refit(False))
    first = [seconds(work, time.perf_counter) for work in works][1]
    clock = time.thread_time if threads == 1 and device == "cpu" else time.perf_counter
    times = [[seconds(work, clock) for work in works] for _ in range(rounds)]
    return sum(each.nbytes for each in arrays), *(min(column) for column in zip(*times)), first


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1, help="of the refit, and of the copy")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--precision", choices=PRECISIONS, default="f32", help="of the engine")
    arguments = parser.parse_args()
    print("| network | precision | threads | MB | copy, ms | refit, ms | refit / copy | unchecked / copy | first, ms |\n|---|---|--:|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        networks = {"ResNet-50": lambda network: resnet(network, folder, "fold"),
                    "ResNet-50 with batch normalisation": lambda network: resnet(network, folder, "keep"),
                    "transformer": transformer}
        for name, make in networks.items():
            engine = engine_of(make, arguments.device, PRECISIONS[arguments.precision])
            size, copied, refitted, unchecked, first = measure(engine, arguments.device, arguments.rounds, arguments.threads)
            print(f"| {name} | {arguments.precision} | {arguments.threads} | {size / 1e6:.0f} | {copied * 1e3:.1f} | {refitted * 1e3:.1f} | "
                  f"{refitted / copied:.2f} | {unchecked / copied:.2f} | {first * 1e3:.1f} |", flush=True)


if __name__ == "__main__":
    main()
