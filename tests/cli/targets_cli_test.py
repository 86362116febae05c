#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One engine for several machines: a GPU, other GPUs, and none."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"])
DIGITS = pathlib.Path(__file__).resolve().parents[2] / "examples/digits/digits.onnx"
FAKE = BUILD / "fake_cuda"
GPU = {"LATHE_CUDA_DRIVER": FAKE / "libfake_cuda_driver.so", "LATHE_NVRTC": FAKE / "libnvrtc.so"}
NO_GPU = {"LATHE_CUDA_DRIVER": "/nowhere/libcuda.so", "LATHE_NVRTC": GPU["LATHE_NVRTC"]}


def write_network(path):
    """A normalized convolution, one of single pixels and a product: what kernels of GPUs and CPUs read in orders of their own."""
    random = np.random.default_rng(5)
    weights = {"first": (256, 64, 3, 3), "second": (96, 256, 1, 1), "third": (96, 500)}
    weights = {name: random.standard_normal(dims, np.float32) / 30 for name, dims in weights.items()}
    weights |= {name: random.uniform(0.5, 1, 256).astype(np.float32) for name in ("scale", "bias", "mean", "var")}
    nodes = [helper.make_node("Conv", ["image", "first"], ["a"], pads=[1] * 4),
             helper.make_node("BatchNormalization", ["a", "scale", "bias", "mean", "var"], ["b"]),
             helper.make_node("Relu", ["b"], ["c"]), helper.make_node("Conv", ["c", "second"], ["d"]),
             helper.make_node("GlobalAveragePool", ["d"], ["e"]), helper.make_node("Flatten", ["e"], ["f"]),
             helper.make_node("MatMul", ["f", "third"], ["result"])]
    graph = helper.make_graph(nodes, "network", [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 64, 8, 8])],
                              [helper.make_tensor_value_info("result", TensorProto.FLOAT, [1, 500])],
                              [numpy_helper.from_array(value, name) for name, value in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return sum(weights[name].nbytes for name in ("first", "second", "third"))


class Targets(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        np.save(self.folder / "image.npy", np.random.default_rng(3).standard_normal((1, 1, 8, 8), np.float32))

    def lathe(self, *words, status=0, **variables):
        result = subprocess.run([str(word) for word in (BUILD / "bin/lathe", *words)], capture_output=True, text=True,
                                env=os.environ | {key: str(value) for key, value in variables.items()})
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def build(self, name, *options, model=DIGITS, **variables):
        path = self.folder / name
        self.lathe("build", model, "-o", path, "--buildBudget=0", "--noTF32", *options, **(variables or NO_GPU))
        return path

    def answer(self, engine, **variables):
        out = self.folder / "out"
        self.lathe("run", engine, f"--loadInputs=image:{self.folder / 'image.npy'}", f"--exportOutput={out}", **variables)
        return np.load(next(out.glob("*.npy")))

    def report(self, engine):
        self.lathe("inspect", engine, "--json", self.folder / "report.json", **NO_GPU)
        return json.loads((self.folder / "report.json").read_text())

    def test_the_same_file_everywhere(self):
        engine = self.build("fat.engine", "--targets=sm_90,sm_80+,cpu-x86_64")
        expected = self.answer(self.build("cpu.engine", "--target=cpu-x86_64"), **NO_GPU)
        np.testing.assert_array_equal(self.answer(engine, **NO_GPU), expected)
        np.testing.assert_allclose(self.answer(engine, **GPU), expected, rtol=1e-4, atol=1e-5)
        report = self.report(engine)
        self.assertEqual([variant["target"] for variant in report["variants"]], ["cuda-sm_90", "cuda-sm_80+", "cpu-x86_64-baseline"])

    def test_weights_are_there_in_one_order(self):
        model, names = self.folder / "network.onnx", ("sm_90", "sm_80", "cpu-x86_64")
        weights = write_network(model)
        np.save(self.folder / "image.npy", np.random.default_rng(4).standard_normal((1, 64, 8, 8), np.float32))
        engines = {name: self.build(f"{name}.engine", f"--target={name}", model=model) for name in names}
        engines["derived"] = self.build("derived.engine", f"--targets={','.join(names)}", model=model)
        engines["stored"] = self.build("stored.engine", f"--targets={','.join(names)}", "--storeWeights", model=model)
        sizes = {name: engine.stat().st_size for name, engine in engines.items()}
        alone = sizes["sm_90"]
        self.assertGreater(sizes["stored"], alone + 0.95 * weights)
        self.assertLess(sizes["derived"], alone + 0.2 * weights)
        expected = self.answer(engines["cpu-x86_64"], **NO_GPU)
        for name in ("derived", "stored"):
            np.testing.assert_array_equal(self.answer(engines[name], **NO_GPU), expected)
        variants = self.report(engines["derived"])["variants"]
        self.assertEqual([variant["derived_bytes"] > 0.9 * weights for variant in variants], [False, False, True])
        self.assertEqual([len(variant["derived_constants"]) for variant in variants], [0, 0, 3])
        self.lathe("merge", *(engines[name] for name in names), "--storeWeights", "-o", self.folder / "merged.engine")
        self.assertEqual((self.folder / "merged.engine").read_bytes(), engines["stored"].read_bytes())

    def test_merging(self):
        names = {"sm_90": "gpu.engine", "cpu-x86_64": "cpu.engine"}
        parts = [self.build(name, f"--target={target}") for target, name in names.items()]
        self.lathe("merge", *parts, "-o", self.folder / "merged.engine")
        fat = self.build("fat.engine", f"--targets={','.join(names)}")
        self.assertEqual((self.folder / "merged.engine").read_bytes(), fat.read_bytes())
        self.assertIn("two plans are for", self.lathe("merge", parts[0], parts[0], "-o", self.folder / "x", status=1))

    # S18, S69, S72: with a runtime in it, and signed.
    def test_with_what_other_plans_have(self):
        engine = self.build("fat.engine", "--targets=sm_90,cpu-x86_64", "--versionCompatible")
        self.lathe("key", "new", self.folder / "our")
        self.lathe("sign", engine, "--key", self.folder / "our.key")
        options = (f"--loadInputs=image:{self.folder / 'image.npy'}", f"--trustedKeys={self.folder / 'our.pub'}")
        self.lathe("run", engine, "--allowHostCode", *options, **NO_GPU)
        self.lathe("run", engine, "--allowHostCode", *options, **GPU)
        self.assertIn("LATHE-4006", self.lathe("run", engine, *options, status=1, **NO_GPU))

    def test_without_a_variant_for_the_machine(self):
        engine = self.build("gpus.engine", "--targets=sm_90,sm_80")
        said = self.lathe("run", engine, f"--loadInputs=image:{self.folder / 'image.npy'}", status=1, **NO_GPU)
        self.assertIn("none of the plan's 2 variants runs here", said)
        self.assertIn("/nowhere/libcuda.so", said)


if __name__ == "__main__":
    unittest.main()
