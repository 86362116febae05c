#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layers, sizes of files and functions, boolean literals in calls, clang-format on every C++ file, and clang-tidy on the
sources of src/ and tools/.

clang-tidy looks at sources that are built together (cmake/unity_groups.py) together, too, for most of its time goes to
headers; each of them is parsed by itself besides, so that it includes what it uses of ours. What passed is not looked at
again until its text, or that of a file that it includes, changes (build/lint_passed.txt); what changed last comes first. Running
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
import subprocess
import sys
import threading
import time

import unity_groups

ROOT = pathlib.Path(__file__).resolve().parent.parent
FORMATTED = (".h", ".cpp", ".cuh", ".cu")
TIDIED = ("src", "tools")


def tracked(suffixes):
    listing = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                             capture_output=True, text=True, check=True).stdout
    return [name for name in listing.splitlines() if name.endswith(suffixes) and (ROOT / name).is_file()]


def check_format():
    files = tracked(FORMATTED)
    passed = subprocess.run(["clang-format", "--dry-run", "-Werror"] + files, cwd=ROOT).returncode == 0 if files else True
    print(f"format: {len(files)} files, {'clean' if passed else 'run `make format`'}")
    return passed


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

    def digest(self, text_of, headers_of):
        """Of the command and every file of ours that the sources include, themselves among them."""
        arguments = self.arguments()
        roots = tuple(pathlib.Path(word[2:]) for word in arguments if word.startswith("-I"))
        digest = hashlib.sha256(" ".join(arguments).encode())
        for path in sorted({path for source in self.sources for path in (source, *headers_of(roots, source))}):
            digest.update(text_of(path))
        return digest.hexdigest()


def units_of(build):
    """One for each source of ours is enough where it is built several times. Without precompiled headers, for clang does
    not read those of another compiler."""
    units = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        precompiled = re.search(r"-include (\S*/cmake_pch\.hxx)", entry["command"])
        entry["command"] = re.sub(r"-Winvalid-pch|-include \S*/cmake_pch\.hxx", "", entry["command"])
        file = pathlib.Path(entry["directory"], entry["file"]).resolve()
        together = file.parent.name == "Unity"
        sources = [pathlib.Path(name) for _, name in unity_groups.INCLUDE.findall(file.read_text())] if together else [file]
        if all(any(source.is_relative_to(ROOT / top) for top in TIDIED) for source in sources):
            units[file] = Unit(entry, sources, precompiled.group(1) if precompiled else "")
    return list(units.values())


def parsed_alone(unit):
    """The units that are but parsed: each source of one that has several."""
    for source in unit.sources if len(unit.sources) > 1 else []:
        command = unit.entry["command"].replace(unit.entry["file"], str(source))
        yield Unit({**unit.entry, "file": str(source), "command": command}, [source], unit.precompiled)


def tidy(database, unit):
    return subprocess.run(["clang-tidy", "--quiet", "-p", database, f"--config-file={ROOT / '.clang-tidy'}",
                           "--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-unused-command-line-argument",
                           "--extra-arg=-Wno-ignored-optimization-argument", unit.name()],
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
    units = units_of(build)
    database = build / "lint"
    database.mkdir(exist_ok=True)
    (database / "compile_commands.json").write_text(json.dumps([unit.entry for unit in units]))
    trees, parser = {}, Parser(database)

    def headers_of(roots, source):
        return trees.setdefault(roots, unity_groups.Tree(roots)).headers(source)

    text_of = functools.cache(pathlib.Path.read_bytes)
    rules = hashlib.sha256((ROOT / ".clang-tidy").read_bytes()).hexdigest()
    tasks = [(f"tidy {rules} {unit.digest(text_of, headers_of)}", unit, functools.partial(tidy, database, unit))
             for unit in units]
    tasks += [(f"parse {unit.digest(text_of, headers_of)}", unit, functools.partial(parser.parse, unit))
              for several in units for unit in parsed_alone(several)]
    todo = sorted((task for task in tasks if task[0] not in passed_before),
                  key=lambda task: -max(source.stat().st_mtime for source in task[1].sources))
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
    parser.add_argument("--seconds", type=float, default=1200,
                        help="for clang-tidy and parsing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    results = [subprocess.run([sys.executable, ROOT / "cmake" / script]).returncode == 0
               for script in ("check_layers.py", "check_files.py", "check_calls.py")]
    results += [check_format(), check_code(build, arguments.seconds, arguments.jobs)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
