#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks and times everything of Lathe that needs a GPU, and prints tables.

  python3 tools/gpu_check/gpu_check.py --build build --out results

Stages; --only chooses among them. Checks come first, several at a time, while torch compiles; then, alone on the GPU,
what is timed:
  kernels      every kernel's test cases on the GPU, against the plain evaluation
  conformance  the ONNX node tests on the GPU, beside the verdicts of the CPU
  random       random networks, tuned, against their plain evaluation
  sanitizer    compute-sanitizer memcheck and racecheck over the kernels' test cases (slow: only when named)
  shapes       single operators, beside cuBLAS, cuDNN and torch's kernels, and the device's peak
  recurrences  layers of LSTM and GRU in f32 and f16, beside torch's (cuDNN): GPU time of a run in a stream of runs
  networks     four networks, float16, batch 1 and 32: GPU time with CUDA graph, beside torch.compile and the floor
  repeat       1,000 runs of a network give equal bits
  quantized    ResNet-50 in f16 and of 8-bit levels (quantized.py; only when named)

A build tree is brought up to date first. A folder of programs that were built on another machine is taken as it is:
they run where there is a driver and an NVRTC, with test cases from the source tree that this script lies in, or from
that which the environment variable LATHE_SOURCE_DIR names. Results are written to OUT as JSON.
"""
import argparse
import concurrent.futures
import datetime
import glob
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from peaks import PEAK_TBPS, PEAK_TFLOPS
from recurrences import LAYERS, TYPES, write as write_layer
from shapes import SHAPES, read_shapes

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools/models"))
import random_network  # noqa: E402

CHECKS = ("kernels", "conformance", "random", "sanitizer")
TIMED = ("shapes", "recurrences", "repeat", "networks", "quantized")
# Suites of what calls NVIDIA's libraries: they open the driver themselves.
LIBRARY_SUITES = ("CublasLtTest*", "CudnnTest*")
RANDOM_NETWORKS = 100
SHARDS = max(8, os.cpu_count())  # processes that run test cases at the same time, each of which compiles on a core
NETWORKS = ("resnet50", "mobilenet_v2", "efficientnet_b0", "yolov8n")
GFLOP = {"resnet50": 8.2, "mobilenet_v2": 0.61, "efficientnet_b0": 0.80, "yolov8n": 8.9}  # multiply and add, batch 1
STEP_US = 0.8  # a step's floor within a CUDA graph, measured on an H200


def kernel_suites():
    """The test suites of files that run kernels on the device of LATHE_TEST_DEVICE; others have the stand-in driver."""
    suites = set()
    for path in (ROOT / "tests/kernels/cuda").glob("*_test.cpp"):
        text = path.read_text()
        if re.search(r"\btest_(backend|device)\(\)", text):
            suites |= {f"*/{suite}.*" if kind == "_P" else f"{suite}.*"
                       for kind, suite in re.findall(r"^TEST(_[FP])?\((\w+),", text, re.M)}
    return ":".join(sorted(suites))


KERNEL_SUITES = kernel_suites()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--only", nargs="+", choices=CHECKS + TIMED, default=CHECKS[:3] + TIMED[:4])
    parser.add_argument("--networks", nargs="+", default=NETWORKS, choices=NETWORKS)
    parser.add_argument("--batches", nargs="+", type=int, default=(1, 32))
    parser.add_argument("--without-torch", action="store_true")
    parser.add_argument("--warm", action="store_true", help="build each network again, with a warm timing cache")
    parser.add_argument("--steps", action="store_true", help="show each network's slowest steps")
    parser.add_argument("--budget", type=float, default=60, help="seconds of tuning for each network")
    parser.add_argument("--libraries", nargs="*", type=int, metavar="BATCH",
                        help="networks: once more with kernels of cuBLASLt and cuDNN (at these batches; else at all)")
    parser.add_argument("--cases", default=KERNEL_SUITES, help="test filter of the kernels and sanitizer stages")
    parser.add_argument("--shapes", type=pathlib.Path, default=SHAPES, help="the list of single operators")
    parser.add_argument("--seconds", type=float, default=280, help="limit of each check")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "data/conformance")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench/results")
    arguments = parser.parse_args()
    if not (arguments.build / "bin").is_dir():
        parser.error(f"{arguments.build} holds no programs: `make gpu-check` builds them, and runs this")
    if importlib.util.find_spec("torch") is None and not arguments.without_torch:
        print("torch is not installed for this Python: nothing is compared with it", flush=True)
        arguments.without_torch = True
    arguments.libraries = [] if arguments.libraries is None else arguments.libraries or arguments.batches
    return arguments


def build(folder):
    """Nothing stale is measured: a build tree's programs are built anew."""
    if not (folder / "CMakeCache.txt").exists():
        return
    started = time.monotonic()
    result = subprocess.run(["cmake", "--build", folder, "--parallel"], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{folder} does not build:\n{last_lines(result.stdout + result.stderr, 30)}")
    print(f"build: up to date, {time.monotonic() - started:.0f} s", flush=True)


def environment():
    """The variables that the programs run with: where NVRTC and the CUDA libraries are, and the tests' cases."""
    result = dict(os.environ)
    folders = ["/usr/local/cuda/lib64"]
    for base in sys.path:
        folders += glob.glob(f"{base}/nvidia/cu*/lib") + glob.glob(f"{base}/nvidia/*/lib")
    result["LD_LIBRARY_PATH"] = ":".join(folders + [result.get("LD_LIBRARY_PATH", "")])
    result.setdefault("LATHE_SOURCE_DIR", str(ROOT))
    result["CUDA_CACHE_DISABLE"] = "1"  # NVRTC's own, which makes a second cold build three times as fast as the first
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
    if not shutil.which("nvidia-smi"):
        sys.exit("gpu_check: nvidia-smi is not found: this needs a GPU and NVIDIA's driver; `make test` needs neither")
    status, out, err, _ = run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"])
    return out.strip() if status == 0 else sys.exit(f"gpu_check: nvidia-smi finds no GPU: {last_lines(out + err, 2)}")


def table(rows, header):
    widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        print("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip())
    print(flush=True)


def last_lines(text, count=15):
    return "\n".join(text.strip().splitlines()[-count:])


def run_shards(arguments, count, cases, *tool):
    """The test program in `count` processes, each with its share of the cases: [(status, out, err, seconds)]."""
    command = [*tool, arguments.build / "bin/test_kernels_cuda", f"--gtest_filter={cases}"]
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda index: run(command, arguments.seconds, LATHE_TEST_DEVICE="cuda:0",
                                               GTEST_TOTAL_SHARDS=str(count), GTEST_SHARD_INDEX=str(index)), range(count)))


