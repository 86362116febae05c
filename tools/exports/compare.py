# SPDX-License-Identifier: Apache-2.0
"""Builds an export for a device, runs it at every set of sizes, and compares with what was expected."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

import numpy as np

from cases import difference

HALF_TOLERANCE = 1e-2
ROUNDINGS = 5  # times what PyTorch's own float32 loses, where that is more than the tolerance
LARGEST_TOLERANCE = 5e-2


def device_options(device, build):
    """What the command line and the environment say for a device: cpu, emulated, cuda or cuda-f16."""
    words = {"cpu": ["--target=cpu"], "emulated": ["--target=cuda", "--noTF32"], "cuda": ["--target=cuda", "--noTF32"],
             "cuda-f16": ["--target=cuda", "--fp16"]}[device]
    stand_in = {"LATHE_CUDA_DRIVER": "libfake_cuda_driver.so", "LATHE_NVRTC": "libnvrtc.so"}
    variables = {name: str(build / "fake_cuda" / file) for name, file in stand_in.items()} if device == "emulated" else {}
    return words, variables


class Failed(Exception):
    """A verdict (refused, crashed, timeout) and why."""


def lathe(command, environment, limit):
    try:
        result = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=limit, env=environment,
                                errors="replace")
    except subprocess.TimeoutExpired:
        raise Failed("timeout", f"{command[1]}: no end after {limit:.0f} s") from None
    if result.returncode < 0 or result.returncode >= 128:
        raise Failed("crashed", f"{command[1]}: status {result.returncode}: {last_words(result.stderr)}")
    if result.returncode != 0:
        raise Failed("refused", f"{command[1]}: {last_words(result.stderr or result.stdout)}")


def last_words(text):
    lines = [re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line).strip() for line in re.split(r"[\r\n]", text)]
    errors = [line for line in lines if re.search(r"error|\[E\]|what:", line, re.I)]
    return " / ".join((errors or [line for line in lines if line])[:3])[:600]


def profile(case, sets):
    """--minShapes and so on for the inputs with open sizes: a profile that spans these sets."""
    words = []
    for option, pick in (("min", min), ("opt", None), ("max", max)):
        shapes = []
        for name, dims in case["inputs"].items():
            if None in dims:
                each = [s["shapes"][name] for s in sets]
                sizes = each[len(each) // 2] if pick is None else [pick(values) for values in zip(*each)]
                shapes.append(f"{name}:{'x'.join(map(str, sizes))}")
        if shapes:
            words.append(f"--{option}Shapes={','.join(shapes)}")
    return words


def run_set(program, engine, case, each, folder, environment, limit):
    """The largest error of the outputs at one set of sizes."""
    place, out = folder / "sets" / str(each["set"]), folder / "out"
    files = ",".join(f"{name}:{place / name}.npy" for name in case["inputs"])
    lathe([program, "run", engine, f"--loadInputs={files}", "--exportOutput", out, "--threads=1"], environment, limit)
    if not each["valid"]:
        raise Failed("wrong", f"sizes {each['sizes']}: answered where {each['referee']}")
    errors = []
    for number, name in enumerate(case["outputs"]):
        got, expected = np.load(out / f"{name}.npy"), np.load(place / f"out{number}.npy")
        if got.shape != expected.shape:
            raise Failed("wrong", f"sizes {each['sizes']}: {name} has shape {got.shape}, expected {expected.shape}")
        errors.append(difference(got, expected))
    return max(errors)


def peer_loss(each, device):
    """What PyTorch's own float16 loses at these sizes, where it yields numbers at all: a build in float16 may, too."""
    half = each.get("half") if device.endswith("f16") else None
    return half if half is not None and np.isfinite(half) else 0.0


def build_and_run(sets, case, tolerance, device, folder, arguments, limit):
    """Errors at these sets of sizes, from one engine."""
    program, engine = arguments.build / "bin/lathe", folder / f"{device}.engine"
    words, variables = device_options(device, arguments.build)
    environment = os.environ | variables
    deadline = time.monotonic() + limit
    lathe([program, "build", folder / "model.onnx", "-o", engine, f"--buildBudget={arguments.tune:g}", "--threads=1",
           *words, *profile(case, sets)], environment, limit)
    errors = []
    for each in sets:
        try:
            errors.append(run_set(program, engine, case, each, folder, environment, max(1, deadline - time.monotonic())))
        except Failed as failed:
            if failed.args[0] == "refused" and not each["valid"]:
                continue  # as it should be
            raise Failed(failed.args[0], f"sizes {each['sizes']}: {failed.args[1]}") from None
        if errors[-1] > max(min(max(tolerance, ROUNDINGS * each["rounding"]), LARGEST_TOLERANCE), peer_loss(each, device)):
            raise Failed("wrong", f"sizes {each['sizes']}: error {errors[-1]:.1e}")
    return errors


