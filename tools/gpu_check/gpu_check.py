#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks and times everything of Lathe that needs a GPU, and prints tables.

  python3 tools/gpu_check/gpu_check.py --build build --out results

Stages, in this order; --only chooses among them:
  kernels      every kernel's test cases on the GPU, against the plain evaluation
  conformance  the ONNX node tests on the GPU, beside the verdicts of the CPU
  shapes       single operators, beside cuBLAS, cuDNN and torch's kernels, and the device's peak
  networks     four networks, float16, batch 1 and 32: GPU time with CUDA graph, beside torch.compile and the floor
  repeat       1,000 runs of a network give equal bits
  sanitizer    compute-sanitizer memcheck and racecheck over the kernels' test cases (slow: only when named)

The build folder is one made by `cmake --build build`, on this machine or another: its programs run where there is a
driver and an NVRTC. Results are written to OUT as JSON.
"""
import argparse
import datetime
import glob
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from shapes import read_shapes

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
STAGES = ("kernels", "conformance", "shapes", "networks", "repeat", "sanitizer")
NETWORKS = ("resnet50", "mobilenet_v2", "efficientnet_b0", "yolov8n")
GFLOP = {"resnet50": 8.2, "mobilenet_v2": 0.61, "efficientnet_b0": 0.80, "yolov8n": 8.9}  # multiply and add, batch 1
PEAK_TFLOPS, PEAK_TBPS, STEP_US = 790.0, 4.28, 0.8  # measured on an H200; a step's floor within a CUDA graph


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--only", nargs="+", choices=STAGES, default=STAGES[:-1])
    parser.add_argument("--networks", nargs="+", default=NETWORKS, choices=NETWORKS)
    parser.add_argument("--batches", nargs="+", type=int, default=(1, 32))
    parser.add_argument("--without-torch", action="store_true")
    parser.add_argument("--warm", action="store_true", help="build each network again, with a warm timing cache")
    parser.add_argument("--steps", action="store_true", help="show each network's slowest steps")
    parser.add_argument("--budget", type=float, default=60, help="seconds of tuning for each network")
    parser.add_argument("--libraries", action="store_true", help="networks: allow kernels of cuBLASLt and cuDNN")
    parser.add_argument("--cases", help="test filter of the kernels stage")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "data/conformance")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench/results")
    return parser.parse_args()


def environment():
    """The variables that the programs run with: where NVRTC and the CUDA libraries are."""
    result = dict(os.environ)
    folders = ["/usr/local/cuda/lib64"]
    for base in sys.path:
        folders += glob.glob(f"{base}/nvidia/cu*/lib") + glob.glob(f"{base}/nvidia/*/lib")
    result["LD_LIBRARY_PATH"] = ":".join(folders + [result.get("LD_LIBRARY_PATH", "")])
    return result


ENVIRONMENT = environment()


def run(command, timeout=600, **variables):
    started = time.monotonic()
    try:
        result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout,
                                env=ENVIRONMENT | variables)
        return result.returncode, result.stdout, result.stderr, time.monotonic() - started
    except subprocess.TimeoutExpired as error:
        text = (error.stdout or b"").decode(errors="replace")
        return 124, text, f"no end after {timeout} s", time.monotonic() - started


def describe_machine():
    status, out, _, _ = run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"])
    return out.strip() if status == 0 else "no GPU"


def table(rows, header):
    widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        print("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip())
    print(flush=True)


def last_lines(text, count=15):
    return "\n".join(text.strip().splitlines()[-count:])


def check_kernels(arguments):
    command = [arguments.build / "bin/test_cuda"]
    if arguments.cases:
        command.append(f"--gtest_filter={arguments.cases}")
    status, out, err, seconds = run(command, LATHE_TEST_DEVICE="cuda:0")
    failed = re.findall(r"^\[  FAILED  \] (\S+) \(", out, re.M)
    passed = len(re.findall(r"^\[       OK \]", out, re.M))
    print(f"kernels: {passed} cases passed, {len(failed)} failed, {seconds:.0f} s")
    if failed or status != 0:
        blocks = re.findall(r"^(.*Failure\n(?:.*\n){1,6})", out, re.M)
        print("\n".join(blocks[:25]), last_lines(err, 5), sep="\n", flush=True)
    return {"passed": passed, "failed": failed, "status": status, "seconds": seconds}


def verdicts(arguments, target, folder):
    report = folder / f"conformance-{target}.json"
    jobs = os.cpu_count() if target == "cpu" else 14
    status, out, err, seconds = run([arguments.build / "bin/lathe", "conformance", arguments.data, "--quiet",
                                     f"--target={target}", "--noTF32", f"--jobs={jobs}", "--timeout=20", "--json", report], 300)
    print(f"conformance on {target}: {last_lines(out, 1)} ({seconds:.0f} s) {last_lines(err, 3)}", flush=True)
    if not report.exists():
        return {}
    cases = json.loads(report.read_text())["cases"]
    return {case["case"]: (case["result"], case.get("reason", "")) for case in cases}


def check_conformance(arguments, folder):
    cpu, cuda = verdicts(arguments, "cpu", folder), verdicts(arguments, "cuda", folder)
    different = {name: cuda[name] for name in cuda if name in cpu and cpu[name][0] != cuda[name][0]}
    passed = sum(result == "passed" for result, _ in cpu.values())
    agree = sum(cpu[name][0] == "passed" == cuda.get(name, ("", ""))[0] for name in cpu)
    share = 100 * agree / max(passed, 1)
    print(f"conformance: {agree} of the {passed} cases that pass on the CPU pass on CUDA ({share:.1f} %)")
    reasons = {}
    for name, (result, reason) in different.items():
        reasons.setdefault((result, re.sub(r"'[^']*'|\d+", "#", reason)[:150]), []).append((name, reason))
    for (result, _), names in sorted(reasons.items(), key=lambda item: -len(item[1]))[:40]:
        print(f"  {len(names):4} {result}: {names[0][0].split('/')[-1]}: {names[0][1][:260]}")
    sys.stdout.flush()
    return {"cpu_passed": passed, "agree": agree, "different": different}


def check_shapes(arguments, folder):
    tool, model, engine, report = pathlib.Path(__file__).parent / "shapes.py", *(
        folder / f"shapes.{suffix}" for suffix in ("onnx", "engine", "json"))
    for command in ([sys.executable, tool, "write", model],
                    [arguments.build / "bin/lathe", "build", model, "-o", engine, "--target=cuda",
                     f"--buildBudget={arguments.budget}"],
                    [arguments.build / "bin/lathe", "inspect", engine, "--json", report]):
        status, _, err, seconds = run(command)
        if status != 0:
            print(f"shapes: {last_lines(err, 5)}", flush=True)
            return {"error": last_lines(err, 5)}
    peers = {}
    if not arguments.without_torch:
        status, out, err, _ = run([sys.executable, tool, "torch"])
        peers = json.loads(out) if status == 0 else {}
        if status != 0:
            print(f"shapes: torch: {last_lines(err, 3)}", flush=True)
    steps = {origin: layer for layer in json.loads(report.read_text())["layers"] for origin in layer["Origin"]}
    results, rows = {}, []
    for shape in read_shapes():
        step, peer = steps.get(shape.name, {}), peers.get(shape.name)
        us = step.get("Milliseconds", 0) * 1e3
        results[shape.name] = {"us": us, "tactic": step.get("TacticName"), "torch_us": peer}
        if us == 0:
            rows.append((shape.name, "not measured", *[""] * 5))
            continue
        rows.append((shape.name, f"{us:.1f}", f"{peer:.1f}" if peer else "-", f"{peer / us:.2f}x" if peer else "-",
                     f"{shape.flop() / us / 1e6:.0f}", f"{shape.bytes() / us / 1e6:.2f}", step["TacticName"]))
    table(rows, ("shape", "us", "torch us", "speed", "TFLOP/s", "TB/s", "tactic"))
    return results


def time_network(arguments, network, batch, folder):
    model = folder / f"{network}.onnx"
    if not model.exists():
        status, _, err, _ = run([sys.executable, ROOT / "tools/models/write.py", network, "--batch", "dynamic", "--out",
                                 model])
        if status != 0:
            return {"error": last_lines(err, 3)}
    report = folder / f"{network}-{batch}.json"
    command = [arguments.build / "bin/bench_networks", model, "--target=cuda", "--precision=f16", f"--batch={batch}",
               f"--budget={arguments.budget}", f"--timingCache={folder / 'timings'}", "--seconds=1", "--json", report]
    if arguments.libraries:
        command.append("--libraries")
    status, out, err, _ = run(command + (["--steps"] if arguments.steps else []))
    if arguments.steps or status != 0:
        print(out, last_lines(err, 12), sep="\n", flush=True)
    if status != 0:
        return {"error": last_lines(err, 3)}
    result = json.loads(report.read_text())
    if arguments.warm:
        status, out, err, _ = run(command)  # again, for the build with a warm timing cache
        result["warm_build_ms"] = json.loads(report.read_text())["build_ms"] if status == 0 else 0
    if not arguments.without_torch:
        fixed = folder / f"{network}-{batch}.onnx"
        run([sys.executable, ROOT / "tools/models/write.py", network, f"--batch={batch}", "--out", fixed])
        status, out, err, _ = run([sys.executable, pathlib.Path(__file__).parent / "torch_peer.py", fixed,
                                   f"--batch={batch}"], 300)
        result["torch"] = json.loads(out.splitlines()[-1]) if status == 0 else {"error": last_lines(err, 2)}
    return result


def floor_ms(network, batch, result):
    compute = GFLOP[network] * batch / PEAK_TFLOPS
    memory = result["weights_bytes"] / (PEAK_TBPS * 1e9)
    return max(compute, memory, result["steps"] * STEP_US / 1e3)


def check_networks(arguments, folder):
    results, rows = {}, []
    for network in arguments.networks:
        for batch in arguments.batches:
            result = results[f"{network} {batch}"] = time_network(arguments, network, batch, folder)
            if "error" in result:
                rows.append((network, batch, result["error"][-100:], *[""] * 8))
                continue
            peer, floor = result.get("torch", {}).get("compiled_ms"), floor_ms(network, batch, result)
            rows.append((network, batch, f"{result['stream_ms']:.3f}", f"{result['median_ms']:.3f}",
                         f"{peer:.3f}" if peer else "-", f"{peer / result['stream_ms']:.2f}x" if peer else "-",
                         f"{floor:.3f}", f"{result['stream_ms'] / floor:.1f}", result["steps"],
                         result["steps_on_host"], f"{result['build_ms'] / 1e3:.1f} / "
                         f"{result.get('warm_build_ms', 0) / 1e3:.1f}"))
    table(rows, ("network", "batch", "Lathe ms", "with sync", "torch ms", "speed", "floor ms", "of floor", "steps",
                 "on host", "build s cold / warm"))
    return results


def check_repeat(arguments, folder):
    model = folder / "mobilenet_v2-1.onnx"
    run([sys.executable, ROOT / "tools/models/write.py", "mobilenet_v2", "--out", model])
    status, out, err, seconds = run([arguments.build / "bin/bench_networks", model, "--target=cuda", "--precision=f16",
                                     "--budget=5", "--seconds=0.1", "--repeat=1000"])
    print(f"repeat: {last_lines(out, 1) if status == 0 else last_lines(err, 3)}", flush=True)
    return {"equal": status == 0}


def check_sanitizer(arguments):
    results = {}
    for tool in ("memcheck", "racecheck"):
        status, out, err, seconds = run(["compute-sanitizer", f"--tool={tool}", "--error-exitcode=9",
                                         arguments.build / "bin/test_cuda",
                                         f"--gtest_filter={arguments.cases or '*'}"], 560, LATHE_TEST_DEVICE="cuda:0")
        print(f"sanitizer {tool}: {last_lines(out, 1)} ({seconds:.0f} s)", flush=True)
        if status == 9:
            print("\n".join([line for line in out.splitlines() if line.startswith("=====")][:40]))
        results[tool] = status
    return results


def main():
    arguments = parse_arguments()
    machine = describe_machine()
    print(machine, flush=True)
    results = {"machine": machine, "date": datetime.date.today().isoformat()}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        ENVIRONMENT["LATHE_CACHE_DIR"] = str(folder / "cache")
        stages = {"kernels": lambda: check_kernels(arguments),
                  "conformance": lambda: check_conformance(arguments, folder),
                  "shapes": lambda: check_shapes(arguments, folder),
                  "networks": lambda: check_networks(arguments, folder),
                  "repeat": lambda: check_repeat(arguments, folder),
                  "sanitizer": lambda: check_sanitizer(arguments)}
        for stage in arguments.only:
            results[stage] = stages[stage]()
            arguments.out.mkdir(parents=True, exist_ok=True)
            (arguments.out / f"{results['date']}-cuda.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
