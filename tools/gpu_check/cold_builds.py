#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds a network many times at once with no compiled kernel at hand, and prints what crashed and how long it took:
with processes that compile (lathe-compiler), and compiling in the builder's own process.

  python3 tools/gpu_check/cold_builds.py --build build --builds 50

First one build alone in each way, then all of them together. Exits with 1 when a build fails. With --target=sm_90 no GPU
is needed: nothing is timed then, and fewer kernels are compiled.
"""
import argparse
import concurrent.futures
import pathlib
import re
import statistics
import sys
import tempfile

from gpu_check import ROOT, last_lines, run, table

WAYS = {"worker processes": {}, "in the process": {"LATHE_COMPILER": ""}}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--network", default="s3d", help="as tools/models/write.py knows it (s3d: 3-D convolutions)")
    parser.add_argument("--target", default="cuda")
    parser.add_argument("--builds", type=int, default=50, help="that run together")
    parser.add_argument("--budget", type=float, default=60, help="seconds of tuning for each build")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--timeout", type=float, default=550, help="seconds for each build")
    return parser.parse_args()


def build_once(arguments, model, engine, way):
    """(exit status, negative for a signal; seconds; kernels that ended or stopped a compiler; last words)"""
    command = [arguments.build / "bin/lathe", "build", model, "-o", engine, f"--target={arguments.target}",
               f"--buildBudget={arguments.budget}"]
    status, out, err, seconds = run(command, arguments.timeout, LATHE_CACHE_DIR="", **WAYS[way])
    engine.unlink(missing_ok=True)
    return status, seconds, len(re.findall("compiling the kernel: ", out + err)), last_lines(out + err, 3)


def row_of(way, results):
    seconds = [result[1] for result in results]
    crashes = sum(status < 0 for status, *_ in results)
    failures = sum(status > 0 for status, *_ in results)
    return (way, len(results), crashes, failures, sum(lost for _, _, lost, _ in results),
            f"{statistics.median(seconds):.1f}", f"{max(seconds):.1f}")


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        model = folder / "model.onnx"
        status, out, err, _ = run([sys.executable, ROOT / "tools/models/write.py", arguments.network, "--out", model])
        if status != 0:
            sys.exit(last_lines(out + err, 3))
        rows, failed = [], []
        for count in sorted({1, arguments.builds}):
            for way in arguments.ways:
                with concurrent.futures.ThreadPoolExecutor(count) as pool:
                    results = list(pool.map(lambda i: build_once(arguments, model, folder / f"{i}.engine", way),
                                            range(count)))
                rows.append(row_of(way, results))
                failed += [f"{way}: exit status {status}: {text}" for status, _, _, text in results if status != 0]
                print(*rows[-1], flush=True)
    print()
    table(rows, ("compiled by", "builds together", "crashed", "failed", "kernels lost", "median s", "slowest s"))
    if failed:
        sys.exit("\n".join(failed[:5]))


if __name__ == "__main__":
    main()
