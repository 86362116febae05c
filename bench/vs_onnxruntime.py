#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lathe against ONNX Runtime on the same CPUs: speed, load-to-first-inference, peak memory, build time.

Four networks (or others, named with --networks), fp32, batch 1, 1 and 2 threads. Every measurement is a fresh process, pinned to the same CPUs; rounds
alternate between the two, so that whatever else the machine does meets both. Reported are medians over rounds of each
process's median. Writes bench/results/DATE-NAME.json and .md; see bench/README.md for how to read them.
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
NETWORKS = ("resnet50", "mobilenet_v2", "efficientnet_b0", "yolov8n")
FIELDS = ("median_ms", "min_ms", "p90_ms", "p99_ms", "load_ms", "first_ms", "peak_kb", "before_kb")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", default=NETWORKS, metavar="NETWORK",
                        help="what tools/models/write.py writes; NETWORK@16 is that network at batch 16")
    parser.add_argument("--name", default="cpu", help="of the files with the results")
    parser.add_argument("--dialect", default="torchscript", choices=("torchscript", "dynamo"))
    parser.add_argument("--threads", nargs="+", type=int, default=(1, 2))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="measured time of each process")
    parser.add_argument("--lathe", type=pathlib.Path, default=ROOT / "build/bin/lathe")
    parser.add_argument("--peer-only", action="store_true", help="measure ONNX Runtime alone")
    parser.add_argument("--real-time", action="store_true",
                        help="run at real-time priority (root): other programs then hardly disturb")
    parser.add_argument("--build-budget", type=float, help="seconds for each engine build (lathe's own default if absent)")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench/results")
    return parser.parse_args()


def run_pinned(command, threads, real_time):
    """Runs on the first CPUs that this process may use, as many as there are threads."""
    cpus = ",".join(map(str, sorted(os.sched_getaffinity(0))[:threads]))
    prefix = ["chrt", "-f", "1"] if real_time else []
    result = subprocess.run(prefix + ["taskset", "-c", cpus] + list(map(str, command)), capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{result.stdout}{result.stderr}")
    return result.stdout


def write_models(arguments, folder):
    models = {}
    for network in arguments.networks:
        models[network] = folder / f"{network}.onnx"
        name, _, batch = network.partition("@")
        subprocess.run([sys.executable, ROOT / "tools/models/write.py", name, "--dialect", arguments.dialect,
                        "--batch", batch or "1", "--out", models[network]], check=True, stdout=subprocess.DEVNULL)
    return models


def build_engine(arguments, model, threads):
    """The engine for that many threads, and the seconds of a cold build and of one with a warm timing cache."""
    engine, cache = model.with_suffix(f".{threads}.engine"), model.with_suffix(f".{threads}.cache")
    command = [arguments.lathe, "build", model, "-o", engine, f"--timingCacheFile={cache}", f"--threads={threads}"]
    command += [f"--buildBudget={arguments.build_budget}"] if arguments.build_budget else []
    seconds = []
    for _ in range(2):
        start = time.monotonic()
        run_pinned(command, threads, arguments.real_time)
        seconds.append(time.monotonic() - start)
    return engine, {"cold_s": seconds[0], "warm_s": seconds[1], "engine_bytes": engine.stat().st_size}


def read_through(path):
    """Brings the file into the page cache: the first inference is to time the program, not the disk."""
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 20):
            pass


def measure_peer(arguments, model, threads):
    read_through(model)
    worker = ROOT / "bench/onnxruntime_worker.py"
    command = [sys.executable, worker, model, "--threads", threads, "--seconds", arguments.seconds]
    return json.loads(run_pinned(command, threads, arguments.real_time))


def measure_lathe(arguments, engine, threads):
    read_through(engine)
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [arguments.lathe, "bench", engine, f"--threads={threads}", f"--seconds={arguments.seconds}",
                   f"--json={report.name}"]
        run_pinned(command, threads, arguments.real_time)
        result = json.loads(pathlib.Path(report.name).read_text())
        return result | {"file": pathlib.Path(result["file"]).name}


def middle(samples):
    return {field: statistics.median(sample[field] for sample in samples) for field in FIELDS}