def count_passed(shards):
    return sum(len(re.findall(r"^\[       OK \]", out, re.M)) for _, out, _, _ in shards)


def failures(shards):
    return [name for _, out, _, _ in shards for name in re.findall(r"^\[  FAILED  \] (.+) \(\d+ ms\)", out, re.M)]


def check_kernels(arguments, folder):
    shards = run_shards(arguments, SHARDS, arguments.cases)
    if arguments.cases == KERNEL_SUITES:
        shards += [shard for cases in LIBRARY_SUITES for shard in run_shards(arguments, 1, cases)]
    failed = failures(shards)
    cut = sum(status != 0 and " ran. (" not in last_lines(out, 30) for status, out, _, _ in shards)
    print(f"kernels: {count_passed(shards)} cases passed, {len(failed)} failed, {cut} of {len(shards)} processes did not end, "
          f"{max(seconds for *_, seconds in shards):.0f} s", flush=True)
    for status, out, err, _ in shards:
        if status != 0:
            blocks = re.findall(r"^(.*Failure\n(?:.*\n){1,6})", out, re.M)
            print(*blocks[:8], last_lines(out, 2), last_lines(err, 3), sep="\n", flush=True)
    return {"passed": count_passed(shards), "failed": failed, "cut": cut}


def verdicts(arguments, target, folder):
    report = folder / f"conformance-{target}.json"
    jobs = os.cpu_count() if target == "cpu" else max(2, os.cpu_count() - 4)
    status, out, err, seconds = run([arguments.build / "bin/lathe", "conformance", arguments.data, "--quiet",
                                     f"--target={target}", "--noTF32", f"--jobs={jobs}", "--timeout=60", "--json", report],
                                    arguments.seconds)
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


