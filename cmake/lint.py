#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layers, sizes of files and functions, boolean literals in calls, clang-format on every C++ file, and clang-tidy on the
sources of src/ and tools/.

clang-tidy looks at as many sources at once as may follow each other in a translation unit (cmake/unity_groups.py), whatever
their folders, for most of its time goes to headers. Those of them that mention what only headers of others before them declare
are parsed besides, where nothing helps them, so that each includes what it uses of ours. What passed is not looked at again
until its text, or that of a file that it includes, changes (build/lint_passed.txt); what changed last comes first. Running
out of --seconds is a failure: what was not looked at has not passed.
"""
import argparse
import concurrent.futures
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time

import unity_groups

ROOT = pathlib.Path(__file__).resolve().parent.parent
FORMATTED = (".h", ".cpp", ".cuh", ".cu")
TIDIED = ("src", "tools")
CLANG_TIDY = ROOT / ".cache/lint/bin/clang-tidy"
LAYOUT_OPTIONS = ("-ffunction-sections", "-fdata-sections", "-flto", "-fPIC", "-fPIE")
MOST_TOGETHER = 40  # sources; more would leave a processor idle at the end


def include_roots(arguments):
    return tuple(pathlib.Path(word[2:]) for word in arguments if word.startswith("-I"))


tree_of = functools.cache(unity_groups.Tree)


def tracked(suffixes):
    listing = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                             capture_output=True, text=True, check=True).stdout
    return [name for name in listing.splitlines() if name.endswith(suffixes) and (ROOT / name).is_file()]


def check_format():
    files = tracked(FORMATTED)
    passed = subprocess.run(["clang-format", "--dry-run", "-Werror"] + files, cwd=ROOT).returncode == 0 if files else True
    print(f"format: {len(files)} files, {'clean' if passed else 'run `make format`'}")
    return passed


def check_texts():
    passed = [subprocess.run([sys.executable, ROOT / "cmake" / script]).returncode == 0
              for script in ("check_layers.py", "check_files.py", "check_calls.py")]
    return all([*passed, check_format()])


@dataclasses.dataclass
class Unit:
    """What is compiled at once: sources of ours, mostly several."""
    entry: dict  # of compile_commands.json
    sources: list
    precompiled: str  # the header that the build precompiles for it; "" = none

    def name(self):
        return self.entry["file"]

    def arguments(self):
        """Without the compiler, its launcher and the output."""
        words = shlex.split(self.entry["command"])
        words = words[next(i for i, word in enumerate(words) if re.search(r"(\+\+|cc)(-[\d.]+)?$", word)) + 1:]
        output = words.index("-o")
        return words[:output] + words[output + 2:]

    def digest(self, text_of):
        """Of the command and every file of ours that the sources include, themselves among them."""
        arguments = self.arguments()
        headers_of = tree_of(include_roots(arguments)).headers
        digest = hashlib.sha256(" ".join(arguments).encode())
        for path in sorted({path for source in self.sources for path in (source, *headers_of(source))}):
            digest.update(text_of(path))
        return digest.hexdigest()


def compiled_sources(build):
    """{source of ours: the entry that compiles it}: one that is compiled for several instruction sets counts as the one with
    the most options of machines, which is the widest. Without precompiled headers, for clang does not read those of another
    compiler."""
    result = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["directory"], entry["file"]).resolve()
        together = file.parent.name == "Unity"
        sources = [pathlib.Path(name) for _, name in unity_groups.INCLUDE.findall(file.read_text())] if together else [file]
        if "-DLATHE_TENSORRT_MAJOR=10" in entry["command"]:  # of that generation, what it alone has
            sources = [source for source in sources if source.name.endswith("_10_16.cpp")]
        for source in sources:
            if any(source.is_relative_to(ROOT / top) for top in TIDIED):
                result[source] = max(result.get(source, entry), entry, key=lambda each: each["command"].count(" -m"))
    return result


def unit_of(entry, sources, folder):
    """Sources that this entry's command compiles, in a file in `folder` that includes them if they are several."""
    precompiled = re.search(r"-include (\S*/cmake_pch\.hxx)", entry["command"])
    file = sources[0]
    if len(sources) > 1:
        text = "".join(f'#include "{source}"\n' for source in sources)
        file = folder / f"together_{hashlib.sha256(text.encode()).hexdigest()[:16]}.cpp"
        file.write_text(text)
    command = re.sub(r"-Winvalid-pch|-include \S*/cmake_pch\.hxx", "", entry["command"]).replace(entry["file"], str(file))
    return Unit({**entry, "file": str(file), "command": command}, sources, precompiled.group(1) if precompiled else "")


