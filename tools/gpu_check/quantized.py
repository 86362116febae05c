#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Convolutional networks on a GPU in f16, and quantised by ONNX Runtime with i8 and with u8 activations: milliseconds,
how many times as fast as f16 that is, megabytes of the engine, and the greatest difference from ONNX Runtime without
optimisations, as a share of the greatest output, beside that of the quantisation from f32.

  python3 tools/gpu_check/quantized.py --build build --out /tmp/quantized [--seconds 150] [--networks resnet50]

Engines are built on the GPU, and each step of the quantised ones is profiled: OUT/NETWORK-VARIANT-BATCH.txt.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import time

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

ROOT = pathlib.Path(__file__).resolve().parents[2]
NETWORKS = ("resnet50", "mobilenet_v2")
CASES = [("resnet50", variant, batch) for batch in (32, 1) for variant in ("f16", "s8", "u8")]
CASES += [("mobilenet_v2", variant, batch) for batch in (32, 1) for variant in ("f16", "s8", "u8")]


class Random(CalibrationDataReader):
    def __init__(self, name):
        rng = np.random.default_rng(2)
        self.feeds = iter([{name: rng.standard_normal((1, 3, 224, 224), np.float32)} for _ in range(2)])

    def get_next(self):
        return next(self.feeds, None)


def write_variants(network, folder):
    plain, prepared = folder / f"{network}-plain.onnx", folder / f"{network}-f16.onnx"
    subprocess.run([sys.executable, ROOT / "tools/models/write.py", network, "--out", plain], check=True,
                   stdout=subprocess.DEVNULL)
    quant_pre_process(plain, prepared, skip_symbolic_shape=True)
    name = onnx.load(prepared).graph.input[0].name
    for variant, activations in (("s8", QuantType.QInt8), ("u8", QuantType.QUInt8)):
        quantize_static(prepared, folder / f"{network}-{variant}.onnx", Random(name), quant_format=QuantFormat.QDQ,
                        per_channel=True, activation_type=activations, weight_type=QuantType.QInt8,
                        extra_options={"ActivationSymmetric": variant == "s8"})
    return name


def with_batch(path, batch):
    """The file of the model for that batch."""
    model = onnx.load(path)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = batch
    del model.graph.value_info[:]
    result = path.with_name(f"{path.stem}-{batch}.onnx")
    onnx.save(model, result)
    return result


def run_plain(path, feeds):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, feeds)[0]


def measure(arguments, case, name, milliseconds_of):
    network, variant, batch = case
    model, engine = with_batch(arguments.out / f"{network}-{variant}.onnx", batch), arguments.out / "engine"
    image = np.random.default_rng(1).random((batch, 3, 224, 224), np.float32)
    np.save(arguments.out / "x.npy", image)
    lathe, inputs = arguments.build / "bin/lathe", f"--loadInputs={name}:{arguments.out / 'x.npy'}"

    def call(*words):
        result = subprocess.run([lathe, *map(str, words)], capture_output=True, text=True)
        if result.returncode:
            raise RuntimeError(f"{words}: {(result.stdout + result.stderr)[-600:]}")
        return result.stdout

    began = time.monotonic()
    call("build", model, "-o", engine, "--target=cuda", "--fp16")
    seconds = time.monotonic() - began
    timing = call("trtexec", f"--loadEngine={engine}", "--noDataTransfers", "--useCudaGraph", "--duration=1")
    milliseconds = float(re.search(r"GPU Compute Time:.*median = ([0-9.]+) ms", timing)[1])
    call("run", engine, inputs, "--exportOutput", arguments.out / "results")
    got = np.load(sorted((arguments.out / "results").iterdir())[0])[:2]
    few = {name: image[:2]}
    wanted = run_plain(with_batch(arguments.out / f"{network}-{variant}.onnx", min(batch, 2)), few)
    exact = run_plain(with_batch(arguments.out / f"{network}-f16.onnx", min(batch, 2)), few)
    most = np.abs(exact).max()
    if variant != "f16":
        profile = call("inspect", engine, "--profile", inputs)
        (arguments.out / f"{network}-{variant}-{batch}.txt").write_text(profile)
    milliseconds_of[case] = milliseconds
    plain = milliseconds_of.get((network, "f16", batch))
    return [f"{milliseconds:.4f}", f"{plain / milliseconds:.2f}x" if plain else "-", f"{engine.stat().st_size / 1e6:.1f}",
            f"{np.abs(got - wanted).max() / most:.1e}", f"{np.abs(wanted - exact).max() / most:.1e}", f"{seconds:.0f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=150, help="no case begins after that")
    parser.add_argument("--networks", nargs="+", default=NETWORKS, choices=NETWORKS)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    names, milliseconds_of = {}, {}
    print("| network | batch | variant | ms | speed | engine MB | differs | Q/DQ itself | build s |\n" + "| --- " * 9 + "|")
    for case in CASES:
        network, variant, batch = case
        if network not in arguments.networks:
            continue
        if time.monotonic() - began > arguments.seconds:
            print(f"| {network} | {batch} | {variant} | not run: out of time |")
            continue
        if network not in names:
            names[network] = write_variants(network, arguments.out)
        try:
            row = measure(arguments, case, names[network], milliseconds_of)
        except RuntimeError as error:
            row = [str(error)]
        print(f"| {network} | {batch} | {variant} | " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
