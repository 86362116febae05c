#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every source file has its licence line, that neither files nor functions are too long, and that no two
headers of src and tools define a class of one name at namespace scope, whatever the namespaces: a reader who meets
`Config` should not have to ask whose. Prints each violation, exits 1 if there is one. The lines of a function are those
from its first word to its last brace.

What exceeds a limit needs a row in cmake/budgets.txt with its own limit and a reason: a file by its path, a function by
path:name, a class by class:name. Rows that are no longer needed are reported too, so that the list only shrinks.
"""
import argparse
import ast
import collections
import pathlib
import re
import subprocess
import sys

import cpp_text

FILE_LIMIT = 400
FUNCTION_LIMIT = 80
LICENCE = "SPDX-License-Identifier: Apache-2.0"
CPP = {".h", ".cpp", ".cuh", ".cu"}
DEFINED_CLASS = re.compile(r"(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+(?:alignas\([^)]*\)\s*)?(\w+)"
                           r"(?:\s+final)?\s*(?::(?!:)[^{]*)?\{")
SOURCES = CPP | {".def", ".py", ".fbs", ".sh"}


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


def functions_of(path, text):
    """Name and length in lines of each function; a lambda or a local class is part of the function around it."""
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield node.name, node.end_lineno - node.lineno + 1
    elif path.suffix in CPP:
        code = cpp_text.code_of(text)
        for found in cpp_text.declarations(code, into_classes=True):
            # An initialiser is no function: `int kTable[] = {`, `auto f = [] {`. Default arguments lie in parentheses.
            head = re.sub(r"\boperator\s*(?:\(\s*\)|[^\s\w(]+)", "operator", found.head)
            name = re.search(r"([\w:~]+)\s*\(", head)
            if found.has_body and name and "=" not in head[:name.end()]:
                test = re.match(r"TEST(?:_[FP])?\s*\(\s*(\w+),\s*(\w+)", found.head)
                yield ".".join(test.groups()) if test else name.group(1), code.count("\n", found.begin, found.end) + 1


def classes_of(text):
    """Names of the classes and enumerations that a header defines at namespace scope."""
    for found in cpp_text.declarations(cpp_text.code_of(text), into_classes=False):
        if match := DEFINED_CLASS.match(found.head):
            yield match.group(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root.resolve()
    budgets = read_budgets(root / "cmake/budgets.txt")
    problems, total, files = [], 0, tracked_files(root)
    headers = collections.defaultdict(list)  # of each class
    for file in files:
        name = file.relative_to(root).as_posix()
        lines = file.read_text(errors="replace").splitlines()
        total += len(lines)
        if not any(LICENCE in line for line in lines[:2]):
            problems.append(f"{name}: first line must be '{LICENCE}'")
        lengths = {name: (len(lines), FILE_LIMIT)}
        for function, length in functions_of(file, "\n".join(lines)):
            key = f"{name}:{function}"
            lengths[key] = (max(length, lengths.get(key, (0, 0))[0]), FUNCTION_LIMIT)
        if file.suffix == ".h" and name.startswith(("src/", "tools/")):
            for defined in classes_of("\n".join(lines)):
                headers[defined].append(name)
        for key, (length, limit) in lengths.items():
            if length > limit:
                limit, _ = budgets.pop(key, (limit, ""))
            if length > limit:
                problems.append(f"{key}: {length} lines, limit {limit} (split it, or give a reason in cmake/budgets.txt)")
    for defined, names in headers.items():
        if len(names) > 1 and len(names) > budgets.pop(f"class:{defined}", (1, ""))[0]:
            problems.append(f"class:{defined}: of {', '.join(names)} (rename all but one, or give a reason in "
                            "cmake/budgets.txt)")
    problems += [f"cmake/budgets.txt: {name} no longer needs its row" for name in budgets]
    for problem in problems:
        print(problem)
    print(f"files: {len(files)} files, {total} lines, {len(problems)} violations")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
