#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs on a GPU that a plan runs elsewhere, too, or that its weights do not fit: prints tables, and writes JSON.

  compatible.py levels     networks in f16 at each level of hardware compatibility, with the runtime of their version inside,
                           and built without the device; exits with 1 where a level is faster than a less compatible one, or has
                           less of the speed of a plan for the device alone than it had (LEAST)
  compatible.py kinds --plans FOLDER
                           plans that were built on other kinds of GPUs of the architecture, beside those that are built here: puts these
                           into FOLDER, and runs all that earlier calls on other kinds have put there; exits with 1 where one has less
                           of the speed than LEAST_ELSEWHERE
  compatible.py streaming  a network of products whose weights exceed their budget: share of full speed by the budget

Plans of all levels are built first, and run in turns, each round a process of its own; a number is the median of the rounds'
medians. Levels that compile for the same code share a timing cache, so that they differ in nothing but the level.
"""
import argparse
import json
import pathlib
import re
import statistics
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from gpu_check import ROOT, describe_machine, last_lines, run

CONVOLUTIONS = ("resnet50", "mobilenet_v2")  # of tools/models; others are those of attention_networks.py
LEVELS = {  # name: (what builds it, whose measurements it takes, what loading it takes)
    "none": ([], "native", []),
    "same compute capability": (["--hardwareCompatibilityLevel=sameComputeCapability"], "native", []),
    "ampere-plus": (["--hardwareCompatibilityLevel=ampere+"], "ampere", []),
    "version-compatible": (["--versionCompatible"], "native", ["--versionCompatible"]),
    "built without the device": (["--target=sm_90"], None, []),
}
ORDERED = ("none", "same compute capability", "ampere-plus")  # no level is faster than the one before it
NOISE = 1.03
LEAST = {"same compute capability": 0.97, "ampere-plus": 0.68, "version-compatible": 0.97, "built without the device": 0.75}
LEAST_ELSEWHERE = 0.85
SHARES = (0, 10, 25, 50, 75, 90, 100)  # of the weights: what the budget leaves on the device, per cent
LAYERS, WIDTH = 16, 4096


def trtexec(options, *words):
    status, out, err, _ = run([options.build / "bin/trtexec", *words], 170)
    if status != 0:
        raise RuntimeError(f"trtexec {' '.join(map(str, words))}: {status}\n{last_lines(out + err, 12)}")
    return out


def gpu_ms(options, engine, *words):
    out = trtexec(options, f"--loadEngine={engine}", f"--duration={options.seconds}", "--useCudaGraph", "--noDataTransfers", *words)
    return (float(re.search(r"GPU Compute Time: .*?median = ([\d.]+) ms", out)[1]),
            float(re.search(r"Engine deserialized in ([\d.]+) sec", out)[1]) * 1e3)


def write_model(name, path):
    if name in CONVOLUTIONS:
        command = [ROOT / "tools/models/write.py", name, "--batch=dynamic", "--out", path]
    else:
        command = [ROOT / "tools/gpu_check/attention_networks.py", "write", name, path]
    status, out, err, _ = run([sys.executable, *command])
    if status != 0:
        raise RuntimeError(last_lines(out + err, 5))


class Levels:
    """Of one network and batch."""

    def __init__(self, options, name, batch, folder):
        self.options, self.name, self.batch, self.folder = options, name, batch, folder
        self.model = folder / f"{name}.onnx"
        if not self.model.exists():
            write_model(name, self.model)
        value = onnx.load(self.model, load_external_data=False).graph.input[0]
        dims = [batch, *(dim.dim_value for dim in value.type.tensor_type.shape.dim[1:])]
        self.shapes = f"{value.name}:{'x'.join(map(str, dims))}"

    def plan(self, level):
        return self.folder / f"{self.name}.{self.batch}.{level.replace(' ', '_')}.plan"

    def build(self, level):
        words, cache, _ = LEVELS[level]
        if not cache:  # by `lathe build`, which does not load what it has built
            ranges = [f"--{which}Shapes={self.shapes}" for which in ("min", "opt", "max")]
            status, _, err, _ = run([self.options.build / "bin/lathe", "build", self.model, "-o", self.plan(level), "--fp16", *words, *ranges],
                                    CUDA_VISIBLE_DEVICES="")
            if status != 0:
                raise RuntimeError(last_lines(err, 5))
            return
        cache_file = f"--timingCacheFile={self.folder}/{self.name}.{self.batch}.{cache}.cache"
        trtexec(self.options, f"--onnx={self.model}", f"--saveEngine={self.plan(level)}", f"--shapes={self.shapes}", "--fp16",
                "--generation=10", f"--buildBudget={self.options.budget}", "--skipInference", cache_file, *words)

    def measure(self):
        for level in ("none", "ampere-plus", *LEVELS):  # the first two until nothing is left to measure, or the budget is
            self.build(level)
        found = {level: [] for level in LEVELS}
        for _ in range(self.options.rounds):
            for level, (_, _, words) in LEVELS.items():
                found[level].append(gpu_ms(self.options, self.plan(level), f"--shapes={self.shapes}", *words))
        return {level: {"ms": statistics.median(ms for ms, _ in rounds), "load_ms": statistics.median(ms for _, ms in rounds[1:] or rounds),
                        "first_load_ms": rounds[0][1], "bytes": self.plan(level).stat().st_size} for level, rounds in found.items()}


def levels(options, folder):
    rows, failed = [], []
    print("| network | batch | level | ms | speed against none | bytes | first load ms | load ms |\n" + "| --- " * 8 + "|")
    for batch in options.batches:
        for name in options.networks:
            measured = Levels(options, name, batch, folder).measure()
            for level, row in measured.items():
                row |= {"network": name, "batch": batch, "level": level, "speed": measured["none"]["ms"] / row["ms"]}
                rows.append(row)
                print(f"| {name} | {batch} | {level} | {row['ms']:.3f} | {row['speed']:.2f} | {row['bytes']} | "
                      f"{row['first_load_ms']:.0f} | {row['load_ms']:.0f} |", flush=True)
    means = {level: statistics.geometric_mean(row["ms"] for row in rows if row["level"] == level) for level in LEVELS}
    for level, mean in means.items():
        print(f"| geometric mean | | {level} | {mean:.3f} | {means['none'] / mean:.2f} | | | |")
    for before, after in zip(ORDERED, ORDERED[1:]):
        if means[before] > NOISE * means[after]:
            failed.append(f"{before} takes {means[before]:.3f} ms, and {after} {means[after]:.3f} ms")
    for level, least in LEAST.items():
        if means["none"] / means[level] < least:
            failed.append(f"{level} has {means['none'] / means[level]:.2f} of the speed; it had {least}")
    return rows, failed


def kinds(options, folder):
    """Plans lie in FOLDER/kind/network.batch.plan. The first number of each row is of the plan that was built here."""
    rows, failed, here = [], [], describe_machine().split(",")[0].replace(" ", "_")
    (options.plans / here).mkdir(parents=True, exist_ok=True)
    print("| network | batch | built on | ms | speed against the plan built here |\n" + "| --- " * 5 + "|")
    for batch in options.batches:
        for name in options.networks:
            network = Levels(options, name, batch, folder)
            for _ in range(2):  # the second time with what is left to measure
                network.build("none")
            own = options.plans / here / f"{name}.{batch}.plan"
            own.write_bytes(network.plan("none").read_bytes())
            plans = [own, *sorted(set(options.plans.glob(f"*/{own.name}")) - {own})]
            found = {plan: [] for plan in plans}
            for _ in range(options.rounds):
                for plan in plans:
                    found[plan].append(gpu_ms(options, plan, f"--shapes={network.shapes}")[0])
            times = {plan: statistics.median(rounds) for plan, rounds in found.items()}
            for plan, ms in times.items():
                row = {"network": name, "batch": batch, "built_on": plan.parent.name, "ms": ms, "speed": times[own] / ms}
                rows.append(row)
                print(f"| {name} | {batch} | {plan.parent.name} | {ms:.3f} | {row['speed']:.2f} |", flush=True)
                if row["speed"] < LEAST_ELSEWHERE:
                    failed.append(f"{name}, batch {batch}, built on {plan.parent.name}: {row['speed']:.2f} of the speed of a plan built here")
    if len({row["built_on"] for row in rows}) == 1:
        print(f"no plans of other kinds yet: call it on another one with {options.plans}")
    return rows, failed


def write_products(path, batch):
    """Layers of one product each: y = relu(x w). Their weights are a few random numbers, many times: time does not depend on them."""
    pool = np.random.default_rng(0).standard_normal(1 << 20, dtype=np.float32)
    weights = np.resize(pool / np.sqrt(WIDTH), (WIDTH, WIDTH)).astype(np.float16)
    nodes, held, last = [], [], "x"
    for layer in range(LAYERS):
        held.append(numpy_helper.from_array(np.roll(weights, layer), f"w{layer}"))
        nodes.append(helper.make_node("MatMul", [last, f"w{layer}"], [f"p{layer}"]))
        nodes.append(helper.make_node("Relu", [f"p{layer}"], [f"y{layer}"]))
        last = f"y{layer}"
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, [batch, WIDTH]) for name in ("x", last)]
    graph = helper.make_graph(nodes, "products", values[:1], values[1:], held)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def streaming(options, folder):
    rows = []
    print("| batch | budget, MB | of the weights | ms | of full speed | streamed, GB/s |\n" + "| --- " * 6 + "|")
    for batch in options.stream_batches:
        model, plan = folder / f"products.{batch}.onnx", folder / f"products.{batch}.plan"
        write_products(model, batch)
        trtexec(options, f"--onnx={model}", f"--saveEngine={plan}", "--stronglyTyped", "--allowWeightStreaming", "--skipInference",
                f"--buildBudget={options.budget}")
        weights = LAYERS * WIDTH * WIDTH * 2
        times = {share: gpu_ms(options, plan, "--allowWeightStreaming", f"--weightStreamingBudget={share}%")[0]
                 for share in reversed(SHARES)}
        for share, ms in times.items():
            row = {"batch": batch, "share": share, "budget": weights * share // 100, "ms": ms, "speed": times[100] / ms,
                   "bytes_per_second": weights * (100 - share) / 100 / ms * 1e3}
            rows.append(row)
            print(f"| {batch} | {row['budget'] / 1e6:.0f} | {share} % | {ms:.3f} | {row['speed']:.2f} | "
                  f"{row['bytes_per_second'] / 1e9:.1f} |", flush=True)
    return rows, []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("levels", "kinds", "streaming"))
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--networks", nargs="+", default=(*CONVOLUTIONS, "vit_b_16", "bert_base"))
    parser.add_argument("--batches", nargs="+", type=int, default=(1, 8))
    parser.add_argument("--stream-batches", nargs="+", type=int, default=(1024, 4096, 16384), help="rows of what goes through the products")
    parser.add_argument("--budget", type=float, default=10, help="seconds of tuning for each build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each measurement")
    parser.add_argument("--plans", type=pathlib.Path, help="of kinds: where plans of all kinds are")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    if (options.command == "kinds") != bool(options.plans):
        parser.error("kinds takes --plans, and nothing else does")
    device = describe_machine()
    print(f"{device}\n")
    with tempfile.TemporaryDirectory() as folder:
        rows, failed = {"levels": levels, "kinds": kinds, "streaming": streaming}[options.command](options, pathlib.Path(folder))
    if options.json:
        options.json.write_text(json.dumps({"device": device, "rows": rows}, indent=1))
    if failed:
        sys.exit("\n".join(failed))


if __name__ == "__main__":
    main()