def check_random(arguments, folder):
    def compare(seed):
        model = folder / f"random-{seed}.onnx"
        sizes = random_network.save(seed, model)
        status, out, err, _ = run([arguments.build / "bin/lathe", "compare", model, f"--shapes={sizes}", "--target=cuda",
                                   "--buildBudget=5", "--noTF32", "--rtol=1e-3", "--atol=1e-3"], 60)
        return status, f"seed {seed}: {last_lines(out + err, 12)}"

    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(SHARDS) as pool:
        failed = [text for status, text in pool.map(compare, range(RANDOM_NETWORKS)) if status != 0]
    print(f"random: {RANDOM_NETWORKS - len(failed)} of {RANDOM_NETWORKS} networks agree with their plain evaluation "
          f"({time.monotonic() - started:.0f} s)", *failed[:5], sep="\n", flush=True)
    return {"networks": RANDOM_NETWORKS, "failed": failed}


def check_shapes(arguments, folder):
    tool, model, engine, report = pathlib.Path(__file__).parent / "shapes.py", *(
        folder / f"shapes.{suffix}" for suffix in ("onnx", "engine", "json"))
    for command in ([sys.executable, tool, "write", model, "--list", arguments.shapes],
                    [arguments.build / "bin/lathe", "build", model, "-o", engine, "--target=cuda", "--sparsity=enable",
                     f"--buildBudget={2 * arguments.budget}"],  # a hundred operators, twice a network's
                    [arguments.build / "bin/lathe", "inspect", engine, "--json", report]):
        status, _, err, seconds = run(command)
        if status != 0:
            print(f"shapes: {last_lines(err, 5)}", flush=True)
            return {"error": last_lines(err, 5)}
    peers = {}
    if not arguments.without_torch:
        status, out, err, _ = run([sys.executable, tool, "torch", "--list", arguments.shapes])
        peers = json.loads(out) if status == 0 else {}
        if status != 0:
            print(f"shapes: torch: {last_lines(err, 3)}", flush=True)
    steps = {origin: layer for layer in json.loads(report.read_text())["layers"] for origin in layer["NetworkLayers"]}
    results, rows = {}, []
    for shape in read_shapes(arguments.shapes):
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


def time_layer(arguments, name, dtype, folder):
    model, report = folder / f"{name}.onnx", folder / f"{name}-{dtype}.json"
    write_layer(name, model)
    status, _, err, _ = run([arguments.build / "bin/bench_networks", model, "--target=cuda", f"--precision={dtype}",
                             f"--budget={min(arguments.budget, 10)}", "--seconds=0.2", "--json", report], 120)
    return json.loads(report.read_text()) if status == 0 else {"error": last_lines(err, 3)}


def check_recurrences(arguments, folder):
    peers = {}
    if not arguments.without_torch:
        status, out, err, _ = run([sys.executable, pathlib.Path(__file__).parent / "recurrences.py", "torch"])
        peers = json.loads(out) if status == 0 else {}
        if status != 0:
            print(f"recurrences: torch: {last_lines(err, 3)}", flush=True)
    results, rows = {}, []
    for name in LAYERS:
        for dtype in TYPES:
            result, peer = time_layer(arguments, name, dtype, folder), peers.get(f"{name}-{dtype}")
            results[f"{name}-{dtype}"] = result | {"torch_ms": peer}
            if "error" in result:
                rows.append((f"{name}-{dtype}", result["error"][-100:], *[""] * 4))
                continue
            ours = result["stream_ms"]
            rows.append((f"{name}-{dtype}", f"{ours:.3f}", f"{peer:.3f}" if peer else "-",
                         f"{peer / ours:.2f}x" if peer else "-", result["steps"], f"{result['build_ms'] / 1e3:.1f}"))
    table(rows, ("layer", "Lathe ms", "torch ms", "speed", "steps", "build s"))
    return results


def write_network(network, batch, model):
    command = [sys.executable, ROOT / "tools/models/write.py", network, f"--batch={batch}", "--out", model]
    status, _, err, _ = run(command)
    if status != 0:
        sys.exit(last_lines(err, 3))


