#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lathe against ONNX Runtime on networks whose batch, length or image size is open, at two sizes each, one thread.

The networks come from bench/open_size_models.py. One engine serves both sizes. Each measurement is a fresh process on the
same CPU; rounds alternate between the two, and the speed is the median of the rounds' ratios. Writes
bench/results/DATE-open-sizes.json and .md.
"""
import argparse
import datetime
import json
import pathlib
import statistics
import sys
import tempfile

import numpy as np
from vs_onnxruntime import ROOT, geometric_mean, machine, read_through, run_pinned

# name: sets of sizes of the inputs; the first is what the engine is tuned for.
NETWORKS = {
    "t5_encoder": [{"ids": (1, 128), "mask": (1, 128)}, {"ids": (4, 64), "mask": (4, 64)}],
    "t5": [{"ids": (1, 128), "mask": (1, 128), "targets": (1, 32)}, {"ids": (2, 64), "mask": (2, 64), "targets": (2, 64)}],
    "roberta": [{"ids": (1, 128), "mask": (1, 128)}, {"ids": (4, 40), "mask": (4, 40)}],
    "vae": [{"x": (1, 3, 128, 128)}, {"x": (1, 3, 256, 192)}],
    "deit_tiny": [{"x": (1, 3, 224, 224)}, {"x": (4, 3, 224, 224)}],
    "convnext_tiny": [{"x": (1, 3, 224, 224)}, {"x": (2, 3, 160, 160)}],
    "segformer": [{"x": (1, 3, 224, 224)}, {"x": (2, 3, 128, 192)}],
}


def shapes_text(sizes):
    return ",".join(f"{name}:{'x'.join(map(str, dims))}" for name, dims in sizes.items())


def write_inputs(sizes, folder):
    """name:file,... of random inputs: pixels, token numbers, and masks that hide nothing."""
    random, words = np.random.default_rng(1), []
    for name, dims in sizes.items():
        if name == "mask":
            array = np.ones(dims, np.int64)
        elif len(dims) == 2:
            array = random.integers(1, 1000, dims)
        else:
            array = random.standard_normal(dims, np.float32)
        file = folder / f"{name}_{'x'.join(map(str, dims))}.npy"
        np.save(file, array)
        words.append(f"{name}:{file}")
    return ",".join(words)


def build(arguments, name, folder):
    """The engine for every size up to the largest of the sets."""
    sets, engine = NETWORKS[name], folder / f"{name}.engine"
    ranges = [{key: tuple(pick(sizes) for sizes in zip(*(s[key] for s in sets))) for key in sets[0]} for pick in (min, max)]
    command = [arguments.lathe, "build", arguments.models / f"{name}.onnx", "-o", engine, "--threads=1",
               f"--minShapes={shapes_text(ranges[0])}", f"--optShapes={shapes_text(sets[0])}",
               f"--maxShapes={shapes_text(ranges[1])}"]
    run_pinned(command, 1, arguments.real_time)
    return engine


def measure(arguments, name, engine, sizes, inputs):
    """One round: milliseconds of ONNX Runtime and of Lathe."""
    model = arguments.models / f"{name}.onnx"
    read_through(model), read_through(engine)
    worker = [sys.executable, ROOT / "bench/onnxruntime_worker.py", model, "--threads", 1, "--seconds", arguments.seconds,
              "--inputs", inputs]
    peer = json.loads(run_pinned(worker, 1, arguments.real_time))
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        run_pinned([arguments.lathe, "bench", engine, "--threads=1", f"--seconds={arguments.seconds}",
                    f"--shapes={shapes_text(sizes)}", f"--loadInputs={inputs}", f"--json={report.name}"], 1,
                   arguments.real_time)
        ours = json.loads(pathlib.Path(report.name).read_text())
    return {"onnxruntime": peer["median_ms"], "lathe": ours["median_ms"], "version": peer["version"]}


def table(report):
    lines = [f"# Open sizes: Lathe against ONNX Runtime {report['onnxruntime']}, {report['date']}", "",
             f"{report['machine']['cpu']}, 1 thread, fp32, {report['rounds']} interleaved rounds, medians.", "",
             "| network | sizes | ONNX Runtime ms | Lathe ms | speed |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| {r['network']} | {r['sizes']} | {r['onnxruntime']:.2f} | {r['lathe']:.2f} | {r['speed']:.2f}x |"
              for r in report["records"]]
    return "\n".join(lines + ["", f"Geometric mean: {report['geomean']:.2f}x"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path, help="folder that open_size_models.py has filled")
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), choices=NETWORKS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="measured time of each process")
    parser.add_argument("--lathe", type=pathlib.Path, default=ROOT / "build/bin/lathe")
    parser.add_argument("--real-time", action="store_true", help="run at real-time priority (root)")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench/results")
    arguments = parser.parse_args()
    about, records, version = machine(), [], ""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for network in arguments.networks:
            engine = build(arguments, network, folder)
            for sizes in NETWORKS[network]:
                inputs = write_inputs(sizes, folder)
                rounds = [measure(arguments, network, engine, sizes, inputs) for _ in range(arguments.rounds)]
                version = rounds[0]["version"]
                records.append({"network": network, "sizes": shapes_text(sizes),
                                **{who: statistics.median(r[who] for r in rounds) for who in ("onnxruntime", "lathe")},
                                "speed": statistics.median(r["onnxruntime"] / r["lathe"] for r in rounds)})
                print(f"{network} {shapes_text(sizes)}: {records[-1]['speed']:.2f}x", flush=True)
            engine.unlink()
    report = {"date": datetime.date.today().isoformat(), "machine": about, "rounds": arguments.rounds,
              "onnxruntime": version, "geomean": geometric_mean([r["speed"] for r in records]), "records": records}
    arguments.out.mkdir(parents=True, exist_ok=True)
    stem = arguments.out / f"{report['date']}-open-sizes"
    stem.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    stem.with_suffix(".md").write_text(table(report))
    print(table(report))


if __name__ == "__main__":
    main()