def units_of(build, folder):
    """Those that clang-tidy looks at, and those that are but parsed: sources that may compile only for what comes before them,
    together with others that do not help them."""
    pools = {}
    for source, entry in sorted(compiled_sources(build).items()):
        # How it is optimised and laid out in sections does not change what it says.
        options = tuple(word for word in unit_of(entry, [source], folder).arguments()[:-2]
                        if not word.startswith("-O") and word not in LAYOUT_OPTIONS)
        pools.setdefault(options, (entry, []))[1].append(source)
    tidied, parsed = [], []
    for options, (entry, sources) in pools.items():
        tree = tree_of(include_roots(options))
        groups = tree.groups(sources, MOST_TOGETHER, tree.may_precede)
        lacking = [source for group in groups for i, source in enumerate(group) if tree.may_lack(source, group[:i])]
        tidied += [unit_of(entry, group, folder) for group in groups]
        parsed += [unit_of(entry, group, folder) for group in tree.groups(
            lacking, MOST_TOGETHER, lambda one, other: tree.may_precede(one, other) and not tree.may_lack(other, [one]))]
    return tidied, parsed


def tidy(database, unit):
    return subprocess.run([CLANG_TIDY, "--quiet", "-p", database, f"--config-file={ROOT / '.clang-tidy'}",
                           "--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-unused-command-line-argument",
                           "--extra-arg=-Wno-ignored-optimization-argument",
                           "--extra-arg=-Wno-deprecated-declarations",  # of the standard library's own headers
                           unit.name()],
                          cwd=ROOT, capture_output=True, text=True)


class Parser:
    """Parses units with clang, which precompiles the standard headers for itself."""

    def __init__(self, folder):
        self.folder, self.lock, self.headers = folder, threading.Lock(), {}

    def run(self, unit, arguments):
        arguments = [word for word in unit.arguments()[:-2] if not word.startswith(("-O", "-W"))] + arguments
        return subprocess.run(["clang++", "-w", *arguments], cwd=unit.entry["directory"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)

    def precompile(self, unit):
        with self.lock:
            header = unit.precompiled
            if header and header not in self.headers:
                self.headers[header] = self.folder / f"{len(self.headers)}.pch"
                self.run(unit, ["-x", "c++-header", header, "-o", str(self.headers[header])]).check_returncode()
            return ["-include-pch", str(self.headers[header])] if header else []

    def parse(self, unit):
        return self.run(unit, [*self.precompile(unit), "-fsyntax-only", unit.name()])


def check_code(build, seconds, jobs):
    """clang-tidy on each unit, and each source parsed alone."""
    deadline = time.monotonic() + seconds
    store = build / "lint_passed.txt"
    passed_before = set(store.read_text().splitlines()) if store.is_file() else set()
    database = build / "lint"
    shutil.rmtree(database, ignore_errors=True)
    database.mkdir()
    units, parsed = units_of(build, database)
    (database / "compile_commands.json").write_text(json.dumps([unit.entry for unit in units]))
    parser = Parser(database)
    text_of = functools.cache(pathlib.Path.read_bytes)
    rules = hashlib.sha256((ROOT / ".clang-tidy").read_bytes()).hexdigest()
    tasks = [(f"tidy {rules} {unit.digest(text_of)}", unit, functools.partial(tidy, database, unit))
             for unit in units]
    tasks += [(f"parse {unit.digest(text_of)}", unit, functools.partial(parser.parse, unit)) for unit in parsed]
    # In a new checkout everything is as old as the rest, to the second: the longest come first, so that none is waited for.
    todo = sorted((task for task in tasks if task[0] not in passed_before), reverse=True,
                  key=lambda task: (max(int(source.stat().st_mtime) for source in task[1].sources), len(task[1].sources)))
    passed = {key for key, _, _ in tasks if key in passed_before}
    failed, skipped = [], []

    def check(task):
        key, unit, run = task
        if time.monotonic() > deadline:
            skipped.append(unit.name())
            return
        result = run()
        if result.returncode == 0:
            passed.add(key)
            with store.open("a") as file:  # at once: an interrupted run keeps what it found
                file.write(key + "\n")
        else:
            failed.append(unit.name())
            print(result.stdout, flush=True)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(check, todo))
    store.write_text("".join(key + "\n" for key in sorted(passed)))
    print(f"clang-tidy: {sum(len(unit.sources) for unit in units)} sources in {len(units)} units, {len(todo)} checks made, "
          f"{len(failed)} with findings, {len(skipped)} not made for want of time"
          + (f" ({seconds:.0f} s; run it again, or with --seconds)" if skipped else ""))
    return not failed and not skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--seconds", type=float, default=1800,
                        help="for clang-tidy and parsing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    if not CLANG_TIDY.is_file():
        sys.exit(f"lint: there is no {CLANG_TIDY}: run cmake/setup.sh build lint")
    build = arguments.build.resolve()
    with concurrent.futures.ThreadPoolExecutor(1) as beside:  # while this process says what clang-tidy looks at together
        texts = beside.submit(check_texts)
        passed = check_code(build, arguments.seconds, arguments.jobs)
    return 0 if texts.result() and passed else 1


if __name__ == "__main__":
    sys.exit(main())