def measure(arguments, models):
    """All rounds. Returns one record per network and thread count."""
    cells = [(network, threads) for network in models for threads in arguments.threads]
    builds, engines = {}, {}
    for cell in cells if not arguments.peer_only else ():
        print(f"building {cell[0]} for {cell[1]} thread(s)", flush=True)
        engines[cell], builds[cell] = build_engine(arguments, models[cell[0]], cell[1])
    samples = {cell: {"onnxruntime": [], "lathe": []} for cell in cells}
    for round_number in range(arguments.rounds):
        for cell in cells:
            turns = [("onnxruntime", lambda: measure_peer(arguments, models[cell[0]], cell[1]))]
            if engines:
                turns.append(("lathe", lambda: measure_lathe(arguments, engines[cell], cell[1])))
            for name, turn in turns if round_number % 2 == 0 else reversed(turns):
                samples[cell][name].append(turn())
        print(f"round {round_number + 1} of {arguments.rounds} done", flush=True)
    return [{"network": network, "threads": threads, "build": builds.get((network, threads)),
             **{name: middle(taken) for name, taken in samples[network, threads].items() if taken},
             "samples": samples[network, threads]} for network, threads in cells]


def with_ratios(record):
    """How Lathe compares: speed above 1 is faster; first inference and memory below 1 are less."""
    if "lathe" in record:
        peer, ours = record["onnxruntime"], record["lathe"]
        record["ratio"] = {
            "speed": peer["median_ms"] / ours["median_ms"], "first": ours["first_ms"] / peer["first_ms"],
            "memory": (ours["peak_kb"] - ours["before_kb"]) / (peer["peak_kb"] - peer["before_kb"])}
    return record


def geometric_mean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def machine():
    with open("/proc/cpuinfo") as info:
        model = next((line.split(":")[1].strip() for line in info if line.startswith("model name")), platform.machine())
    return {"cpu": model, "cpus": len(os.sched_getaffinity(0)), "kernel": platform.release(),
            "huge_pages": pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text().strip(),
            "load_before": os.getloadavg()[0]}


def table(report):
    lines = [f"# Lathe against ONNX Runtime {report['onnxruntime']}, {report['date']}", "",
             f"{report['machine']['cpu']}, {report['machine']['cpus']} CPUs; fp32, batch 1 or @batch, {report['dialect']} dialect, "
             f"{report['rounds']} interleaved rounds, medians. Memory: peak resident above that before loading.", "",
             "| network | threads | ONNX Runtime ms | Lathe ms | speed | first inference ms | ratio | memory MB | ratio | build cold / warm s |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for r in report["records"]:
        peer, ours, ratio = r["onnxruntime"], r.get("lathe"), r.get("ratio")
        row = [r["network"], r["threads"], f"{peer['median_ms']:.2f}"]
        peer_mb = (peer["peak_kb"] - peer["before_kb"]) / 1024
        if ours:
            ours_mb = (ours["peak_kb"] - ours["before_kb"]) / 1024
            row += [f"{ours['median_ms']:.2f}", f"{ratio['speed']:.2f}x",
                    f"{ours['first_ms']:.0f} / {peer['first_ms']:.0f}", f"{ratio['first']:.2f}x",
                    f"{ours_mb:.0f} / {peer_mb:.0f}", f"{ratio['memory']:.2f}x",
                    f"{r['build']['cold_s']:.1f} / {r['build']['warm_s']:.1f}"]
        else:
            row += ["", "", f"{peer['first_ms']:.0f}", "", f"{peer_mb:.0f}", "", ""]
        lines.append("| " + " | ".join(map(str, row)) + " |")
    for name, value in report["geomean"].items():
        lines += ["", f"Geometric mean, {name}: {value:.2f}x"]
    return "\n".join(lines) + "\n"


def main():
    arguments = parse_arguments()
    arguments.peer_only or shutil.which(arguments.lathe) or sys.exit(f"{arguments.lathe} is missing: run `make build`")
    about = machine()
    if about["load_before"] > 0.5 and not arguments.real_time:
        print(f"warning: the machine is not idle (load {about['load_before']:.1f}); numbers will be noisy", flush=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "data" if (ROOT / "data").is_dir() else None) as folder:
        records = [with_ratios(r) for r in measure(arguments, write_models(arguments, pathlib.Path(folder)))]
    ratios = [r["ratio"] for r in records if "ratio" in r]
    report = {"date": datetime.date.today().isoformat(), "machine": about, "dialect": arguments.dialect,
              "rounds": arguments.rounds, "onnxruntime": records[0]["samples"]["onnxruntime"][0]["version"],
              "geomean": {n: geometric_mean([r[n] for r in ratios]) for n in (ratios[0] if ratios else ())},
              "records": records}
    text = table(report)
    print(text)
    arguments.out.mkdir(parents=True, exist_ok=True)
    stem = arguments.out / f"{report['date']}-{arguments.name}"
    stem.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    stem.with_suffix(".md").write_text(text)


if __name__ == "__main__":
    main()
