#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`lathe compare`: errors against f64 and against another program's outputs, and the layers that an accuracy budget keeps wide."""
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"])
LATHE = BUILD / "bin/lathe"
ROOT = pathlib.Path(__file__).resolve().parents[2]


def write_network(path, scales):
    """Products of 16 x 16 weights of these scales, with a sigmoid behind the last."""
    values = np.random.default_rng(1)
    weights = {f"w{i}": values.normal(0, scale, (16, 16)).astype(np.float32) for i, scale in enumerate(scales)}
    nodes = [helper.make_node("MatMul", [f"t{i - 1}" if i else "x", f"w{i}"], [f"t{i}"], name=f"product {i}")
             for i in range(len(scales))]
    nodes.append(helper.make_node("Sigmoid", [f"t{len(scales) - 1}"], ["y"], name="it's the last"))
    graph = helper.make_graph(nodes, "products", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 16])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 16])],
                              [numpy_helper.from_array(value, name) for name, value in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.save(model, path)
    return weights


class Compare(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)
        self.model, self.report = self.folder / "model.onnx", self.folder / "report.json"
        self.x = np.random.default_rng(2).normal(size=(4, 16)).astype(np.float32)
        np.save(self.folder / "x.npy", self.x)
        self.gpu = {"LATHE_CUDA_DRIVER": str(BUILD / "fake_cuda/libfake_cuda_driver.so"),
                    "LATHE_NVRTC": str(BUILD / "fake_cuda/libnvrtc.so"), "LATHE_CACHE_DIR": kept.name}

    def compare(self, *options, status=0, **environment):
        words = (LATHE, "compare", self.model, f"--loadInputs=x:{self.folder / 'x.npy'}", "--json", self.report, *options)
        result = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=os.environ | environment)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def told(self):
        return json.loads(self.report.read_text())

    def test_f64(self):
        """The numbers are those of numpy's doubles."""
        weights = write_network(self.model, [0.25] * 4)
        self.compare("--target=cpu", "--buildBudget=0", "--reference=f64")
        expected = self.x.astype(np.float64)
        for weight in weights.values():
            expected = expected @ weight.astype(np.float64)
        tensors = {tensor["name"]: tensor for tensor in self.told()["tensors"]}
        self.assertIn("t1", tensors)
        engine = self.told()["outputs"][0]
        subprocess.run([LATHE, "run", self.model, f"--loadInputs=x:{self.folder / 'x.npy'}", "--exportOutput", self.folder,
                        "--target=cpu", "--buildBudget=0"], check=True, capture_output=True)
        difference = np.load(self.folder / "y.npy").astype(np.float64) - 1 / (1 + np.exp(-expected))
        self.assertGreater(engine["max_abs"], 0)
        self.assertAlmostEqual(engine["max_abs"], np.abs(difference).max(), delta=1e-12)
        self.assertAlmostEqual(engine["rms"], np.sqrt(np.mean(difference ** 2)), delta=1e-12)
        self.assertGreater(engine["cosine"], 1 - 1e-9)

    def test_casts_do_not_round_in_f64(self):
        values = np.full((4, 16), 1 + 2 ** -14, np.float32)
        graph = helper.make_graph(
            [helper.make_node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16), helper.make_node("Cast", ["h"], ["y"], to=TensorProto.FLOAT)],
            "casts", *[[helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 16])] for name in "xy"])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), self.model)
        np.save(self.folder / "x.npy", values)
        self.compare("--target=cpu")
        self.assertEqual(self.told()["outputs"][0]["max_abs"], 0)
        self.compare("--target=cpu", "--reference=f64")
        self.assertEqual(self.told()["outputs"][0]["max_abs"], 2 ** -14)

    def test_outputs_of_others(self):
        write_network(self.model, [0.25] * 4)
        session = onnxruntime.InferenceSession(self.model, providers=["CPUExecutionProvider"])
        expected = session.run(None, {"x": self.x})[0]
        np.save(self.folder / "y.npy", expected)
        files = f"--loadOutputs=y:{self.folder / 'y.npy'}"
        self.assertIn("the outputs agree", self.compare("--target=cpu", files))
        self.assertLess(self.told()["files"][0]["max_abs"], 1e-6)
        np.save(self.folder / "y.npy", expected + np.float32(0.5))
        self.assertIn("THE OUTPUTS DIFFER", self.compare("--target=cpu", files, status=1))
        self.assertAlmostEqual(self.told()["files"][0]["max_abs"], 0.5, places=5)
        self.assertTrue(self.told()["outputs"][0]["passed"])
        self.assertIn("no output 'z'", self.compare("--target=cpu", f"--loadOutputs=z:{self.folder / 'y.npy'}", status=2))
        np.save(self.folder / "y.npy", expected[:2])
        self.compare("--target=cpu", files, status=1)

    def test_tensors_of_others(self):
        """Each that ONNX Runtime computes and the engine still has."""
        write_network(self.model, [0.25] * 4)
        file = self.folder / "tensors.npz"
        words = (sys.executable, ROOT / "tools/onnxruntime_tensors.py", self.model, file, "--inputs", f"x:{self.folder / 'x.npy'}")
        self.assertIn("5 of 5 tensors", subprocess.run(words, check=True, capture_output=True, text=True).stdout)
        self.assertIn("the outputs agree", self.compare("--target=cpu", f"--loadTensors={file}"))
        tensors = {tensor["name"]: tensor for tensor in self.told()["others"]["tensors"]}
        self.assertTrue({"t0", "t1", "t2"} <= set(tensors), tensors)
        self.assertTrue(all(tensor["passed"] and tensor["elements"] == 64 for tensor in tensors.values()))
        self.assertEqual([tensor["name"] for tensor in self.told()["others"]["outputs"]], ["y"])
        other = dict(np.load(file))
        other["t1"] += np.float32(0.25)
        np.savez(file, **other)
        self.assertIn("the outputs agree", self.compare("--target=cpu", f"--loadTensors={file}"))  # a value inside tells where
        told = {tensor["name"]: tensor for tensor in self.told()["others"]["tensors"]}
        self.assertAlmostEqual(told["t1"]["max_abs"], 0.25, places=5)
        other["y"] += np.float32(0.5)
        np.savez(file, **other)
        self.assertIn("THE OUTPUTS DIFFER", self.compare("--target=cpu", f"--loadTensors={file}", status=1))
        np.savez(file, elsewhere=other["y"])
        self.assertIn("none of the 1 tensors", self.compare("--target=cpu", f"--loadTensors={file}", status=1))

    def test_budget(self):
        """Float16 cannot hold what product 2 computes and product 3 reads; the others need not be wide."""
        write_network(self.model, [0.25, 0.25, 1e6, 1e-7, 0.25, 0.25])
        kept = self.folder / "kept.txt"
        narrow = ("--target=cuda", "--noTF32", "--fp16")
        text = self.compare(*narrow, "--accuracyBudget=1e-2", "--saveLayerPrecisions", kept, **self.gpu)
        self.assertRegex(text, r"layers are settled, \d+ s so far, about \d+ s to go")
        accuracy = self.told()["accuracy"]
        self.assertGreater(accuracy["error_narrow"], 0.1)  # what float16 cannot hold becomes its largest number
        self.assertLessEqual(accuracy["error"], 1e-2)
        self.assertTrue({"product 2", "product 3"} >= set(accuracy["wide"]), accuracy)
        self.assertTrue(accuracy["wide"])
        arguments = shlex.split(kept.read_text())
        self.assertEqual(arguments, shlex.split(accuracy["arguments"]))
        self.compare(*narrow, "--buildBudget=0", "--reference=f64", "--rtol=1e-2", "--atol=1e-2", *arguments, **self.gpu)
        self.compare(*narrow, "--buildBudget=0", "--reference=f64", "--rtol=1e-2", "--atol=1e-2", status=1, **self.gpu)

    def test_budget_that_needs_nothing_or_cannot_be_kept(self):
        write_network(self.model, [0.25] * 3)
        self.compare("--target=cpu", "--fp16", "--accuracyBudget=1e-3")
        self.assertEqual(self.told()["accuracy"]["wide"], [])
        self.assertEqual(self.told()["accuracy"]["builds"], 1)
        self.assertIn("all layers in float32", self.compare("--target=cpu", "--fp16", "--accuracyBudget=0", status=1))

    def test_budget_and_files(self):
        """Both count: what another program computed, and the budget."""
        write_network(self.model, [0.25] * 3)
        expected = onnxruntime.InferenceSession(self.model, providers=["CPUExecutionProvider"]).run(None, {"x": self.x})[0]
        files = f"--loadOutputs=y:{self.folder / 'y.npy'}"
        budget = ("--target=cpu", "--fp16", "--accuracyBudget=1e-3")
        np.save(self.folder / "y.npy", expected)
        self.assertIn("the outputs agree", self.compare(*budget, files))
        np.save(self.folder / "y.npy", expected + np.float32(0.5))
        text = self.compare(*budget, files, status=1)
        self.assertIn("within the budget", text)
        self.assertIn("THE OUTPUTS DIFFER", text)
        self.assertFalse(self.told()["passed"])

    def test_options_that_do_not_fit(self):
        for options in (["--accuracyBudget=1"], ["--saveLayerPrecisions=x"],
                        ["--fp16", "--accuracyBudget=1", "--layerPrecisions=a:fp32"]):
            self.compare("--target=cpu", *options, status=2)


if __name__ == "__main__":
    unittest.main()
