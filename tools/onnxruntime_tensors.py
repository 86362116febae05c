#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a model with ONNX Runtime and writes each tensor that it computes, by its name, to a .npz file: what `lathe compare
--loadTensors` compares an engine with.

  python3 tools/onnxruntime_tensors.py model.onnx tensors.npz --inputs x:x.npy

Nothing is optimised, so that each tensor of the model is there. Types that numpy has not are left out.
"""
import argparse
import zipfile

import numpy as np
import onnx
import onnxruntime


def tensors_of(path, inputs):
    model = onnx.load(path)
    outputs = {output.name for output in model.graph.output}
    inner = [name for node in model.graph.node for name in node.output if name and name not in outputs]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in inner)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip((output.name for output in session.get_outputs()), session.run(None, inputs)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("file", help="the .npz file to write")
    parser.add_argument("--inputs", nargs="+", default=[], metavar="NAME:FILE", help=".npy files of the model's inputs")
    options = parser.parse_args()
    inputs = {name: np.load(path) for name, path in (pair.rsplit(":", 1) for pair in options.inputs)}
    found = tensors_of(options.model, inputs)
    kept = {name: value for name, value in found.items() if isinstance(value, np.ndarray) and value.dtype.kind in "biuf"}
    with zipfile.ZipFile(options.file, "w") as archive:  # numpy.savez has names of arrays that it does not take
        for name, value in kept.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, value)
    print(f"{len(kept)} of {len(found)} tensors in {options.file}")


if __name__ == "__main__":
    main()
