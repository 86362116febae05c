# SPDX-License-Identifier: Apache-2.0
"""Times ops, each alone in a network of open sizes, on one thread, in Lathe and in ONNX Runtime, for scripts that are tables of cases."""
import argparse
import json
import pathlib
import statistics
import sys
import tempfile

import numpy as np
from vs_onnxruntime import ROOT, run_pinned


def shapes_text(shapes):
    return ",".join(f"x{i}:{'x'.join(str(d) for d in shape)}" for i, shape in enumerate(shapes))


def measure(arguments, folder, inputs, least):
    """Of each round ONNX Runtime's and Lathe's microseconds, and whether Lathe evaluates the op of folder/model.onnx."""
    words, rounds = [], []
    for i, array in enumerate(inputs):
        np.save(folder / f"x{i}.npy", array)
        words.append(f"x{i}:{folder}/x{i}.npy")
    sizes = shapes_text([array.shape for array in inputs])
    run_pinned([arguments.lathe, "build", folder / "model.onnx", "-o", folder / "engine", "--threads=1",
                f"--minShapes={shapes_text(least)}", f"--optShapes={sizes}", f"--maxShapes={sizes}"], 1, arguments.real_time)
    steps = run_pinned([arguments.lathe, "inspect", folder / "engine"], 1, arguments.real_time)
    for _ in range(arguments.rounds):
        worker = [sys.executable, ROOT / "bench/onnxruntime_worker.py", folder / "model.onnx", "--threads", 1, "--seconds",
                  arguments.seconds, "--inputs", ",".join(words)]
        peer = json.loads(run_pinned(worker, 1, arguments.real_time))
        run_pinned([arguments.lathe, "bench", folder / "engine", "--threads=1", f"--seconds={arguments.seconds}",
                    f"--shapes={sizes}", f"--loadInputs={','.join(words)}", f"--json={folder}/ours.json"], 1, arguments.real_time)
        ours = json.loads((folder / "ours.json").read_text())
        rounds.append((peer["median_ms"] * 1000, ours["median_ms"] * 1000))
    evaluated = any("plain evaluation" in line and not line.startswith("about") for line in steps.splitlines())
    return rounds, evaluated


def run(description, cases, write_model, smallest):
    """The script's command line. A case starts with an op, its attributes and its inputs, of which those that are None are omitted;
    write_model(case, path) writes it, and smallest(inputs) are the least shapes. Prints a table: medians of the rounds, and the
    median of their ratios, in which both programs ran one after the other."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--cases", nargs="+", default=list(cases), choices=cases)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5, help="measured time of each process")
    parser.add_argument("--real-time", action="store_true", help="run at real-time priority (root)")
    parser.add_argument("--lathe", type=pathlib.Path, default=ROOT / "build/bin/lathe")
    arguments = parser.parse_args()
    print("| op | ONNX Runtime us | Lathe us | speed | runs as |\n| --- | --- | --- | --- | --- |")
    for title in arguments.cases:
        inputs = [array for array in cases[title][2] if array is not None]
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            write_model(cases[title], folder / "model.onnx")
            rounds, evaluated = measure(arguments, folder, inputs, smallest(inputs))
        theirs, ours = (statistics.median(column) for column in zip(*rounds))
        speed = statistics.median(peer / own for peer, own in rounds)
        print(f"| {title} | {theirs:.0f} | {ours:.0f} | {speed:.2f}x | {'evaluation' if evaluated else 'kernel'} |", flush=True)
