#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks every #include of the tree against cmake/layers.txt; prints each violation and exits 1 if there is one.

A file belongs to the row with the longest prefix of its folder; files named *_tactic.{h,cpp} and backend.cpp under kernels/ belong to
the row `kernels/*_tactic`. A row's files may include their own row and the folders that the row lists, subfolders
included. Kinds of devices (src/device/families.def) are known to device/, kernels/, the worker and the wrapper alone, and none knows
another. Folders may not include each other in a circle. tools/, serve/, python/ and examples/ see include/ only.
"""
import argparse
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
SOURCES = {".h", ".cpp", ".cuh", ".cu", ".def", ".inc"}
OUTSIDE = ("tools", "serve", "python", "examples")
DEVICE_HEADERS = "kernels/cuda/"  # *.cuh name each other from here
FORMULAS = (".def", ".inc")  # of base/, shared by hosts and devices
FORBIDDEN_NAMES = {"common", "utils", "util", "helpers", "misc"}
TACTIC_ROW = "kernels/*_tactic"


def read_rows(path):
    rows = {}
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            folder, _, allowed = line.partition(":")
            rows[folder.strip()] = allowed.split()
    return rows


def under(path, folder):
    return path == folder or path.startswith(folder + "/")


def is_tactic(path):
    return under(path, "kernels") and re.fullmatch(r".*_tactic|backend", pathlib.PurePosixPath(path).stem) is not None


def row_of(path, rows):
    """The row of a file, given by its path below src/; None if no row covers it."""
    if is_tactic(path) and TACTIC_ROW in rows:
        return TACTIC_ROW
    folder = str(pathlib.PurePosixPath(path).parent)
    return max((row for row in rows if under(folder, row)), key=len, default=None)


def node_of(path):
    """The node of the include graph that a file stands for: its folder, with the tactics of a kernel apart."""
    folder = str(pathlib.PurePosixPath(path).parent)
    return folder + "/*_tactic" if is_tactic(path) else folder


def includes_of(path):
    for match in INCLUDE.finditer(path.read_text(errors="replace")):
        yield match.group(1) == '"', match.group(2)


def device_of(path, devices):
    """The kind of devices whose own folder a file is in; None in the others."""
    return next((name for name in devices if under(path, f"device/{name}") or under(path, f"kernels/{name}")), None)


def source_files(folder):
    return sorted(p for p in folder.rglob("*") if p.suffix in SOURCES and p.is_file())


def check_inside(root, rows, problems):
    """src/ against its rows. Returns the include graph between folders, with one witness per edge."""
    src, public = root / "src", root / "include"
    edges = {}
    families = src / "device/families.def"
    devices = re.findall(r"^LATHE_DEVICE\((\w+)\)", families.read_text(), re.MULTILINE) if families.is_file() else []
    for file in source_files(src):
        path = file.relative_to(src).as_posix()
        row = row_of(path, rows)
        if row is None:
            problems.append(f"src/{path}: no row of cmake/layers.txt covers this folder")
            continue
        for quoted, target in includes_of(file):
            if (public / target).is_file():
                if "include" not in rows[row]:
                    problems.append(f"src/{path}: '{row}' may not include the public header {target}")
            elif file.suffix == ".cuh":
                is_formula = under(target, "base") and target.endswith(FORMULAS)
                if not (src / DEVICE_HEADERS / target).is_file() and target != "emulator.h" and not is_formula:
                    problems.append(f"src/{path}: a device header may include device headers only, not {target}")
            elif quoted and "/" in target:
                if row_of(target, rows) != row and not any(under(target, allowed) for allowed in rows[row]):
                    problems.append(f"src/{path}: '{row}' may not include {target}")
                own, other = device_of(path, devices), device_of(target, devices)
                if other and not any(under(path, top) for top in ("device", "kernels", "worker", "wrapper")):
                    problems.append(f"src/{path}: is for all devices and may not include {target}")
                if own and other and own != other:
                    problems.append(f"src/{path}: is for {own} and may not include {target}")
                if node_of(path) != node_of(target):
                    edges.setdefault(node_of(path), {}).setdefault(node_of(target), f"src/{path}")
    return edges


def check_outside(root, problems):
    for top in OUTSIDE:
        for file in source_files(root / top) if (root / top).is_dir() else []:
            path = file.relative_to(root).as_posix()
            if under(path, "tools/dev"):
                continue
            for _, target in includes_of(file):
                seen = (file.parent / target).resolve()
                if (root / "src" / target).is_file() or (seen.is_file() and under(str(seen), str(root / "src"))):
                    problems.append(f"{path}: only include/ may be seen here, not {target}")


def check_names(root, problems):
    for top in ("src", "include") + OUTSIDE + ("tests", "bench"):
        for folder in (root / top).rglob("*") if (root / top).is_dir() else []:
            if folder.is_dir() and folder.name in FORBIDDEN_NAMES:
                problems.append(f"{folder.relative_to(root)}: a folder's name must say what is in it")


def check_cycles(edges, problems):
    """Depth-first search; each back edge found is reported with the files that close the circle."""
    state, stack = {}, []

    def visit(node):
        state[node] = "open"
        stack.append(node)
        for target in sorted(edges.get(node, {})):
            if state.get(target) == "open":
                circle = stack[stack.index(target):] + [target]
                steps = [f"{a} -> {b} ({edges[a][b]})" for a, b in zip(circle, circle[1:])]
                problems.append("folders include each other in a circle: " + ", ".join(steps))
            elif target not in state:
                visit(target)
        stack.pop()
        state[node] = "done"

    for node in sorted(edges):
        if node not in state:
            visit(node)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root.resolve()
    rows = read_rows(root / "cmake/layers.txt")
    problems = []
    edges = check_inside(root, rows, problems)
    check_outside(root, problems)
    check_names(root, problems)
    check_cycles(edges, problems)
    for problem in problems:
        print(problem)
    print(f"layers: {len(rows)} rows, {sum(map(len, edges.values()))} arrows between folders, {len(problems)} violations")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
