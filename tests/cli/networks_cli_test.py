#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The four networks in both dialects: built as engines with a dynamic batch, run at two batch sizes, and compared with
ONNX Runtime on the same random input."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
LATHE = pathlib.Path(os.environ["LATHE_BUILD_DIR"], "bin/lathe")
sys.path.insert(0, str(ROOT / "tools/models"))
import weights  # noqa: E402
import write  # noqa: E402

BATCHES = (1, 2)


def lathe(*words):
    result = subprocess.run([LATHE, *map(str, words)], capture_output=True, text=True)
    if result.returncode:
        raise AssertionError(f"lathe {words[0]} ended with {result.returncode}:\n{result.stdout}{result.stderr}")


class Networks(unittest.TestCase):
    def compare(self, network, dialect, folder):
        model, engine = folder / "model.onnx", folder / "model.engine"
        onnx.save(weights.fill(write.build(network, dialect, batch="batch")), model)
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        plain = onnxruntime.SessionOptions()
        plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        unoptimised = onnxruntime.InferenceSession(model, plain, providers=["CPUExecutionProvider"])
        name, shape = session.get_inputs()[0].name, session.get_inputs()[0].shape[1:]
        sizes = {kind: f"{name}:" + "x".join(map(str, [batch, *shape]))
                 for kind, batch in (("min", 1), ("opt", 1), ("max", max(BATCHES)))}
        lathe("build", model, "-o", engine, *(f"--{kind}Shapes={size}" for kind, size in sizes.items()), "--buildBudget=3")
        for batch in BATCHES:
            data = np.random.default_rng(batch).standard_normal((batch, *shape), np.float32)
            np.save(folder / "input.npy", data)
            lathe("run", engine, f"--loadInputs={name}:{folder / 'input.npy'}", "--exportOutput", folder / "out")
            results = zip(session.get_outputs(), session.run(None, {name: data}), unoptimised.run(None, {name: data}))
            for output, expected, other in results:
                got = np.load(folder / "out" / f"{output.name}.npy")
                self.assertEqual(got.shape, expected.shape)
                scale = np.abs(expected).max()
                # Random weights can make a network ill-conditioned: then the peer, merely run without its own graph
                # optimisations, differs from itself by more than rounding, and so may we.
                conditioning = np.abs(other - expected).max() / scale
                self.assertLess(np.abs(got - expected).max() / scale, max(2e-4, 2 * conditioning), f"batch {batch}")

    def agrees_with_onnx_runtime(self, network):
        for dialect in write.DIALECTS:
            with self.subTest(dialect=dialect), tempfile.TemporaryDirectory() as folder:
                self.compare(network, dialect, pathlib.Path(folder))


for name in sorted(write.NETWORKS):
    setattr(Networks, f"test_{name}", lambda self, network=name: self.agrees_with_onnx_runtime(network))


if __name__ == "__main__":
    unittest.main()
