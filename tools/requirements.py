#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/requirements.md: each promise of tests/requirements.txt, the tests that prove it, and what they said last.

  requirements.py RESULTS [--write]

Tests name the numbers that they prove: in comments directly above them or inside ("// S93, S96: ..."), text cases in their
own comments, and pages in comments of HTML (<!-- S62 -->) where words are what is promised. RESULTS is the folder where
ctest leaves what each test said (build/test_results). Without --write the page is compared with what it would be.
"""
import argparse
import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/requirements.md"
TABLE = ROOT / "tests/requirements.txt"
START = "<!-- from here on made by tools/requirements.py -->\n"
NUMBER = re.compile(r"\bS(\d{1,3})\b")
CPP_TEST = re.compile(r"((?:^//[^\n]*\n)*)^TEST(?:_F|_P)?\((\w+), (\w+)\) \{(.*?)^\}", re.MULTILINE | re.DOTALL)
PYTHON_TEST = re.compile(r"((?:^ +#[^\n]*\n)*)^    def (test_\w+)\(self\):(.*?)(?=^    def |^\S|^    #|\Z)", re.MULTILINE | re.DOTALL)

# Suites whose tests are files.
TEXT_CASES = {"CpuNetworks": "tests/kernels/{}.graph", "CudaNetworks": "tests/kernels/{}.graph", "OpCases": "tests/ops/{}.case",
              "Passes": "tests/passes/{}.graph"}


def promises():
    """{number: (what must hold, why not)}."""
    rows = [line.split(" | ", 1) for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    return {int(number[1:]): tuple(part.strip() for part in rest.split("|")) for number, rest in rows}


def numbers(comments):
    return sorted({int(number) for comment in comments for number in NUMBER.findall(comment)})


def ties():
    """{number: {name of a test, or the path of a page or of text cases}}."""
    found = collections.defaultdict(set)

    def tie(name, comments):
        for number in numbers(comments):
            found[number].add(name)

    for path in sorted((ROOT / "tests").rglob("*_test.cpp")):
        for above, suite, test, body in CPP_TEST.findall(path.read_text()):
            tie(f"{suite}.{test}", [above, *re.findall(r"//[^\n]*", body)])
    for path in sorted((ROOT / "tests").rglob("*_test.py")):
        for above, test, body in PYTHON_TEST.findall(path.read_text()):
            tie(f"{path.stem}.{test}", [above, *re.findall(r"# [^\n]*", body)])
    for path in sorted((ROOT / "tests").rglob("*.graph")) + sorted((ROOT / "tests").rglob("*.case")):
        tie(str(path.relative_to(ROOT)), re.findall(r"^#[^\n]*", path.read_text(), re.MULTILINE))
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if path != PAGE:
            tie(str(path.relative_to(ROOT)), re.findall(r"<!--[^\n]*?-->", path.read_text()))
    return found


def file_of(form, test):
    """The file whose name the test's begins with: a file may hold several cases."""
    words = test.split("_")
    paths = [form.format("_".join(words[:count])) for count in range(len(words), 0, -1)]
    return next((path for path in paths if (ROOT / path).exists()), paths[0])


def results(folder):
    """{test: "passed", "failed" or "skipped"}; text cases go by the path of their file, of every device on which they ran."""
    found = {}

    def put(name, verdict):
        order = ("skipped", "passed", "failed")
        found[name] = max(verdict, found.get(name, "skipped"), key=order.index)

    for path in sorted(folder.glob("*.xml")):
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            verdict = "failed" if case.find("failure") is not None else "skipped" if \
                case.find("skipped") is not None or case.get("result") == "skipped" else "passed"
            suite, test = case.get("classname").split("/")[-1], case.get("name").split("/")
            put(f"{suite}.{test[0]}", verdict)
            if suite in TEXT_CASES:
                put(file_of(TEXT_CASES[suite], test[-1]), verdict)
    return found


def proof(name):
    return f"[{name}]({pathlib.PurePath('..') / name})" if "/" in name or name.endswith(".md") else f"`{name}`"


def result(names, why, verdicts):
    tests = [name for name in names if not name.endswith(".md")]
    wrong = [f"{name}: {verdicts.get(name, 'not run')}" for name in sorted(tests) if verdicts.get(name) != "passed"]
    if wrong:
        return "; ".join(wrong)
    return why or ("passes" if tests else "documented")


def mapping():
    """The page's rows without results: what a test can check without running the others."""
    found = ties()
    return {number: (what, [proof(name) for name in sorted(found[number])], why)
            for number, (what, why) in sorted(promises().items())}


def page(verdicts):
    found, rows, counts = ties(), [], collections.Counter()
    for number, (what, proofs, why) in mapping().items():
        said = result(found[number], why, verdicts)
        counts[said.split(":")[0].split(" ")[0]] += 1
        rows.append(f"| S{number} | {what} | {', '.join(proofs)} | {said} |")
    head = ", ".join(f"{counts[word]} {words}" for word, words in
                     (("passes", "pass"), ("documented", "are words"), ("in", "are held in part"), ("needs", "need what we have not"),
                      ("not", "are not done")) if counts[word])
    return "\n".join([f"Of {len(rows)} promises {head}.", "", "| number | what must hold | proof | result |",
                      "| --- | --- | --- | --- |", *rows]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    made = page(results(arguments.results))
    head, _, rest = PAGE.read_text().partition(START)
    if arguments.write:
        PAGE.write_text(head + START + made)
    elif rest != made:
        sys.exit("docs/requirements.md is not what the tests said: tools/requirements.py --write")


if __name__ == "__main__":
    main()
