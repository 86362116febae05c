#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints, for each network and target, how many steps its plan has and a digest of what they are: kernels, configurations,
tensors, memory. Nothing is measured while building, so equal digests before and after a change mean equal plans.

  tools/plan_digests.py > before.txt
  tools/plan_digests.py --networks resnet50 --targets cuda-sm_90 --details details
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools" / "models"))
import onnx  # noqa: E402
from networks import NETWORKS  # noqa: E402
from random_network import save  # noqa: E402
from weights import fill  # noqa: E402
from write import build  # noqa: E402

BATCHES = (1, 32)
NOT_OF_THE_PLAN = ("file", "version", "tuned_on")
PRECISIONS = {"cpu": ("",), "cuda-sm_90": ("", "--fp16")}


def plan_of(model, target, precision):
    program = pathlib.Path(os.environ.get("LATHE_BUILD_DIR", ROOT / "build")) / "bin" / "lathe"
    with tempfile.TemporaryDirectory() as folder:
        described = pathlib.Path(folder) / "plan.json"
        command = [program, "inspect", model, "--buildBudget=0", f"--target={target}", f"--json={described}"]
        done = subprocess.run(command + [precision] * bool(precision), capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{model} for {target}: {done.stderr}")
        plan = json.loads(described.read_text())
        for name in NOT_OF_THE_PLAN:
            plan.pop(name)
        return plan


def digest(plan):
    return hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()[:16]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", default=sorted(NETWORKS), choices=sorted(NETWORKS))
    parser.add_argument("--targets", nargs="+", default=list(PRECISIONS), choices=list(PRECISIONS))
    parser.add_argument("--random", type=int, default=0, metavar="N", help="so many random networks, too")
    parser.add_argument("--models", type=pathlib.Path, help="more models, all .onnx files of this folder")
    parser.add_argument("--details", type=pathlib.Path, help="folder for what is digested, a file each")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models = [ROOT / "examples" / "digits" / "digits.onnx"]
        models += sorted(args.models.glob("*.onnx")) if args.models else []
        for network in args.networks:
            for batch in BATCHES:
                models.append(pathlib.Path(folder) / f"{network}_{batch}.onnx")
                onnx.save(fill(build(network, batch=batch)), models[-1])
        for seed in range(args.random):
            models.append(pathlib.Path(folder) / f"random_{seed}.onnx")
            save(seed, models[-1])
        for model in models:
            for target in args.targets:
                for precision in PRECISIONS[target]:
                    plan = plan_of(model, target, precision)
                    what = " ".join(filter(None, (model.stem, target, precision)))
                    print(f"{what:40} {len(plan['layers']):5} {digest(plan)}", flush=True)
                    if args.details:
                        args.details.mkdir(exist_ok=True)
                        name = re.sub(r"\W+", "_", what)
                        (args.details / f"{name}.json").write_text(json.dumps(plan, indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
