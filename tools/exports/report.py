# SPDX-License-Identifier: Apache-2.0
"""Tables of what test_exports.py found."""
import datetime
import json
import platform

BAD = ("wrong", "refused", "crashed", "timeout")


def cell(result):
    if result is None:
        return ""
    text = f"{result['error']:.1e}" if result["verdict"] == "right" else result["verdict"]
    return text + (f" ({result['pytorch']:.1e})" if "pytorch" in result else "")


def rows(cases, devices):
    for case in cases:
        found = {result["device"]: result for result in case["results"]}
        yield [case["model"], case["variant"], *(["export failed"] if "failure" in case else []),
               *(cell(found.get(device)) for device in devices if "failure" not in case)]


WORDS = {"attentions": "attentions are recognised", "causal": "attentions are causal", "windows": "attentions have windows",
         "distances": "attentions add numbers by distances", "rotations": "values are turned by positions in one expression",
         "norms": "normalisations are recognised", "experts": "products by experts are recognised",
         "caches": "caches are updated in place, or copied once to be appended to"}


def lacking(case):
    """What there is less of than expected: [(what, found, expected)]."""
    return [(what, found, expected) for what, (found, expected) in case.get("counts", {}).items() if found < expected]


def complaints(cases):
    for case in cases:
        if "failure" in case:
            yield f"{case['model']} {case['variant']}: export: {case['failure']}"
        for what, found, expected in lacking(case):
            yield f"{case['model']} {case['variant']}: {found} of {expected} {WORDS[what]}"
        for result in case["results"]:
            if result["verdict"] in BAD or result["message"]:
                yield f"{case['model']} {case['variant']} {result['device']}: {result['verdict']}: {result['message']}"


def summary(cases, devices):
    """One line for each device: how many are right, and the verdicts of the others."""
    for device in devices:
        results = [result for case in cases for result in case["results"]
                   if result["device"] == device and result["verdict"] != "not valid"]
        if not results:
            continue
        right = sorted(result["error"] for result in results if result["verdict"] == "right")
        bad = {verdict: sum(result["verdict"] == verdict for result in results) for verdict in BAD}
        line = f"{device}: {len(right)} of {len(results)} right ({100 * len(right) / len(results):.1f} %)"
        if right:
            line += f", median error {right[len(right) // 2]:.1e}, largest {right[-1]:.1e}"
        yield line + "".join(f", {count} {verdict}" for verdict, count in bad.items() if count)


def counts(cases):
    """A line for each thing of which any were counted."""
    for what, words in WORDS.items():
        counted = [case["counts"][what] for case in cases if what in case.get("counts", {})]
        if counted:
            yield f"{sum(found for found, _ in counted)} {words}, {sum(want for _, want in counted)} expected"


def print_report(cases, devices):
    header = ["architecture", "export", *devices]
    body = list(rows(cases, devices))
    widths = [max(len(row[i]) for row in [header, *body] if i < len(row)) for i in range(len(header))]
    for row in [header, *body]:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())
    print("\n" + "\n".join(complaints(cases)))
    print("\n" + "\n".join([*summary(cases, devices), *counts(cases)]))


def write_markdown(path, cases, devices, versions):
    exported = [case for case in cases if "failure" not in case]
    lines = [f"# Exported models, {datetime.date.today()}", "",
             f"{len({case['model'] for case in exported})} architectures, {len(exported)} exports, by `tools/exports/test_exports.py` "
             f"({', '.join(f'{name} {version}' for name, version in versions.items())}; {platform.machine()}). A number is the "
             "largest error of all outputs and sets of sizes, as a share of the largest value; in brackets that of PyTorch's own float16.", "",
             *(f"- {line}" for line in [*summary(cases, devices), *counts(cases)]), "",
             "| architecture | export | " + " | ".join(devices) + " |", "| --- | --- |" + " --- |" * len(devices),
             *("| " + " | ".join(row + [""] * (2 + len(devices) - len(row))) + " |" for row in rows(cases, devices)), "",
             "## What is not right, and why", "", *(f"- {line}" for line in complaints(cases)), ""]
    path.write_text("\n".join(lines))


def write_json(path, cases, devices, versions):
    path.write_text(json.dumps({"versions": versions, "devices": devices, "summary": list(summary(cases, devices)),
                                "cases": cases}, indent=1))
