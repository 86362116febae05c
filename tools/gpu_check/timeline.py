#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which kernel of a network that runs again and again takes how long, as it runs: in its stream or graph, with
launches that overlap. Records every kernel of a command by timeline.cpp, looks for the sequence that repeats at the end,
and prints a line for each of its kernels, medians in microseconds over the repetitions:

  adds   from the end of those before to its own: these add up to a run
  takes  from its beginning to its end; it begins before the one before has ended where launches are programmatic

Lathe's kernels have one name: kernels are told apart by their grids, in the order of the engine's steps (`lathe
inspect`), without steps whose copies are not wanted.

  python3 tools/gpu_check/timeline.py [--skip-last N] -- build/bin/example_llm model.onnx ...
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
NEAR = 3  # kernels before one, of which the last to end need not be the last to begin


def cupti_folders():
    """Of CUPTI's headers and library: the toolkit's, or those of NVIDIA's Python packages."""
    found = [pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))]
    try:
        import nvidia
        found += [pathlib.Path(path) / part for path in nvidia.__path__ for part in ("cu13", "cuda_cupti")]
    except ImportError:
        pass
    includes = [str(path / "include") for path in found if (path / "include").is_dir()]
    libraries = [library.resolve() for path in found for part in ("lib64", "lib", "extras/CUPTI/lib64")
                 for library in sorted((path / part).glob("libcupti.so*"))]
    if not libraries:
        sys.exit("timeline.py: no libcupti.so in " + ", ".join(map(str, found)))
    return includes, libraries[0]


def injection(folder):
    includes, library = cupti_folders()
    out = f"{folder}/timeline.so"
    subprocess.run(["g++", "-std=c++20", "-O2", "-fPIC", "-shared", str(HERE / "timeline.cpp"), "-o", out,
                    *(f"-I{path}" for path in includes), str(library), f"-Wl,-rpath,{library.parent}"], check=True)
    return out


def record(command):
    with tempfile.TemporaryDirectory() as folder:
        log = f"{folder}/kernels.tsv"
        environment = dict(os.environ, CUDA_INJECTION64_PATH=injection(folder), LATHE_TIMELINE=log)
        subprocess.run(command, env=environment, check=True, stdout=sys.stderr)
        kernels = []
        for line in pathlib.Path(log).read_text().splitlines():
            start, end, blocks, threads, name = line.split("\t", 4)
            kernels.append((int(start), int(end), int(blocks), int(threads), name))
    return sorted(kernels)


def period(kernels, least):
    """The length of the shortest sequence that stands three times at the end."""
    for length in range(least, len(kernels) // 3 + 1):
        if kernels[-length:] == kernels[-2 * length:-length] == kernels[-3 * length:-2 * length]:
            return length
    sys.exit("timeline.py: no sequence of kernels repeats at the end: give --skip-last or a smaller --at-least")


def table(kernels, least):
    shapes = [kernel[2:] for kernel in kernels]
    length = period(shapes, least)
    ends = range(len(kernels), length, -length)
    runs = [end - length for end in ends if shapes[end - length:end] == shapes[-length:]]
    yield f"{length} kernels a run, {len(runs)} runs"
    yield f"{'adds':>8} {'takes':>8} {'blocks':>7} {'threads':>7}  kernel"
    total = 0
    for place in range(length):
        at = [first + place for first in runs if first + place > NEAR]
        adds = statistics.median(kernels[i][1] - max(k[1] for k in kernels[i - NEAR:i]) for i in at) / 1e3
        takes = statistics.median(kernels[i][1] - kernels[i][0] for i in at) / 1e3
        total += adds
        _, _, blocks, threads, name = kernels[at[0]]
        yield f"{adds:8.2f} {takes:8.2f} {blocks:7} {threads:7}  {' '.join(name.split())[:90]}"
    yield f"{total:8.2f} in all"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skip-last", type=int, default=0, metavar="N", help="kernels at the end that are of no run")
    parser.add_argument("--at-least", type=int, default=8, metavar="N", help="kernels that a run has at least")
    parser.add_argument("--raw", type=pathlib.Path, help="writes all kernels there, tab-separated")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    kernels = record(options.command)
    if options.raw:
        options.raw.write_text("".join("\t".join(map(str, k)) + "\n" for k in kernels))
    for line in table(kernels[:len(kernels) - options.skip_last], options.at_least):
        print(line)


if __name__ == "__main__":
    main()
