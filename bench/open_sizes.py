#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lathe against ONNX Runtime, and OpenVINO where --openvino names a Python that has it, on networks whose batch, length or
image size is open.

The networks come from bench/open_size_models.py and bench/transformer_models.py. One engine serves all sizes of a network; with --static each size is a
model of its own, whose sizes are fixed, for all programs. Each measurement is a fresh process on the same CPU; rounds
alternate between the programs, and a speed is the median of the rounds' ratios. OpenVINO computes in f32, and once more in
what it likes (bf16, on CPUs that have instructions for it). Writes bench/results/DATE-NAME.json and .md.
"""
import argparse
import datetime
import json
import pathlib
import statistics
import sys
import tempfile

import numpy as np
import onnx
from vs_onnxruntime import ROOT, geometric_mean, machine, read_through, run_pinned

# Of bench/transformer_models.py, at the sizes that they are known by, and at others.
TRANSFORMERS = {
    "bert_base": [{"ids": (1, 128), "mask": (1, 128)}, {"ids": (4, 48), "mask": (4, 48)}],
    "minilm": [{"ids": (1, 128), "mask": (1, 128)}, {"ids": (4, 48), "mask": (4, 48)}],
    "t5_small_encoder": [{"ids": (1, 128)}, {"ids": (4, 48)}],
    "gpt2": [{"ids": (1, 512)}, {"ids": (2, 100)}],
    "llama": [{"ids": (1, 256)}, {"ids": (2, 100)}],
    "whisper_tiny_encoder": [{"spectrum": (1, 80, 3000)}, {"spectrum": (2, 80, 3000)}],
    "vit_b_16": [{"x": (1, 3, 224, 224)}, {"x": (3, 3, 224, 224)}],
    "deit_s": [{"x": (1, 3, 224, 224)}, {"x": (3, 3, 224, 224)}],
    "swin_t": [{"x": (1, 3, 224, 224)}, {"x": (3, 3, 224, 224)}],
    "experts_gathered": [{"x": (1, 512)}, {"x": (64, 512)}],
    "experts_weighed": [{"x": (1, 512)}, {"x": (64, 512)}],
}
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


def with_sizes(path, sizes):
    """The model with numbers for its open dimensions. sizes: those of each input, or of all alike."""
    model = onnx.load(path)
    for entry in model.graph.input:
        dims = sizes[entry.name] if isinstance(sizes, dict) else sizes
        for dim, size in zip(entry.type.tensor_type.shape.dim, dims):
            dim.Clear()
            dim.dim_value = size
    for entry in model.graph.output:
        entry.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    return onnx.shape_inference.infer_shapes(model)


def build(arguments, model, sets, precision, folder):
    """The engine for every size up to the largest of the sets."""
    engine = folder / f"{model.stem}-{precision}.engine"
    ranges = [{key: tuple(pick(sizes) for sizes in zip(*(s[key] for s in sets))) for key in sets[0]} for pick in (min, max)]
    command = [arguments.lathe, "build", model, "-o", engine, f"--threads={arguments.threads}", "--target=cpu",
               f"--minShapes={shapes_text(ranges[0])}", f"--optShapes={shapes_text(sets[0])}",
               f"--maxShapes={shapes_text(ranges[1])}"] + (["--bf16"] if precision == "bf16" else [])
    run_pinned(command, arguments.threads, arguments.real_time)
    return engine


def worker_command(arguments, python, worker, model, inputs):
    return [python, ROOT / "bench" / worker, model, "--threads", arguments.threads, "--seconds", arguments.seconds,
            "--inputs", inputs]


def measure_onnxruntime(arguments, model, inputs):
    command = worker_command(arguments, sys.executable, "onnxruntime_worker.py", model, inputs)
    return json.loads(run_pinned(command, arguments.threads, arguments.real_time))


def measure_openvino(arguments, model, inputs, precision=None):
    command = worker_command(arguments, arguments.openvino, "openvino_worker.py", model, inputs)
    command += ["--precision", precision] if precision else []
    return json.loads(run_pinned(command, arguments.threads, arguments.real_time))


def measure_lathe(arguments, engine, sizes, inputs):
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        run_pinned([arguments.lathe, "bench", engine, f"--threads={arguments.threads}", f"--seconds={arguments.seconds}",
                    f"--shapes={shapes_text(sizes)}", f"--loadInputs={inputs}", f"--json={report.name}"], arguments.threads,
                   arguments.real_time)
        return json.loads(pathlib.Path(report.name).read_text())


def contenders(arguments, model, engines, sizes, inputs):
    """Name of a program: a function that measures it once."""
    found = {"lathe" if precision == "f32" else f"lathe_{precision}":
             lambda engine=engine: measure_lathe(arguments, engine, sizes, inputs) for precision, engine in engines.items()}
    found["onnxruntime"] = lambda: measure_onnxruntime(arguments, model, inputs)
    if arguments.openvino:
        found["openvino_f32"] = lambda: measure_openvino(arguments, model, inputs, "f32")
        found["openvino"] = lambda: measure_openvino(arguments, model, inputs)
    return found


def measure(arguments, network, model, engines, sizes, folder):
    """All rounds at one set of sizes: medians of each program, and of the ratios to Lathe."""
    programs = contenders(arguments, model, engines, sizes, write_inputs(sizes, folder))
    read_through(model)
    rounds = [{name: run() for name, run in programs.items()} for _ in range(arguments.rounds)]
    record = {"network": network, "sizes": shapes_text(sizes), "versions": {n: r["version"] for n, r in rounds[0].items()
                                                                           if "version" in r}}
    for name in programs:
        record[name] = statistics.median(r[name]["median_ms"] for r in rounds)
        record[f"{name}_least"] = min(r[name]["min_ms"] for r in rounds)
        record[f"to_{name}"] = statistics.median(r[name]["median_ms"] / r["lathe"]["median_ms"] for r in rounds)
    return record


def measure_network(arguments, network, sets, folder):
    path, precisions, records = arguments.models / f"{network}.onnx", ["f32"] + ["bf16"] * arguments.bf16, []
    for sizes_of_model in [[s] for s in sets] if arguments.static else [sets]:
        model = path
        if arguments.static:
            model = folder / f"{network}.onnx"
            onnx.save(with_sizes(path, sizes_of_model[0]), model)
        engines = {precision: build(arguments, model, sizes_of_model, precision, folder) for precision in precisions}
        records += [measure(arguments, network, model, engines, sizes, folder) for sizes in sizes_of_model]
        for engine in engines.values():
            engine.unlink()
    return records


TITLES = {"lathe": "Lathe", "lathe_bf16": "Lathe, bf16", "onnxruntime": "ONNX Runtime", "openvino_f32": "OpenVINO, f32",
          "openvino": "OpenVINO"}


def table(report):
    names = [name for name in TITLES if name in report["records"][0]]
    peers = [name for name in names if name != "lathe"]
    versions = ", ".join(f"{TITLES[name]} {version}" for name, version in report["records"][0]["versions"].items()
                         if name in ("onnxruntime", "openvino"))
    lines = [f"# {'Fixed' if report['static'] else 'Open'} sizes: Lathe beside others, {report['date']}", "",
             f"{report['machine']['cpu']}, {report['threads']} thread(s), {versions}, {report['rounds']} interleaved rounds: "
             "median and least ms, and how often Lathe's median (f32) goes into the others'.", "",
             "| network | sizes | " + " | ".join(TITLES[name] for name in names) + " | " +
             " | ".join(f"to {TITLES[name]}" for name in peers) + " |", "| --- " * (2 + len(names) + len(peers)) + "|"]
    for r in report["records"]:
        cells = [r["network"], r["sizes"]] + [f"{r[name]:.2f}, {r[f'{name}_least']:.2f}" for name in names]
        lines.append("| " + " | ".join(cells + [f"{r[f'to_{name}']:.2f}x" for name in peers]) + " |")
    means = (f"{TITLES[name]} {report['geomean'][name]:.2f}x" for name in peers)
    return "\n".join(lines + ["", "Geometric means, to " + ", ".join(means)]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path, help="folder that open_size_models.py or transformer_models.py has filled")
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), choices=list(NETWORKS | TRANSFORMERS))
    parser.add_argument("--static", action="store_true", help="models of fixed sizes")
    parser.add_argument("--bf16", action="store_true", help="Lathe once more, with leave to compute in bf16")
    parser.add_argument("--openvino", metavar="PYTHON", help="a Python that has OpenVINO")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="measured time of each process")
    parser.add_argument("--lathe", type=pathlib.Path, default=ROOT / "build/bin/lathe")
    parser.add_argument("--real-time", action="store_true", help="run at real-time priority (root)")
    parser.add_argument("--name", default="open-sizes", help="of the files with the results")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench/results")
    arguments = parser.parse_args()
    about, records = machine(), []
    for network in arguments.networks:
        with tempfile.TemporaryDirectory() as name:
            records += measure_network(arguments, network, (NETWORKS | TRANSFORMERS)[network], pathlib.Path(name))
        print(network, *(f"{name}: {value:.2f}" for name, value in records[-1].items() if name in TITLES), flush=True)
    peers = [name for name in TITLES if name != "lathe" and name in records[0]]
    report = {"date": datetime.date.today().isoformat(), "machine": about, "rounds": arguments.rounds,
              "threads": arguments.threads, "static": arguments.static,
              "geomean": {name: geometric_mean([r[f"to_{name}"] for r in records]) for name in peers}, "records": records}
    arguments.out.mkdir(parents=True, exist_ok=True)
    stem = arguments.out / f"{report['date']}-{arguments.name}"
    stem.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    stem.with_suffix(".md").write_text(table(report))
    print(table(report))


if __name__ == "__main__":
    main()
