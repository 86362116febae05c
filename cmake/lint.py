#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layers, file sizes, clang-format on every C++ file, and clang-tidy on the sources of src/ and tools/
that fit into --tidy-seconds.

clang-tidy takes seconds per file, so files whose own text, or that of any file they include, is unchanged since they
last passed are not checked again (build/lint.json), and changed files come first.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

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


def commands_by_file(build):
    """The compile command of each of our sources; one is enough for a source that is built several times. Without
    precompiled headers: a source includes what it uses, and clang does not read those of another compiler."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        entry["command"] = re.sub(r"-Winvalid-pch|-include \S*/cmake_pch\.hxx", "", entry["command"])
        file = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if any(file.is_relative_to(ROOT / top) for top in TIDIED):
            commands[file.relative_to(ROOT).as_posix()] = entry
    return commands


def includes_when_built(build):
    """What each object was made from, as Ninja noted it; nothing where another generator built."""
    listing = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True).stdout
    found, names = {}, []
    for line in listing.splitlines():
        if line.startswith("    "):
            names.append(line.strip())
        elif ": #deps" in line:
            names = found[line.split(":")[0]] = []
            if "(VALID)" not in line:
                del found[line.split(":")[0]]
    return found


def is_ours(path):
    return path.is_relative_to(ROOT) and not path.name.startswith("cmake_pch")


def fingerprint(entry, built, hashes):
    """Digest of the lint rules, the command, and every file of ours that the source includes, itself among them."""
    words = shlex.split(entry["command"])
    arguments = words[next((i + 1 for i, word in enumerate(words) if word.endswith("ccache")), 0):]
    output = arguments.index("-o")
    names = built.get(arguments[output + 1])
    arguments = arguments[:output] + arguments[output + 2:] + ["-MM", "-w"]
    if names is None:
        result = subprocess.run(arguments, cwd=entry["directory"], capture_output=True, text=True)
        names = result.stdout.replace("\\\n", " ").split()[1:]
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes() + " ".join(arguments).encode())
    for path in sorted({pathlib.Path(entry["directory"], name).resolve() for name in names}):
        if not is_ours(path):
            continue
        if path not in hashes:
            hashes[path] = hashlib.sha256(path.read_bytes()).digest()
        digest.update(hashes[path])
    return digest.hexdigest()


def tidy(commands, name):
    result = subprocess.run(["clang-tidy", "--quiet", "-p", commands, "--extra-arg=-Wno-unknown-warning-option",
                             "--extra-arg=-Wno-unused-command-line-argument", name],
                            cwd=ROOT, capture_output=True, text=True)
    return result.returncode == 0, result.stdout


def check_tidy(build, seconds, jobs):
    store = build / "lint.json"
    passed_before = json.loads(store.read_text()) if store.is_file() else {}
    commands, hashes, deadline = commands_by_file(build), {}, time.monotonic() + seconds
    built = includes_when_built(build)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        prints = dict(zip(commands, pool.map(lambda entry: fingerprint(entry, built, hashes), commands.values())))
    todo = sorted((name for name in commands if passed_before.get(name) != prints[name]),
                  key=lambda name: -(ROOT / name).stat().st_mtime)
    database = build / "lint"
    database.mkdir(exist_ok=True)
    (database / "compile_commands.json").write_text(json.dumps(list(commands.values())))
    passed = {name: digest for name, digest in passed_before.items() if prints.get(name) == digest}
    failed, skipped = [], []

    def check(name):
        if time.monotonic() > deadline:
            skipped.append(name)
            return
        clean, output = tidy(database, name)
        if clean:
            passed[name] = prints[name]
        else:
            failed.append(name)
            print(output, flush=True)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(check, todo))
    store.write_text(json.dumps(passed, indent=0, sort_keys=True))
    print(f"clang-tidy: {len(passed)} of {len(commands)} files clean, {len(failed)} with findings, "
          f"{len(skipped)} left for want of time")
    return not failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--tidy-seconds", type=float, default=600)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    results = [subprocess.run([sys.executable, ROOT / "cmake" / script]).returncode == 0
               for script in ("check_layers.py", "check_files.py")]
    results += [check_format(), check_tidy(build, arguments.tidy_seconds, arguments.jobs)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
