#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports many architectures with PyTorch, with TensorFlow or with Optimum, builds each, and compares the engines with what the
framework gives at several sets of sizes.

  make test-exports
  make test-tensorflow
  make test-optimum
  python3 tools/exports/test_exports.py --build build --only 'bert|swin' --variants torchscript-open --keep
  python3 tools/exports/test_exports.py --build build --devices cuda cuda-f16 --jobs 14 --budget 480 --json exports.json

Weights are random, nothing is downloaded. Every export, with its builds and runs, is a process of its own with a limit of
time. The exit status is 1 where an engine is wrong, a valid model is refused, something crashes or does not end, or fewer
attentions become the op, are causal or have windows, fewer rotations, normalisations or products by experts are recognised,
or fewer caches are kept as they are, than models.py says.
"""
import argparse
import importlib
import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "OMP_NUM_THREADS": "1"}
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FRAMEWORKS = {"pytorch": ("models", "export"), "tensorflow": ("tensorflow_models", "tensorflow_export"),
              "optimum": ("optimum_models", "optimum_export")}  # modules of models, of exports


def default_devices(lathe):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "doctor.json")
        subprocess.run([lathe, "doctor", "--json", report], stdout=subprocess.DEVNULL, check=False)
        targets = json.loads(report.read_text())["targets"]
    return ["cpu", "emulated"] + ["cuda"] * any(target.startswith("cuda") for target in targets)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--devices", nargs="+", choices=["cpu", "emulated", "cuda", "cuda-f16"],
                        help="emulated: only the small models, on a GPU that is emulated; cpu, emulated, and cuda where `lathe doctor` finds a GPU, unless given")
    parser.add_argument("--framework", choices=list(FRAMEWORKS), default="pytorch")
    parser.add_argument("--variants", nargs="+", help="ways to export, of the framework's; its first three unless given")
    parser.add_argument("--only", default="", help="regular expression: which architectures")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--timeout", type=float, default=400, help="seconds for one export with its builds and runs")
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds for everything; the rest is left out")
    parser.add_argument("--tune", type=float, default=0, help="--buildBudget of each build; 0 trusts the cost model")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "data/exports", help="where exports go")
    parser.add_argument("--keep", action="store_true", help="exports stay in the folder, and are used again")
    parser.add_argument("--json", type=pathlib.Path, help="file for all numbers")
    parser.add_argument("--markdown", type=pathlib.Path, help="file for the table")
    arguments = parser.parse_args()
    if not (arguments.build / "bin/lathe").exists():
        parser.error(f"{arguments.build} holds no bin/lathe: `make build` makes it")
    variants = list(exporter(arguments).VARIANTS)
    arguments.variants = arguments.variants or variants[:3]
    if unknown := set(arguments.variants) - set(variants):
        parser.error(f"--variants: {', '.join(sorted(unknown))}: those of {arguments.framework} are {', '.join(variants)}")
    arguments.devices = arguments.devices or default_devices(arguments.build / "bin/lathe")
    arguments.build, arguments.folder = arguments.build.resolve(), arguments.folder.resolve()
    return arguments


def exporter(arguments):
    return importlib.import_module(FRAMEWORKS[arguments.framework][1])


def work(model, variant, folder, arguments):
    """What the process of one export does: results go to result.json, step by step."""
    from compare import Failed, compare, count, expected_counts
    started = time.monotonic()
    state = {"model": model.name, "variant": variant, "results": []}

    def save(**more):
        state.update(more)
        (folder / "result.json").write_text(json.dumps(state))

    kept = folder / "case.json"
    try:
        case = json.loads(kept.read_text()) if kept.exists() else exporter(arguments).export(model, variant, folder)
    except Exception as error:
        traceback.print_exc()
        return save(failure=f"{type(error).__name__}: {' '.join(str(error).split())[:400]}")
    save(exported=round(time.monotonic() - started, 1), sets=case["sets"])
    if expected := expected_counts(model, variant):
        try:
            found = count(model, case, folder, arguments, arguments.timeout)
        except Failed:
            found = {}
        save(counts={what: [found.get(what, 0), number] for what, number in expected.items()})
    for device in arguments.devices:
        if device != "emulated" or model.emulated:
            limit = arguments.timeout - (time.monotonic() - started)
            save(running=device)
            state["results"].append(compare(model, case, device, folder, arguments, max(limit, 1)))
    state.pop("running", None)
    save()


def start(model, variant, arguments):
    """Forks: the libraries were imported once, and what an exporter breaks dies with its process."""
    folder = arguments.folder / model.name / variant
    if not (arguments.keep and (folder / "case.json").exists()):
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "result.json").unlink(missing_ok=True)
    process = os.fork()
    if process == 0:
        try:
            os.setsid()
            log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(log, 1), os.dup2(log, 2)
            work(model, variant, folder, arguments)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        sys.stdout.flush()
        os._exit(0)
    return process, folder


def collect(model, variant, folder, status, cut, arguments):
    """What a process left behind; one that was cut short says where."""
    try:
        result = json.loads((folder / "result.json").read_text())
    except (OSError, ValueError):
        result = {"model": model.name, "variant": variant, "results": [], "failure": "no end" if cut else f"status {status}"}
    device = result.pop("running", None)
    if device and (cut or status):
        done = {each["device"] for each in result["results"]}
        if device not in done:
            result["results"].append({"device": device, "verdict": "timeout" if cut else "crashed",
                                      "message": f"status {status}", "seconds": arguments.timeout})
    if not arguments.keep:
        shutil.rmtree(folder)
    return result


def end_group(process):
    try:
        os.killpg(process, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def describe(result, number, total):
    from report import cell
    words = [f"{each['device']} {cell(each)} ({each['seconds']:.0f} s)" for each in result["results"]]
    print(f"[{number}/{total}] {result['model']} {result['variant']}: "
          f"{'export failed: ' + result['failure'][:120] if 'failure' in result else ', '.join(words)}", flush=True)


def run_all(tasks, arguments):
    """Every task in a process of its own, --jobs at a time; those that the budget leaves no time for are left out."""
    begin, waiting, running, results = time.monotonic(), list(tasks), {}, []
    while waiting or running:
        spent = time.monotonic() - begin
        if spent > arguments.budget:
            print(f"out of time: {len(waiting)} exports left out, {len(running)} cut short", flush=True)
            for process in running:
                end_group(process)
                os.waitpid(process, 0)
            break
        while waiting and len(running) < arguments.jobs:
            model, variant = waiting.pop(0)
            process, folder = start(model, variant, arguments)
            running[process] = (model, variant, folder, time.monotonic())
        for process, (model, variant, folder, started) in list(running.items()):
            cut = time.monotonic() - started > arguments.timeout + 10
            if cut:
                end_group(process)
            done, status = os.waitpid(process, 0 if cut else os.WNOHANG)
            if done:
                end_group(process)  # what it may have left running
                del running[process]
                results.append(collect(model, variant, folder, status, cut, arguments))
                describe(results[-1], len(results), len(tasks))
        time.sleep(0.05)
    return results


def installed_versions(packages):
    versions = {}
    for package in packages:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    return versions


def use_cuda_libraries():
    """NVRTC as the Python packages of CUDA bring it is found by the programs that are started."""
    sys.path.insert(0, str(ROOT / "tools/gpu_check"))
    import gpu_check
    os.environ["LD_LIBRARY_PATH"] = gpu_check.environment()["LD_LIBRARY_PATH"]


def main():
    arguments = parse_arguments()
    models = importlib.import_module(FRAMEWORKS[arguments.framework][0]).MODELS
    from report import BAD, lacking, print_report, write_json, write_markdown
    if any(device.startswith("cuda") for device in arguments.devices):
        use_cuda_libraries()
    tasks = [(model, variant) for variant in arguments.variants for model in models if re.search(arguments.only, model.name)]
    for library in exporter(arguments).LIBRARIES:
        importlib.import_module(library)  # once, before the processes fork
    results = run_all(tasks, arguments)
    order = {(model.name, variant): index for index, (model, variant) in enumerate(tasks)}
    results.sort(key=lambda result: order[result["model"], result["variant"]])
    print_report(results, arguments.devices)
    for path, write in ((arguments.json, write_json), (arguments.markdown, write_markdown)):
        if path:
            write(path, results, arguments.devices, installed_versions(exporter(arguments).PACKAGES))
    return any(lacking(result) or any(each["verdict"] in BAD for each in result["results"]) for result in results)


if __name__ == "__main__":
    sys.exit(main())
