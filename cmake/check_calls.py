#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no call of src passes two or more of the literals true and false by position: `multiply(a, b, false,
true)` does not say what is true. A call is what stands in the parentheses, braces or angle brackets after a name or
`return`; designated initialisers (`{.transposed = true}`) and enumerators are the remedy. Prints each violation, exits
1 if there is one.
"""
import argparse
import pathlib
import re
import sys

import cpp_text

SOURCES = {".h", ".cpp", ".cuh", ".cu", ".inc", ".def"}
LITERAL = re.compile(r"\s*(?:true|false)\s*")
BEFORE_LIST = re.compile(r"[\w>)\],({=]\s*$")  # before a brace: not `:` of a loop over both values
TEMPLATE_ARGUMENTS = re.compile(r"(?<=\w)<([^<>(){};]*)>")


def lists_of(code):
    """Place and arguments of each list after a name."""
    for match in TEMPLATE_ARGUMENTS.finditer(code):
        yield match.start(1), match.group(1).split(",")
    code = TEMPLATE_ARGUMENTS.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), code)
    opened = []
    for match in re.finditer(r"[(){}\[\],;]", code):
        sign, place = match.group(), match.start()
        if sign in "({[":
            opened.append([sign, place])
        elif opened and sign == ",":
            opened[-1].append(place)
        elif opened and sign == ";":
            opened[-1][0] = "block"
        elif opened:
            kind, *commas = opened.pop()
            if kind == "(" or (kind == "{" and BEFORE_LIST.search(code[max(0, commas[0] - 100):commas[0]])):
                yield commas[0], [code[a + 1:b] for a, b in zip(commas, commas[1:] + [place])]


def violations(code):
    """Place and text of each call with two boolean literals."""
    for place, arguments in lists_of(code):
        if sum(LITERAL.fullmatch(argument) is not None for argument in arguments) >= 2:
            yield place, ", ".join(" ".join(argument.split()) for argument in arguments)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root.resolve()
    files = sorted(path for path in (root / "src").rglob("*") if path.suffix in SOURCES)
    problems = []
    for file in files:
        code = cpp_text.code_of(file.read_text())
        problems += [f"{file.relative_to(root).as_posix()}:{code.count(chr(10), 0, place) + 1}: two boolean literals in "
                     f"one call, ({text}); name them by enumerators or designated initialisers"
                     for place, text in violations(code)]
    for problem in problems:
        print(problem)
    print(f"calls: {len(files)} files, {len(problems)} violations")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
