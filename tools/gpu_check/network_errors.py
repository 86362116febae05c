#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far float16 results of attention_networks.py's networks are from float64's, by PyTorch and by Lathe, on the same
random inputs, and whether Lathe's are the same bits in every run.

  python3 tools/gpu_check/network_errors.py --build build [bert_base llama_1b ...] [--runs 1000]

An error is the length of the difference over the length of the result (2-norms); the greatest difference over the greatest
result stands beside it. Exits with 1 where Lathe's error is more than 1.5 times PyTorch's, or runs differ.
"""
import argparse
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch

import attention_networks as networks
import library_networks

ALLOWED = 1.5
BATCH = 2


def results_of(model, inputs):
    with torch.inference_mode():
        found = model(*inputs)
    return [y.double().cpu().numpy() for y in (found if isinstance(found, tuple) else (found,))]


def cast(inputs, dtype):
    return [x.to(dtype) if x.is_floating_point() else x for x in inputs]


def errors_of(results, expected):
    """Of the worst result: by length, and by the greatest difference."""
    return [np.max([norm(got.astype(np.float64) - want) / norm(want) for got, want in zip(results, expected, strict=True)])
            for norm in (np.linalg.norm, lambda x: np.abs(x).max())]


def write_and_evaluate(name, folder):
    """The network and its inputs as files, and PyTorch's results in float64, with the errors of those in float16."""
    model, inputs = networks.make(name, BATCH)
    inputs = cast(inputs, torch.float16)  # so that no one loses anything of what goes in
    for i, x in enumerate(inputs):
        np.save(folder / f"x{i}.npy", (x.float() if x.is_floating_point() else x).cpu().numpy())
    expected = results_of(copy.deepcopy(model).double(), cast(inputs, torch.float64))
    for i, y in enumerate(expected):
        np.save(folder / f"expected{i}.npy", y)
    errors = errors_of(results_of(copy.deepcopy(model).half(), inputs), expected)
    networks.export(model, cast(inputs, torch.float32), str(folder / "model.onnx"))
    print(json.dumps({"errors": errors, "results": len(expected)}))


def run(words, seconds):
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=seconds)
    if result.returncode != 0:
        raise RuntimeError(f"{pathlib.Path(words[0]).name}: {result.stderr.strip()[-400:]}")
    return result.stdout


def lathe_errors(options, folder, count):
    inputs = sorted(folder.glob("x*.npy"))
    shapes = ",".join(f"{path.stem}:{'x'.join(map(str, np.load(path, mmap_mode='r').shape))}" for path in inputs)
    run([options.build / "bin/lathe", "run", folder / "model.onnx", "--fp16", "--target=cuda", "--buildBudget=0",
         "--loadInputs=" + ",".join(f"{path.stem}:{path}" for path in inputs), f"--exportOutput={folder / 'out'}",
         *(f"--{bound}Shapes={shapes}" for bound in ("min", "opt", "max"))], options.seconds)
    names = [value.name for value in onnx_outputs(folder / "model.onnx")]
    return errors_of([np.load(folder / "out" / f"{name}.npy") for name in names],
                     [np.load(folder / f"expected{i}.npy") for i in range(count)])


def onnx_outputs(path):
    import onnx
    return onnx.load(path, load_external_data=False).graph.output


def equal_runs(options, folder):
    words = [options.build / "bin/bench_networks", folder / "model.onnx", "--target=cuda", "--precision=f16", f"--batch={BATCH}",
             "--budget=0", "--seconds=0.1", f"--repeat={options.runs}"]
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=options.seconds)
    if result.returncode != 0 and "gave other bits" not in result.stdout + result.stderr:
        raise RuntimeError(f"bench_networks: {result.stderr.strip()[-400:]}")
    return result.returncode == 0


def check(options, name, folder, writer):
    out, err = writer.communicate(timeout=options.seconds)
    if writer.returncode != 0:
        raise RuntimeError(err.strip().splitlines()[-1])
    said = json.loads(out.splitlines()[-1])
    ours, theirs = lathe_errors(options, folder, said["results"]), said["errors"]
    equal = equal_runs(options, folder)
    print(f"| {name} | {theirs[0]:.2e} | {ours[0]:.2e} | {ours[0] / theirs[0]:.2f} | {theirs[1]:.2e} | {ours[1]:.2e} | "
          f"{'equal' if equal else 'DIFFER'} |", flush=True)
    return equal and ours[0] <= ALLOWED * theirs[0]


def compare(options):
    print(f"| network | PyTorch | Lathe | ratio | PyTorch, greatest | Lathe | {options.runs} runs |\n"
          "| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    right = True
    with tempfile.TemporaryDirectory() as root:
        folders = {name: pathlib.Path(root) / name for name in options.names}
        writers = {}
        for name, folder in folders.items():
            folder.mkdir()
            writers[name] = subprocess.Popen([sys.executable, __file__, name, "--write", folder], stdout=subprocess.PIPE,
                                             stderr=subprocess.PIPE, text=True, env=networks.ENVIRONMENT)
        for name, folder in folders.items():
            try:
                right &= check(options, name, folder, writers[name])
            except (RuntimeError, subprocess.TimeoutExpired, OSError) as problem:
                right = False
                print(f"| {name} | {problem} |", flush=True)
    return right


def main():
    known = [*networks.NETWORKS, *library_networks.NETWORKS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="all unless given: " + ", ".join(known))
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2] / "build")
    parser.add_argument("--runs", type=int, default=1000, help="that must give equal bits")
    parser.add_argument("--seconds", type=float, default=200, help="limit of each step")
    parser.add_argument("--write", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.names = options.names or known
    if unknown := set(options.names) - set(known):
        parser.error(f"no such network: {', '.join(sorted(unknown))}")
    if options.write:
        write_and_evaluate(options.names[0], options.write)
        return 0
    return 0 if compare(options) else 1


if __name__ == "__main__":
    sys.exit(main())
