#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans of every release in the libraries of that release and of all later ones, up to this tree's: `make test-releases`.

Releases are built from their own sources (releases.txt), for this machine's instructions alone, in build/releases: minutes for each, once. With
--built they were built on another machine, which has no GPU, and plans for GPUs run on the one here instead of its stand-in. Each
makes plans of make_archive.py's networks. Whichever library, and whichever way it takes to the plan, the answer must have the bits
of that of the plan's own release; libraries of earlier releases must refuse the plan, and name both versions."""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import onnx

from make_archive import DEVICES, ROOT, build_plan, networks, stand_in_for_gpu

LIBRARIES = ("lathe", "lathe_lean", "lathe_dispatch")
KINDS = {"plain": [], "held": ["--versionCompatible"], "bare": ["--versionCompatible", "--excludeLeanRuntime"]}
Plan = collections.namedtuple("Plan", "version device network kind path given")


def releases():
    lines = (ROOT / "tests/compat/releases.txt").read_text().splitlines()
    return [line.split() for line in lines if not line.startswith("#")]


def build_release(folder, commit):
    """The folder `build` of the release's sources."""
    source = folder / "source"
    if not source.exists():
        source.mkdir(parents=True)
        packed = subprocess.run(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(["tar", "-x"], cwd=source, input=packed, check=True)
    for command in (["cmake", "--preset", "release", "-DLATHE_CPU_KERNELS=native"],
                    ["cmake", "--build", "build", "--parallel", str(os.cpu_count()), "--target", "lathe_cli", *LIBRARIES,
                     "fake_cuda_driver", "fake_nvrtc", "lathe_emulator"]):
        done = subprocess.run(command, cwd=source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            sys.exit(f"{commit} does not build:\n{done.stdout[-4000:]}")
    return source / "build"


class Crosswise:
    def __init__(self, builds, levels, folder, stands_in):
        self.builds, self.levels, self.folder, self.stands_in = builds, levels, folder, stands_in
        self.versions = list(builds)
        self.failures, self.counts = [], collections.Counter()

    def plans(self):
        for network, n, _ in networks():
            name = network.__name__
            given = self.folder / name
            given.mkdir()
            for tensor, values in n.given.items():
                values.tofile(given / tensor)
            onnx.save(n.model(), self.folder / f"{name}.onnx")
            for version, build in self.builds.items():
                for device, (_, chosen) in DEVICES.items():
                    for kind, options in KINDS.items() if network in chosen else ():
                        path = self.folder / f"{name}.{version}.{device}.{kind}"
                        build_plan(build, self.folder / f"{name}.onnx", n, device, path, *options, stands_in=self.stands_in)
                        yield Plan(version, device, name, kind, path, given)

    def run(self, plan, version, kind, *options):
        """Exit status, what was printed and outputs."""
        here = self.builds[self.versions[-1]]
        variables = stand_in_for_gpu(here) if self.stands_in and plan.device == "cuda" else {}
        with tempfile.TemporaryDirectory() as made:
            done = subprocess.run([here / "bin/version_runner", self.builds[version] / f"lib/lib{kind}.so", plan.path, plan.given, made, *options],
                                  capture_output=True, text=True, env=os.environ | variables)
            outputs = {path.name: path.read_bytes() for path in pathlib.Path(made).iterdir()}
        return done.returncode, done.stdout + done.stderr, outputs

    def routes(self, plan, version):
        """The options of each way to have the plan run."""
        if plan.kind == "plain":
            return {"as usual": []} if version == plan.version else {}
        if plan.kind == "held":
            return {"with its runtime": ["--allow"]}
        given = f"--lean={self.builds[plan.version] / 'lib/liblathe_lean.so'}"
        later = {"loadRuntime(), then what it lacks": [given, "--later"]} if version == self.versions[-1] else {}
        return {"without": [], "loadRuntime()": [given], **later}

    def check(self, plan):
        status, messages, wanted = self.run(plan, plan.version, "lathe", "--allow")
        if status != 0 or not wanted:
            self.failures.append(f"{plan.path.name} in its own release: {messages}")
            return
        for version in self.versions:
            newer = self.versions.index(version) >= self.versions.index(plan.version)
            for kind in LIBRARIES:
                for route, options in self.routes(plan, version).items() if newer else [("refused", ["--allow"])]:
                    status, messages, outputs = self.run(plan, version, kind, *options)
                    told = "LATHE-4002" in messages and f"{plan.version}.0" in messages and f"{version}.0" in messages
                    if version == "0.1.0":  # which looks at all of the header before it asks who wrote it
                        told = told or "LATHE-4001" in messages and "bytes that mean nothing" in messages
                    holds = (status == 0 and outputs == wanted) if newer else (status == 3 and told)
                    if "--later" in options:
                        lacks = self.levels[plan.version] < self.levels[version]
                        holds = holds and f"missing {lacks:d}\n" in messages and ("LATHE-4102" in messages) == lacks
                    self.counts[plan.version, version, kind, plan.device, route, holds] += 1
                    if not holds:
                        self.failures.append(f"{plan.path.name} in lib{kind} of {version}, {route}: {status} {messages}")

    def print_table(self):
        print("| plans of | in | library | device | way | pass |\n| --- | --- | --- | --- | --- | ---: |")
        for key in sorted({key[:-1] for key in self.counts}):
            passed, failed = (self.counts[*key, holds] for holds in (True, False))
            print(f"| {' | '.join(key)} | {passed} of {passed + failed} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="this tree's build folder; default: build")
    parser.add_argument("--built", type=pathlib.Path, metavar="FOLDER", help="releases lie in FOLDER/VERSION/bin and lib")
    options = parser.parse_args()
    build = options.build.resolve()
    builds = {version: options.built.resolve() / version if options.built else build_release(build / "releases" / version, commit)
              for version, commit, _ in releases()}
    levels = {version: int(level) for version, _, level in releases()}
    here = re.search(r"project\(lathe VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    builds[here] = build
    levels[here] = int(re.search(r"kInterfaceLevel = (\d+);", (ROOT / "src/base/version.h").read_text())[1])
    with tempfile.TemporaryDirectory() as folder:
        crosswise = Crosswise(builds, levels, pathlib.Path(folder), stands_in=not options.built)
        for plan in crosswise.plans():
            crosswise.check(plan)
    crosswise.print_table()
    for failure in crosswise.failures:
        print(failure, file=sys.stderr)
    return bool(crosswise.failures)


if __name__ == "__main__":
    sys.exit(main())
