#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times one model in ONNX Runtime in a process of its own and prints the measurements as one line of JSON.

ONNX Runtime is given its best: default thread settings where all its CPUs are meant (it pins threads only then), bound
and preallocated inputs and outputs, all graph optimisations.
"""
import argparse
import json
import os
import time

import numpy as np
import onnxruntime


def status_kb(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field + ":"))


def open_session(model, threads):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if threads < os.cpu_count():
        options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def random_inputs(session):
    """One array per input; symbolic dimensions are 1."""
    rng = np.random.default_rng(1)
    return {entry.name: rng.random([d if isinstance(d, int) else 1 for d in entry.shape], np.float32)
            for entry in session.get_inputs()}


def loaded_inputs(text):
    return {name: np.load(file) for name, _, file in (word.partition(":") for word in text.split(","))}


def bind(session, inputs):
    """Bound inputs, and outputs that are allocated once."""
    binding = session.io_binding()
    for name, data in inputs.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(data))
    for entry in session.get_outputs():
        binding.bind_output(entry.name)
    return binding


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--inputs", help="name:file.npy,...; random ones, with open dimensions of 1, unless given")
    arguments = parser.parse_args()

    before_kb = status_kb("VmHWM")
    start = time.perf_counter()
    session = open_session(arguments.model, arguments.threads)
    loaded = time.perf_counter()
    inputs = loaded_inputs(arguments.inputs) if arguments.inputs else random_inputs(session)
    given = time.perf_counter()
    binding = bind(session, inputs)
    session.run_with_iobinding(binding)
    first = time.perf_counter()
    binding.bind_ortvalue_output(session.get_outputs()[0].name, binding.get_outputs()[0])

    deadline = first + 0.3 * arguments.seconds
    while time.perf_counter() < deadline:
        session.run_with_iobinding(binding)
    times, deadline = [], time.perf_counter() + arguments.seconds
    while time.perf_counter() < deadline or len(times) < 10:
        begin = time.perf_counter()
        session.run_with_iobinding(binding)
        times.append((time.perf_counter() - begin) * 1e3)
    print(json.dumps({
        "version": onnxruntime.__version__, "runs": len(times), "median_ms": float(np.median(times)),
        "min_ms": min(times), "p90_ms": float(np.percentile(times, 90)), "p99_ms": float(np.percentile(times, 99)),
        "load_ms": (loaded - start) * 1e3, "first_ms": (loaded - start + first - given) * 1e3, "peak_kb": status_kb("VmHWM"),
        "before_kb": before_kb}))


if __name__ == "__main__":
    main()
