#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times one model in OpenVINO in a process of its own and prints the measurements as one line of JSON.

Runs with a Python that has OpenVINO and numpy alone. OpenVINO is given its best for one inference at a time: the hint for
latency, inputs and outputs that are allocated once. --precision f32 has it compute in f32; without it, it computes in bf16
on CPUs that have instructions for that, although the model says f32.
"""
import argparse
import json
import time

import numpy as np
import openvino


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--inputs", required=True, help="name:file.npy,...")
    parser.add_argument("--precision", help="what it computes in; unless given, what it likes")
    arguments = parser.parse_args()

    settings = {"INFERENCE_NUM_THREADS": arguments.threads, "PERFORMANCE_HINT": "LATENCY", "ENABLE_CPU_PINNING": False}
    if arguments.precision:
        settings["INFERENCE_PRECISION_HINT"] = arguments.precision
    model = openvino.Core().compile_model(arguments.model, "CPU", settings)
    request = model.create_infer_request()
    for name, _, file in (word.partition(":") for word in arguments.inputs.split(",")):
        request.set_tensor(name, openvino.Tensor(np.load(file)))

    request.infer()
    deadline = time.perf_counter() + 0.3 * arguments.seconds
    while time.perf_counter() < deadline:
        request.infer()
    times, deadline = [], time.perf_counter() + arguments.seconds
    while time.perf_counter() < deadline or len(times) < 5:
        begin = time.perf_counter()
        request.infer()
        times.append((time.perf_counter() - begin) * 1e3)
    print(json.dumps({"version": openvino.__version__.split("-")[0], "runs": len(times), "median_ms": float(np.median(times)),
                      "min_ms": min(times), "precision": str(model.get_property("INFERENCE_PRECISION_HINT"))}))


if __name__ == "__main__":
    main()
