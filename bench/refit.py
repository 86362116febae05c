#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the refit of all weights of an engine on the CPU beside copying the same bytes, and prints a table.

  .venv/bin/python bench/refit.py [--rounds N] [--threads N]

The copy is one of each array into memory that was written to before, by as many threads as the refit. Times are the least of the rounds, in which copies
and refits alternate: of one thread the processor time, which other processes change less, of several the wall time. "unchecked" is a refit after set_weights_validation(False): nobody looks for numbers that a narrower type of the engine cannot hold.
"""
import argparse
import concurrent.futures
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "build/python"))
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


def engine_of(make):
    builder = trt.Builder(LOGGER)
    network, config = builder.create_network(0), builder.create_builder_config()
    held = make(network)
    config.set_flag(trt.BuilderFlag.REFIT)
    config._build_budget = 0.0
    plan = builder.build_serialized_network(network, config)
    del held
    return trt.Runtime(LOGGER).deserialize_cuda_engine(plan)


def seconds(work, clock):
    begin = clock()
    work()
    return clock() - begin


def parts_of(arrays, threads):
    """Views of the arrays in pieces, dealt to threads."""
    pieces = [piece for each in arrays for piece in np.array_split(each, -(-each.nbytes // (1 << 20)))]
    return [pieces[i::threads] for i in range(threads)] if threads > 1 else [arrays]


def copy_all(copies, arrays):
    for to, each in zip(copies, arrays):
        np.copyto(to, each)


def measure(engine, rounds, threads):
    """Bytes, and the least seconds of a copy, a refit, and a refit that looks at no numbers."""
    refitter = trt.Refitter(engine, LOGGER)
    refitter.max_threads = threads
    random = np.random.default_rng(1)
    new = {}
    for name in refitter.get_all_weights():
        prototype = refitter.get_weights_prototype(name)
        new[name] = np.abs(random.standard_normal(prototype.size, np.float32))  # variances among them
        if not refitter.set_named_weights(name, trt.Weights(new[name])):
            raise SystemExit(name)
    arrays = list(new.values())
    copies = [np.zeros_like(each) for each in arrays]
    parts = list(zip(parts_of(copies, threads), parts_of(arrays, threads)))
    pool = concurrent.futures.ThreadPoolExecutor(threads)

    def copy():
        if threads == 1:
            return copy_all(copies, arrays)
        for done in [pool.submit(copy_all, *part) for part in parts]:
            done.result()

    def refit(checked):
        refitter.weights_validation = checked
        if not refitter.refit_cuda_engine():
            raise SystemExit("refit failed")
    works = (copy, lambda: refit(True), lambda: refit(False))
    for work in works:
        work()
    clock = time.thread_time if threads == 1 else time.perf_counter
    times = [[seconds(work, clock) for work in works] for _ in range(rounds)]
    return sum(each.nbytes for each in copies), *(min(column) for column in zip(*times))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1, help="of the refit, and of the copy")
    arguments = parser.parse_args()
    print("| network | MB | copy, ms | refit, ms | refit / copy | unchecked / copy |\n|---|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        networks = {"ResNet-50": lambda network: resnet(network, folder, "fold"),
                    "ResNet-50 with batch normalisation": lambda network: resnet(network, folder, "keep"),
                    "transformer": transformer}
        for name, make in networks.items():
            size, copied, refitted, unchecked = measure(engine_of(make), arguments.rounds, arguments.threads)
            print(f"| {name} | {size / 1e6:.0f} | {copied * 1e3:.1f} | {refitted * 1e3:.1f} | {refitted / copied:.2f} | "
                  f"{unchecked / copied:.2f} |", flush=True)


if __name__ == "__main__":
    main()
