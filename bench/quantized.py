#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantised networks on the CPU: Lathe in f32, Lathe and ONNX Runtime with Q/DQ, per tensor and per channel, and
transformers with dynamic quantisation, too; OpenVINO where --openvino names a Python that has it.

Each model is given the sizes below, prepared and quantised by onnxruntime.quantization (static: QDQ format, activations u8,
weights i8, calibrated on random data; dynamic: products by i8 weights, per channel), and measured in rounds that alternate between all engines, each measurement in a
fresh process on the same CPU. Outputs are compared with those of ONNX Runtime without optimisations, which is what the model
says. Who sums in another order differs by levels of activations, so beside Lathe's difference stand that of ONNX Runtime with
all its optimisations and that of the quantisation itself. Writes bench/results/DATE-quantized.json and .md.

The models: deit_tiny.onnx and roberta.onnx from bench/open_size_models.py, bert_base.onnx from bench/transformer_models.py,
resnet50.onnx and mobilenet_v2.onnx from tools/models/write.py.
"""
import argparse
import datetime
import json
import math
import pathlib
import statistics
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from open_sizes import measure_onnxruntime, measure_openvino, with_sizes, write_inputs
from vs_onnxruntime import ROOT, machine, read_through, run_pinned

NETWORKS = {
    "deit_tiny": (1, 3, 224, 224),
    "resnet50": (1, 3, 224, 224),
    "mobilenet_v2": (1, 3, 224, 224),
    "roberta": (1, 128),
    "bert_base": (1, 128),
}
VARIANTS = {"f32": None, "per tensor": False, "per channel": True}
DYNAMIC = {"roberta", "bert_base"}


class Random(CalibrationDataReader):
    def __init__(self, model, count=4):
        rng = np.random.default_rng(2)
        self.feeds = iter([{entry.name: self.example(entry, rng) for entry in model.graph.input} for _ in range(count)])

    @staticmethod
    def example(entry, rng):
        dims = [d.dim_value for d in entry.type.tensor_type.shape.dim]
        if entry.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            return rng.standard_normal(dims, np.float32)
        return np.ones(dims, np.int64) if entry.name == "mask" else rng.integers(1, 1000, dims)

    def get_next(self):
        return next(self.feeds, None)


def write_variants(path, dims, folder, variants):
    """name of a variant: its model. All come from the same prepared network."""
    sized, prepared = folder / f"{path.stem}.onnx", folder / f"{path.stem}-f32.onnx"
    onnx.save(with_sizes(path, dims), sized)
    quant_pre_process(sized, prepared, skip_symbolic_shape=True)
    models = {"f32": prepared}
    for name, per_channel in list(VARIANTS.items())[1:]:
        models[name] = folder / f"{path.stem}-{name.replace(' ', '-')}.onnx"
        quantize_static(prepared, models[name], Random(onnx.load(prepared)), quant_format=QuantFormat.QDQ,
                        per_channel=per_channel, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
    if path.stem in DYNAMIC:
        models["dynamic"] = folder / f"{path.stem}-dynamic.onnx"
        quantize_dynamic(prepared, models["dynamic"], per_channel=True, weight_type=QuantType.QInt8)
    return {name: models[name] for name in models if name in variants}


def run_lathe(arguments, engine, inputs, folder):
    run_pinned([arguments.lathe, "run", engine, f"--loadInputs={inputs}", "--exportOutput", folder / "out"], arguments.threads,
               False)
    return np.load(sorted((folder / "out").iterdir())[0])


def run_peer(model, feeds, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = level, 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, feeds)[0]


def differences(arguments, models, engines, inputs, folder):
    """Of each variant, as shares of the largest output of f32."""
    feeds = {name: np.load(file) for name, _, file in (word.partition(":") for word in inputs.split(","))}
    level = onnxruntime.GraphOptimizationLevel
    plain = run_peer(models["f32"], feeds, level.ORT_DISABLE_ALL)
    distance = lambda a, b: float(np.abs(a - b).max() / np.abs(plain).max())  # noqa: E731
    result = {}
    for name, engine in engines.items():
        wanted = run_peer(models[name], feeds, level.ORT_DISABLE_ALL)
        result[name] = {"lathe": distance(run_lathe(arguments, engine, inputs, folder), wanted),
                        "onnxruntime": distance(run_peer(models[name], feeds, level.ORT_ENABLE_ALL), wanted),
                        "quantised": distance(wanted, plain)}
    return result


def measure(arguments, model, engine, inputs):
    """One round: milliseconds of each program."""
    read_through(model), read_through(engine)
    found = {"onnxruntime": measure_onnxruntime(arguments, model, inputs)["median_ms"]}
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        run_pinned([arguments.lathe, "bench", engine, f"--threads={arguments.threads}", f"--seconds={arguments.seconds}",
                    f"--loadInputs={inputs}", f"--json={report.name}"], arguments.threads, arguments.real_time)
        found["lathe"] = json.loads(pathlib.Path(report.name).read_text())["median_ms"]
    if arguments.openvino:
        found["openvino"] = measure_openvino(arguments, model, inputs)["median_ms"]
    return found


def measure_network(arguments, network, threads, folder):
    arguments.threads = threads
    models = write_variants(arguments.models / f"{network}.onnx", NETWORKS[network], folder, arguments.variants)
    names = [entry.name for entry in onnx.load(models["f32"], load_external_data=False).graph.input]
    inputs = write_inputs({name: NETWORKS[network] for name in names}, folder)
    engines = {}
    for name, model in models.items():
        engines[name] = model.with_suffix(".engine")
        run_pinned([arguments.lathe, "build", model, "-o", engines[name], f"--threads={threads}"], threads, arguments.real_time)
    rounds = {name: [] for name in models}
    for _ in range(arguments.rounds):
        for name in models:
            rounds[name].append(measure(arguments, models[name], engines[name], inputs))
    record = {"network": network, "threads": threads, "variants": {},
              "differences": differences(arguments, models, engines, inputs, folder)}
    for name, taken in rounds.items():
        row = {program: statistics.median(r[program] for r in taken) for program in taken[0]}
        row["to_f32"] = statistics.median(r["lathe"] / plain["lathe"] for r, plain in zip(taken, rounds["f32"]))
        row["speed"] = statistics.median(min(r[p] for p in r if p != "lathe") / r["lathe"] for r in taken)
        record["variants"][name] = row
    return record


def table(report):
    lines = [f"# Quantised networks on the CPU, {report['date']}", "",
             f"{report['machine']['cpu']}, ONNX Runtime {report['onnxruntime']}, {report['rounds']} interleaved rounds, medians. "
             "Speed: the faster of the others' times in a round by Lathe's. Differences are the largest, as shares of the "
             "largest output: from ONNX Runtime without optimisations on the same model, and of that from f32.", "",
             "| network | variant | threads | Lathe ms | to Lathe f32 | ONNX Runtime ms | OpenVINO ms | speed | Lathe differs | "
             "optimised ONNX Runtime | quantisation itself |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for record in report["records"]:
        for name, row in record["variants"].items():
            difference = record["differences"][name]
            lines.append(f"| {record['network']} | {name} | {record['threads']} | {row['lathe']:.2f} | {row['to_f32']:.2f}x | "
                         f"{row['onnxruntime']:.2f} | {row.get('openvino', math.nan):.2f} | {row['speed']:.2f}x | "
                         f"{difference['lathe']:.1e} | {difference['onnxruntime']:.1e} | {difference['quantised']:.1e} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path, help="folder of NETWORK.onnx")
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), choices=NETWORKS)
    parser.add_argument("--variants", nargs="+", default=[*VARIANTS, "dynamic"], choices=[*VARIANTS, "dynamic"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1])
    parser.add_argument("--openvino", metavar="PYTHON", help="a Python that has OpenVINO")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="measured time of each process")
    parser.add_argument("--lathe", type=pathlib.Path, default=ROOT / "build/bin/lathe")
    parser.add_argument("--real-time", action="store_true", help="run at real-time priority (root)")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench/results")
    arguments = parser.parse_args()
    arguments.variants = {"f32", *arguments.variants}
    about, records, thread_counts = machine(), [], arguments.threads
    for network in arguments.networks:
        for threads in thread_counts:
            with tempfile.TemporaryDirectory() as name:
                records.append(measure_network(arguments, network, threads, pathlib.Path(name)))
            print(network, threads, *(f"{v}: {row['speed']:.2f}x" for v, row in records[-1]["variants"].items()), flush=True)
    report = {"date": datetime.date.today().isoformat(), "machine": about, "rounds": arguments.rounds,
              "onnxruntime": onnxruntime.__version__, "records": records}
    arguments.out.mkdir(parents=True, exist_ok=True)
    stem = arguments.out / f"{report['date']}-quantized"
    stem.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    stem.with_suffix(".md").write_text(table(report))
    print(table(report))


if __name__ == "__main__":
    main()
