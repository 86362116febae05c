# SPDX-License-Identifier: Apache-2.0
"""A model that a script of this folder makes, built on the GPU and timed by `lathe trtexec`."""
import re
import subprocess

import onnx


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def milliseconds(build, model, path, budget, seconds):
    """GPU time of a run of `model`, the median of those in so many seconds, or None after a report of what failed. The
    model is written to `path`, whose text file then has its log and the time of each step; `budget`: seconds of tuning."""
    onnx.save(model, path)
    engine, lathe = path.with_suffix(".engine"), f"{build}/bin/lathe"
    log = run(lathe, "build", path, "-o", engine, "--target=cuda", f"--buildBudget={budget}")
    path.with_suffix(".txt").write_text(log + run(lathe, "inspect", engine, "--profile"))
    text = run(lathe, "trtexec", f"--loadEngine={engine}", "--useCudaGraph", "--noDataTransfers", f"--duration={seconds}")
    path.unlink()
    engine.unlink(missing_ok=True)
    found = re.search(r"GPU Compute Time:.*?median = ([\d.]+) ms", text)
    if found:
        return float(found[1])
    print(f"{path.stem}: failed\n{(log + text)[-1500:]}", flush=True)
    return None
