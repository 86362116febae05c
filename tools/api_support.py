#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/api_support.md: what becomes of each method of the public interface on each device, by what tests call.

  api_support.py CPU=build/api_calls/cpu 'emulated GPU'=build/api_calls/emulated_gpu [--write]

A folder holds what test programs wrote with LATHE_API_CALLS (tests/fixtures/api_calls.cpp), a file for each program, called
like it. Without --write the page is compared with what it would be; the exit status tells whether they are the same.
"""
import argparse
import collections
import dataclasses
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/api_support.md"
SETTINGS = ROOT / "src/api/settings.def"
START = "<!-- from here on made by tools/api_support.py -->\n"
# Suites that call functions with what makes no sense, or everything in turn: that they pass says nothing of one method.
SWEEPS = re.compile(r"Misuse|Refusal|HeaderSlots|Allocation")
# Interfaces with virtual functions of their own that the library implements; an application implements the others.
OF_LIBRARY = ("IParser", "IParserError", "IParserRefitter", "IPluginRegistry", "IPluginResourceContext", "IOnnxConfig",
              "IDimensionExpr", "IExprBuilder", "ITensorList")


@dataclasses.dataclass
class Class:
    name: str
    methods: list  # in the order of the header; overloads once
    virtual: set  # methods that are not forwarded inline: calls of the library's are not seen in the headers


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.DOTALL | re.MULTILINE)


def of_generation_11(text):
    """Without what is for programs of generation 10 alone."""
    kept, around = [], []  # of the conditions that a line stands under: whether it is kept, for what is generation 10's
    for line in text.splitlines():
        if line.startswith("#if"):
            around.append({"#if NV_TENSORRT_MAJOR < 11": False, "#if NV_TENSORRT_MAJOR >= 11": True}.get(line))
        elif line.startswith("#else") and around[-1] is not None:
            around[-1] = not around[-1]
        elif line.startswith("#endif"):
            around.pop()
        elif False not in around:
            kept.append(line)
    return "\n".join(kept)


def closing(text, start):
    """Where the brace at `start` is closed."""
    depth = 0
    for brace in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.start()
    raise ValueError("a brace that is never closed")


def declarations(body):
    """Those that are public, without the bodies of functions and nested types."""
    at = 0
    flat = ""
    while (brace := body.find("{", at)) >= 0:
        flat += body[at:brace] + ";"
        at = closing(body, brace) + 1
    flat += body[at:]
    access = re.split(r"\b(public|protected|private):", flat)
    for kind, text in zip(access[1::2], access[2::2]):
        if kind == "public":
            yield from text.split(";")


def classes_of(header):
    text = without_comments(of_generation_11(header.read_text()))
    for match in re.finditer(r"\bclass (?:\w+\([^)]*\) )?(I[A-Z]\w+)[^;{()]*\{", text):
        methods, virtual = [], set()
        for declaration in declarations(text[match.end():closing(text, match.end() - 1)]):
            found = re.search(r"(~?\w+)\s*\(", declaration)
            if found and found[1].isidentifier() and found[1] not in (*methods, match[1]) and \
                    not re.search(r"\boperator|= delete|\busing\b", declaration):
                methods.append(found[1])
                if re.search(r"\bvirtual\b|\boverride\b", declaration):
                    virtual.add(found[1])
        if methods:
            yield Class(match[1], methods, virtual)


def headers():
    """Those for programs: impl/ is for bindings of another language."""
    return sorted(header for header in (ROOT / "include").rglob("*.h") if header.parent.name != "impl")


def classes():
    found = {}
    for header in headers():
        for each in classes_of(header):
            known = found.setdefault(each.name, each)  # later versions of an interface add methods
            known.methods += [method for method in each.methods if method not in known.methods]
            known.virtual |= each.virtual
    return found


def sources(program):
    return sorted(path for suffix in ("cpp", "h") for path in (ROOT / "tests" / program.removeprefix("test_")).rglob(f"*.{suffix}"))


def implementations(program):
    """{class of the tests or headers: its bases, and theirs}."""
    bases = collections.defaultdict(set)
    for path in (*sources(program), *headers()):
        text = path.read_text()
        for match in re.finditer(r"\b(?:class|struct) (\w+)(?: final)? : ([\w:, \n]+)\{", text):
            bases[match[1]] |= {re.sub(r".*[\s:]", "", base.strip()) for base in match[2].split(",")}
        for match in re.finditer(r"\busing (\w+) = (?:\w+::)+(I[A-Z]\w+);", text):  # IStreamReaderV2 = v_2_0::IStreamReader
            bases[match[1]].add(match[2])

    def all_of(name):
        return {name}.union(*(all_of(base) for base in bases.get(name, ()) if base != name))
    return {name: all_of(name) for name in bases}


def by_library(each):
    """Whether the library implements the class: one that applications implement is virtual throughout."""
    return each.name in OF_LIBRARY or not each.virtual.issuperset(each.methods)


def tests_that_mention(program, all_classes):
    """{virtual method that the library implements: {"Suite.test" whose text calls a function of that name}}."""
    found = collections.defaultdict(set)
    for path in sources(program):
        text = path.read_text()
        for test in re.finditer(r"^TEST(?:_F|_P)?\((\w+), (\w+)\) \{(.*?)^\}", text, re.MULTILINE | re.DOTALL):
            words = set(re.findall(r"(?:\.|->)(\w+)\(", test[3]))
            for each in filter(by_library, all_classes):
                for method in words & each.virtual:
                    found[f"{each.name}::{method}"].add(f"{test[1]}.{test[2]}")
    return found


def called(folder, all_classes):
    """{method: {"Suite.test" that calls it and passes}}."""
    found = collections.defaultdict(set)
    for record in sorted(folder.iterdir()):
        program = record.name.partition(".")[0]
        names, passed, bases = {}, set(), implementations(program)
        symbols = subprocess.run(["nm", "--demangle", "--defined-only", folder.parents[1] / "bin" / program],
                                 capture_output=True, text=True, check=True).stdout
        for line in symbols.splitlines():
            address, _, name = line.split(" ", 2)
            if function := re.match(r"(?:[\w ()]+::)*(\w+)(?:<.*>)?::(\w+)(?:\[abi:\w+\])?\(", name):
                names[int(address, 16)] = function.groups()
        for line in record.read_text().splitlines():
            suite, test, verdict, offset = line.split("\t")
            if verdict == "passed" and not SWEEPS.search(suite):
                passed.add(f"{suite.split('/')[-2] if '/' in suite else suite}.{test.split('/')[0]}")
                if int(offset) in names:
                    owner, method = names[int(offset)]
                    for base in bases.get(owner, {owner}):
                        found[f"{base}::{method}"].add(f"{suite}.{test}")
        for method, tests in tests_that_mention(program, all_classes.values()).items():
            found[method] |= tests & passed
    return found


def refusals():
    """{method: "refused" or "no effect"}."""
    rows = re.findall(r"^LATHE_SETTER\((\w+), (\w+), (refused|no_effect),", SETTINGS.read_text(), re.MULTILINE)
    return {f"{owner}::{name}": effect.replace("_", " ") for owner, name, effect in rows}


def page(devices, all_classes):
    known, rows = refusals(), []
    counts = {device: collections.Counter() for device in devices}
    untested = collections.defaultdict(list)
    for each in sorted(all_classes.values(), key=lambda each: each.name):
        rows += ["", f"## {each.name}", "", "| method | " + " | ".join(devices) + " |", "| --- |" + " --- |" * len(devices)]
        for method in each.methods:
            name = f"{each.name}::{method}"
            cells = [known.get(name) or ("works" if name in found else "") for found in devices.values()]
            rows.append(f"| {method} | " + " | ".join(cells) + " |")
            for device, cell in zip(devices, cells):
                counts[device][cell] += 1
            if not cells[0]:
                untested[each.name].append(method)
    return "\n".join(summary(len(all_classes), counts) + rows) + "\n", untested


def summary(classes, counts):
    """`works` is counted among all methods, and among those that are not refused, for which each has its reason."""
    total = next(iter(counts.values())).total()
    lines = [f"{classes} classes, {total} methods.", "", "| device | work | of all | of those that are not refused | refused | "
             "no effect | no test |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for device, count in counts.items():
        works, refused = count["works"], count["refused"]
        lines.append(f"| {device} | {works} | {100 * works / total:.1f} % | {100 * works / (total - refused):.1f} % | {refused} | "
                     f"{count['no effect']} | {count['']} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("devices", nargs="+", metavar="DEVICE=FOLDER")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    all_classes = classes()
    devices = {name: called(pathlib.Path(folder).resolve(), all_classes)
               for name, _, folder in (device.partition("=") for device in arguments.devices)}
    made, untested = page(devices, all_classes)
    head, start, rest = PAGE.read_text().partition(START)
    if arguments.write:
        PAGE.write_text(head + START + made)
    for name, methods in untested.items():
        print(f"{name}: no test calls {', '.join(methods)}")
    if not arguments.write and rest != made:
        sys.exit("docs/api_support.md is not what tests show: tools/api_support.py --write")


if __name__ == "__main__":
    main()
