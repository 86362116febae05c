#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles architectures with torch.compile(backend="lathe") and lathe.torch.compile() and compares them with PyTorch.

Each runs with three sets of sizes, in a process of its own. The smallest cosine of an output against PyTorch's has to be above
0.99, both ways. Needs what tools/exports/requirements.txt
names, and the build in LATHE_BUILD_DIR.
"""
import argparse
import concurrent.futures
import inspect
import json
import os
import pathlib
import subprocess
import sys
import time
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
LEAST_COSINE = 0.99
DEFAULT = ("resnet18 mobilenet_v3 efficientnet_b0 squeezenet shufflenet_v2 densenet121 convnext regnet_y googlenet swin vit_b_16 "
           "bert distilbert albert roberta gpt2 llama mistral qwen2 t5 bart whisper vit clip segformer lstm").split()
SECONDS = 900


def cosine(have, want):
    have, want = have.double().flatten(), want.double().flatten()
    if have.shape != want.shape:
        return -1.0
    norm = float(have.norm() * want.norm())
    return float(have @ want) / norm if norm else float(bool((have == want).all()))


def difference(have, want):
    """The smallest cosine of any output; -1 where their number or kind differs."""
    import export
    if type(have) is not type(want):
        return -1.0
    have, want = export.flatten(have), export.flatten(want)
    return min(map(cosine, have, want), default=1.0) if len(have) == len(want) else -1.0


def ranges(arrays):
    """{input: {axis: (min, opt, max)}} of what changes between the sets of sizes."""
    found = {}
    for name, first in arrays[0].items():
        sizes = [[given[name].shape[axis] for given in arrays] for axis in range(first.dim())]
        found[name] = {axis: (min(each), each[1], max(each)) for axis, each in enumerate(sizes) if len(set(each)) > 1}
    return {name: axes for name, axes in found.items() if axes}


def compiled(way, model, arrays, by_keyword, options):
    import torch

    import lathe.torch
    if way == "backend":
        return torch.compile(model, backend="lathe", options=options or None)
    if by_keyword:
        return lathe.torch.compile(model, (), arrays[1], dynamic=ranges(arrays), **options)
    names = dict(zip(arrays[0], inspect.signature(model.forward).parameters))
    dynamic = {names[name]: axes for name, axes in ranges(arrays).items()}
    return lathe.torch.compile(model, tuple(arrays[1].values()), dynamic=dynamic, **options)


def of_strategies(call, want):
    """The smallest cosine of runs with each strategy of contexts; the third of the same sizes replays a graph where there are such."""
    import lathe.torch
    from lathe import tensorrt as trt
    least = 1.0
    for specialization in trt.DynamicShapesKernelSpecializationStrategy:
        for graphs in trt.CudaGraphStrategy:
            with lathe.torch.strategies(specialization=specialization, cuda_graphs=graphs):
                least = min([least, *(difference(call(), want) for _ in range(3 if graphs else 1))])
    return least


def measure(name, ways, options, device):
    """{"cosine": {way: value, "strategies": value}, "stays": {way: text}, "seconds": {way: of all}} of one model."""
    sys.path.insert(0, str(pathlib.Path(os.environ["LATHE_BUILD_DIR"]) / "python"))
    import export
    import models
    import torch
    row = next(model for model in models.MODELS if model.name == name)
    torch.manual_seed(0)
    model = row.make().eval().to(device)
    by_keyword = type(model).__module__.startswith("transformers")
    arrays = [{key: torch.from_numpy(value).to(device) for key, value in export.make_inputs(row, sizes, index).items()}
              for index, sizes in enumerate(export.size_sets(row, row.sizes))]
    found = {"cosine": {}, "stays": {}, "seconds": {}}
    with torch.no_grad(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for way in ways:
            start = time.monotonic()
            fast = compiled(way, model, arrays, by_keyword, options)
            found["cosine"][way] = min(difference(fast(**given) if by_keyword else fast(*given.values()),
                                                  model(**given) if by_keyword else model(*given.values())) for given in arrays)
            given = arrays[-1]
            want = model(**given) if by_keyword else model(*given.values())
            strategies = of_strategies(lambda fast=fast, given=given: fast(**given) if by_keyword else fast(*given.values()), want)
            found["cosine"]["strategies"] = min(strategies, found["cosine"].get("strategies", 1.0))
            found["seconds"][way] = round(time.monotonic() - start, 1)
            texts = [str(each.message) for each in caught if str(each.message).startswith("lathe: ")]
            found["stays"][way] = texts[0][:300] if texts else ""
            caught.clear()
    return found


def run_one(name, arguments):
    command = [sys.executable, __file__, "--one", name, "--ways", *arguments.ways, "--device", arguments.device,
               "--options", arguments.options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return name, {"error": f"it took more than {SECONDS} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return name, json.loads(lines[-1]) if done.returncode == 0 and lines else {"error": done.stderr.strip()[-600:]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=DEFAULT, metavar="MODEL", help="names of tools/exports/models.py")
    parser.add_argument("--ways", nargs="+", default=["backend", "module"], choices=["backend", "module"])
    parser.add_argument("--device", default="cpu", help="where the tensors are: cpu or cuda")
    parser.add_argument("--options", default="{}", help="the fields of lathe.torch.Options, as JSON")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one, arguments.ways, json.loads(arguments.options), arguments.device)))
        return 0
    failures = []
    print("| model | cosine | seconds | stays in PyTorch |\n| --- | --- | --- | --- |", flush=True)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for name, found in pool.map(lambda name: run_one(name, arguments), arguments.models):
            if "error" in found or min(found["cosine"].values()) <= LEAST_COSINE:
                failures.append(name)
            if "error" in found:
                print(f"| {name} | FAILED | | {found['error']} |", flush=True)
                continue
            print(f"| {name} | {', '.join(f'{value:.7f}' for value in found['cosine'].values())} | "
                  f"{', '.join(map(str, found['seconds'].values()))} | {' / '.join(filter(None, found['stays'].values()))} |",
                  flush=True)
    print(f"{len(arguments.models) - len(failures)} of {len(arguments.models)} agree with PyTorch" +
          (f"; not {', '.join(failures)}" if failures else ""))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