class TorchPeers:
    """Compile at once, in the background; each is timed when its turn has come."""

    def __init__(self, arguments, folder):
        self.processes, self.folder = {}, folder
        if arguments.without_torch or "networks" not in arguments.only:
            return
        for network in arguments.networks:
            for batch in arguments.batches:
                model = folder / f"{network}-{batch}.onnx"
                write_network(network, batch, model)
                command = [sys.executable, pathlib.Path(__file__).parent / "torch_peer.py", model, f"--batch={batch}",
                           "--wait"]
                with open(f"{model}.log", "w", encoding="utf-8") as log:
                    self.processes[network, batch] = subprocess.Popen(
                        [str(word) for word in command], env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                        stderr=log, text=True)

    def wait_until_compiled(self):
        for process in self.processes.values():
            process.stdout.readline()

    def time(self, network, batch):
        process = self.processes.pop((network, batch), None)
        if process is None:
            return {}
        out, _ = process.communicate("go\n", timeout=120)
        if process.returncode == 0:
            return json.loads(out.splitlines()[-1])
        return {"error": last_lines((self.folder / f"{network}-{batch}.onnx.log").read_text(), 2)}

    def stop(self):
        for process in self.processes.values():
            process.kill()


def time_network(arguments, network, batch, folder, libraries=False):
    report = folder / f"{network}-{batch}.json"
    command = [arguments.build / "bin/bench_networks", folder / f"{network}.onnx", "--target=cuda", "--precision=f16",
               f"--batch={batch}", f"--budget={arguments.budget}", "--json", report, *(["--libraries"] * libraries),
               f"--timingCache={folder}/{network}-{batch}.timings", "--seconds=0.5", *(["--steps"] * arguments.steps)]
    status, out, err, _ = run(command, arguments.budget + 60)
    if status != 0:
        print(network, batch, last_lines(err, 12), sep="\n", flush=True)
        return {"error": last_lines(err, 3)}
    if arguments.steps:
        with (arguments.out / "steps.txt").open("a") as file:
            file.write(f"==== {network}, batch {batch}{', with libraries' * libraries}\n{out}\n")
    result = json.loads(report.read_text()) | {"model": network}  # whose path says nothing
    if arguments.warm:
        status, out, err, _ = run(command)  # again, for the build with a warm timing cache
        result["warm_build_ms"] = json.loads(report.read_text())["build_ms"] if status == 0 else 0
    return result


def floor_ms(network, batch, result):
    compute = GFLOP[network] * batch / PEAK_TFLOPS
    memory = result["weights_bytes"] / (PEAK_TBPS * 1e9)
    return max(compute, memory, result["steps"] * STEP_US / 1e3)


def network_row(network, batch, result):
    if "error" in result:
        return network, batch, result["error"][-100:], *[""] * 10
    ours, peer, libraries = result["stream_ms"], result["torch"].get("compiled_ms"), result["libraries"].get("stream_ms")
    floor = floor_ms(network, batch, result)
    return (network, batch, f"{ours:.3f}", f"{libraries:.3f}" if libraries else "-", f"{result['median_ms']:.3f}",
            f"{peer:.3f}" if peer else "-", f"{peer / ours:.2f}x" if peer else "-", f"{floor:.3f}",
            f"{ours / floor:.1f}", result["steps"], result["steps_on_host"],
            f"{result['build_ms'] / 1e3:.1f} / {result.get('warm_build_ms', 0) / 1e3:.1f}",
            f"{result['load_ms']:.0f}")


def check_networks(arguments, folder, peers):
    results, rows = {}, []
    for network in arguments.networks:
        write_network(network, "dynamic", folder / f"{network}.onnx")
        for batch in arguments.batches:
            result = results[f"{network} {batch}"] = time_network(arguments, network, batch, folder)
            result["torch"] = peers.time(network, batch)
            result["libraries"] = time_network(arguments, network, batch, folder, True) if batch in arguments.libraries else {}
            rows.append(network_row(network, batch, result))
            print(*rows[-1], flush=True)
    table(rows, ("network", "batch", "Lathe ms", "libraries ms", "with sync", "torch ms", "speed", "floor ms",
                 "of floor", "steps", "on host", "build s cold / warm", "load ms"))
    return results