def expected_counts(model, variant):
    """{what is counted: how often it is to be found}; nobody has counted what is not there."""
    counts = {}
    for what in ("attentions", "causal", "windows", "distances", "rotations", "norms", "experts", "caches"):
        everywhere, *others = getattr(model, what).split() or [None]
        if everywhere:
            counts[what] = int(dict(word.split("=") for word in others).get(variant, everywhere))
    return counts


def count_ops(model, case, folder, arguments, limit):
    """What the passes recognise in what the exporter wrote: attentions, of models that share heads those with so many of keys,
    how many of them are causal, have a window, and add numbers by distances; values that are turned by positions;
    normalisations; products by experts."""
    with tempfile.TemporaryDirectory() as dumps:
        lathe([arguments.build / "bin/lathe", "build", folder / "model.onnx", "-o", f"{dumps}/engine", "--target=cpu",
               "--buildBudget=0", "--skipPass", "decompose", "--dumpPasses", dumps,
               *profile(case, [each for each in case["sets"] if each["valid"]])], os.environ, limit)
        last = max(pathlib.Path(dumps).glob("*.graph")).read_text()
    shapes = dict(re.findall(r"(%\S+)(?: = .*)?: \w+\[(.*?)\](?: [@f].*)?$", last, re.M))
    read = [(attributes, operands.split(", ")) for attributes, operands in re.findall(r"= attention({[^}]*})?\((.*?)\): ", last)]
    found = [(attributes, operands) for attributes, operands in read
             if not model.shared or shapes[operands[1]].split(", ")[-3] == str(model.shared)]
    to_the_first = re.findall(r"(%\S+) = constant{value=i64\[1\]{-9223372036854775808}}", last)
    backwards = re.findall(r"= slice\(%\S+, %\S+, (%\S+), ", last)  # pairs, by which passes/recognize_rotations.cpp turns values
    return {"attentions": len(found), "distances": sum(len(operands) == 6 for _, operands in found),
            "rotations": sum(end in to_the_first for end in backwards),
            "norms": len(re.findall(r"= (?:layer|rms|group|instance)_normalization\b", last)),
            "experts": len(re.findall(r"= expert_matmul\b", last))} | {
        what: sum(word in attributes for attributes, _ in found) for what, word in (("causal", "causal=true"), ("windows", "window="))}


def count_caches(case, folder, arguments, limit):
    """How many past keys and values are updated in place, or copied once, to where the new ones are appended."""
    with tempfile.TemporaryDirectory() as reports:
        lathe([arguments.build / "bin/lathe", "inspect", folder / "model.onnx", "--target=cpu", "--buildBudget=0", "--json",
               f"{reports}/json", *profile(case, case["sets"])], os.environ, limit)
        report = json.loads(pathlib.Path(reports, "json").read_text())
    tensors = report["tensors"]
    count = 0
    for number, tensor in enumerate(tensors):
        if tensor["name"].startswith("past_key_values") and tensor["storage"] == "binding":
            readers = [layer for layer in report["layers"] if number in layer["InputTensors"] and layer["LayerType"] != "shape"]
            count += [layer["LayerType"] for layer in readers] == ["copy"] and all(
                tensors[made]["storage"] == "binding" for made in readers[0]["OutputTensors"])
    return count


def count(model, case, folder, arguments, limit):
    """What expected_counts() says, as it is found."""
    counts = count_ops(model, case, folder, arguments, limit)
    return counts | ({"caches": count_caches(case, folder, arguments, limit)} if model.caches else {})


def compare(model, case, device, folder, arguments, limit):
    """{verdict, error, message, seconds} of one export on one device. An export that holds for no size is to be refused."""
    started = time.monotonic()
    tolerance = max(model.tolerance, HALF_TOLERANCE) if device.endswith("f16") else model.tolerance
    valid = [each for each in case["sets"] if each["valid"]]
    result = {"device": device, "verdict": "right", "message": ""}
    peers = [each["half"] for each in valid if each.get("half") is not None]
    if device.endswith("f16") and peers:
        result["pytorch"] = max(peers)  # what its own float16 loses
    try:
        try:
            errors = build_and_run(case["sets"], case, tolerance, device, folder, arguments, limit)
        except Failed as failed:
            if failed.args[0] != "refused" or len(valid) == len(case["sets"]):
                raise
            result["message"] = f"refused for all sizes: {failed.args[1]}"
            result["verdict"] = "right" if valid else "not valid"
            errors = build_and_run(valid, case, tolerance, device, folder, arguments, limit) if valid else []
        result["error"] = max(errors, default=0.0)
    except Failed as failed:
        result["verdict"], result["message"] = failed.args
    (folder / f"{device}.engine").unlink(missing_ok=True)
    return result | {"seconds": round(time.monotonic() - started, 1)}
