#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lays out the test data of the pinned onnx package as one folder per case, ready for `lathe conformance`.

  data/conformance/<suite>/<case>/model.onnx and test_data_set_*/{input,output}_<i>.pb

The package's light models come without inputs, and with their outputs beside the model: their inputs are written here
as the package's own runner makes them, arange(n) / n in the shape of the input. Quick when it is all there already.
"""
import argparse
import pathlib
import shutil
import sys

import numpy as np
import onnx
from onnx import numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUITES = {"node": 1765, "simple": 23, "pytorch-converted": 82, "pytorch-operator": 35, "light": 9}


def package_data():
    folder = pathlib.Path(onnx.__file__).parent / "backend/test/data"
    if not (folder / "node").is_dir():
        sys.exit(f"conformance_data.py: {folder} holds no test data; install the onnx version of requirements.txt")
    return folder


def copy_suite(source, target):
    for case in sorted(source.iterdir()):
        if (case / "model.onnx").is_file():
            shutil.copytree(case, target / case.name)


def write_light_inputs(model_file, folder):
    model = onnx.load(model_file)
    weights = {tensor.name for tensor in model.graph.initializer}
    for i, entry in enumerate(model.graph.input):
        if entry.name not in weights:
            shape = [d.dim_value or 1 for d in entry.type.tensor_type.shape.dim]
            count = int(np.prod(shape))
            data = (np.arange(count) / count).astype(np.float32).reshape(shape)
            (folder / f"input_{i}.pb").write_bytes(numpy_helper.from_array(data, entry.name).SerializeToString())


def lay_out_light(source, target):
    for model_file in sorted(source.glob("*.onnx")):
        data_set = target / model_file.stem / "test_data_set_0"
        data_set.mkdir(parents=True)
        shutil.copy(model_file, data_set.parent / "model.onnx")
        for output in source.glob(f"{model_file.stem}_output_*.pb"):
            shutil.copy(output, data_set / output.name.removeprefix(model_file.stem + "_"))
        write_light_inputs(model_file, data_set)


def cases(folder):
    return sorted(path.parent for path in folder.glob("*/*/model.onnx"))


def lay_out(target):
    """Builds the tree beside its place and moves it in whole, so that a half-made one is never seen."""
    source, fresh = package_data(), target.with_name(target.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    for suite in SUITES:
        (lay_out_light if suite == "light" else copy_suite)(source / suite, fresh / suite)
    (fresh / "version").write_text(onnx.__version__)
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "data/conformance")
    parser.add_argument("--list", action="store_true", help="print every case's folder")
    arguments = parser.parse_args()
    stamp = arguments.out / "version"
    if not stamp.is_file() or stamp.read_text() != onnx.__version__:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        lay_out(arguments.out)
    found = {suite: len([c for c in cases(arguments.out) if c.parent.name == suite]) for suite in SUITES}
    if arguments.list:
        print(*cases(arguments.out), sep="\n")
    else:
        print(f"{arguments.out}: {sum(found.values())} cases of onnx {onnx.__version__}: " +
              ", ".join(f"{suite} {count}" for suite, count in found.items()))
    if found != SUITES:
        sys.exit(f"conformance_data.py: expected {SUITES}")


if __name__ == "__main__":
    main()