def check_repeat(arguments, folder):
    model = folder / "repeat.onnx"
    write_network("mobilenet_v2", 1, model)
    status, out, err, seconds = run([arguments.build / "bin/bench_networks", model, "--target=cuda", "--precision=f16",
                                     "--budget=5", "--seconds=0.1", "--repeat=1000"])
    print(f"repeat: {last_lines(out, 1) if status == 0 else last_lines(err, 3)}", flush=True)
    return {"equal": status == 0}


def check_quantized(arguments, folder):
    status, out, err, _ = run([sys.executable, pathlib.Path(__file__).parent / "quantized.py", "--build", arguments.build,
                               "--out", arguments.out / "quantized", "--networks", "resnet50",
                               f"--seconds={arguments.seconds}"], 2 * arguments.seconds)
    print(out, *([last_lines(err, 5)] if status != 0 else []), sep="\n", flush=True)
    return {"rows": [line.strip("| ").split(" | ") for line in out.splitlines()[2:]]}


def sanitize(arguments, tool):
    # Calls of the driver that fail are ours to handle: some are questions (how many parameters has a kernel?).
    quiet = ["--report-api-errors=no"] if tool == "memcheck" else []
    shards = run_shards(arguments, SHARDS, arguments.cases, "compute-sanitizer", f"--tool={tool}", "--error-exitcode=9",
                        *quiet)
    found = [out for status, out, _, _ in shards if status == 9]
    failed = failures(shards)
    cut = sum(status == 124 for status, *_ in shards)
    print(f"sanitizer {tool}: {count_passed(shards)} cases passed, {len(failed)} failed, findings in {len(found)} of "
          f"{SHARDS} processes, {cut} did not end, {max(seconds for *_, seconds in shards):.0f} s", flush=True)
    for out in found[:4]:
        print("\n".join([line for line in out.splitlines() if line.startswith("=====")][:20]))
    for i, (status, out, err, _) in enumerate(shards):
        if status != 0:
            (arguments.out / f"{tool}-{i}.log").write_text(out + err)
    return {"passed": count_passed(shards), "failed": failed, "findings": len(found), "cut": cut}


def check_sanitizer(arguments, folder):
    tools = ("memcheck", "racecheck")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return dict(zip(tools, pool.map(lambda tool: sanitize(arguments, tool), tools)))


def main():
    arguments = parse_arguments()
    machine = describe_machine()
    print(machine, flush=True)
    build(arguments.build)
    results = {"machine": machine, "date": datetime.date.today().isoformat()}
    checks = {"kernels": check_kernels, "conformance": check_conformance, "random": check_random}
    arguments.out.mkdir(parents=True, exist_ok=True)

    def keep(stage, result):
        results[stage] = result
        (arguments.out / f"{results['date']}-cuda.json").write_text(json.dumps(results, indent=1) + "\n")

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, concurrent.futures.ThreadPoolExecutor() as pool:
        folder = pathlib.Path(folder)
        ENVIRONMENT["LATHE_CACHE_DIR"] = str(folder / "cache")
        peers = TorchPeers(arguments, folder)
        running = {stage: pool.submit(check, arguments, folder)
                   for stage, check in checks.items() if stage in arguments.only}
        for stage, check in running.items():
            keep(stage, check.result())
        if "sanitizer" in arguments.only:  # after the others, which have compiled the kernels
            keep("sanitizer", check_sanitizer(arguments, folder))
        peers.wait_until_compiled()
        ENVIRONMENT["LATHE_CACHE_DIR"] = str(folder / "cold")  # builds that are timed find no kernel of the checks'
        timed = {"shapes": lambda: check_shapes(arguments, folder),
                 "recurrences": lambda: check_recurrences(arguments, folder),
                 "networks": lambda: check_networks(arguments, folder, peers),
                 "repeat": lambda: check_repeat(arguments, folder),
                 "quantized": lambda: check_quantized(arguments, folder)}
        for stage in TIMED:
            if stage in arguments.only:
                keep(stage, timed[stage]())
        peers.stop()


if __name__ == "__main__":
    main()
