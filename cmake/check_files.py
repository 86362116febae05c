#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every source file has its licence line and is not too long; prints each violation, exits 1 if there is one.

A file longer than 800 lines needs a row in cmake/budgets.txt with its own limit and a reason. Rows that are no longer
needed are reported too, so that the list only shrinks.
"""
import pathlib
import subprocess
import sys

LIMIT = 800
LICENCE = "SPDX-License-Identifier: Apache-2.0"
SOURCES = {".h", ".cpp", ".cuh", ".cu", ".def", ".py", ".fbs", ".sh"}


def tracked_files(root):
    """What git tracks or would track; every file of the tree where there is no git (a release archive)."""
    listing = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"],
                             capture_output=True, text=True)
    if listing.returncode == 0:
        paths = map(root.joinpath, listing.stdout.splitlines())
    else:
        paths = (p for p in root.rglob("*") if not p.relative_to(root).parts[0].startswith((".", "build", "data")))
    return sorted(p for p in paths if p.suffix in SOURCES and p.is_file())


def read_budgets(path):
    budgets = {}
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            name, limit, reason = line.split(maxsplit=2)
            budgets[name] = (int(limit), reason)
    return budgets


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    budgets = read_budgets(root / "cmake/budgets.txt")
    problems, total, files = [], 0, tracked_files(root)
    for file in files:
        name = file.relative_to(root).as_posix()
        lines = file.read_text(errors="replace").splitlines()
        total += len(lines)
        if not any(LICENCE in line for line in lines[:2]):
            problems.append(f"{name}: first line must be '{LICENCE}'")
        limit, _ = budgets.pop(name, (LIMIT, "")) if len(lines) > LIMIT else (LIMIT, "")
        if len(lines) > limit:
            problems.append(f"{name}: {len(lines)} lines, limit {limit} (split it, or give a reason in cmake/budgets.txt)")
    problems += [f"cmake/budgets.txt: {name} no longer needs its row" for name in budgets]
    for problem in problems:
        print(problem)
    print(f"files: {len(files)} files, {total} lines, {len(problems)} violations")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
