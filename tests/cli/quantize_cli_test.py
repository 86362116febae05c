#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`lathe quantize`: its models beside ONNX Runtime, its data, its refusals, and the layers that an accuracy budget keeps in floats."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"])
LATHE = BUILD / "bin/lathe"
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/digits"
sys.path.insert(0, str(EXAMPLE))
import train  # noqa: E402


def run_onnxruntime(path, feeds):
    """Without fusions, which round in other places: what the model says."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0]


def info(name, dims, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, dims)


def save(path, nodes, inputs, outputs, constants, opset=17, **options):
    graph = helper.make_graph(nodes, "network", inputs, outputs,
                              [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9 if opset >= 19 else 8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path, **options)


class Quantize(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)
        self.model, self.out, self.report = (self.folder / name for name in ("model.onnx", "out.onnx", "report.json"))
        self.random = np.random.default_rng(5)

    def quantize(self, *options, data, model=None, status=0):
        words = (LATHE, "quantize", model or self.model, "--data", data, "-o", self.out, "--json", self.report, *options)
        result = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def lathe(self, model, feeds):
        for name, value in feeds.items():
            np.save(self.folder / f"{name}.run.npy", value)
        files = ",".join(f"{name}:{self.folder / name}.run.npy" for name in feeds)
        shapes = ",".join(f"{name}:{'x'.join(map(str, value.shape))}" for name, value in feeds.items())
        subprocess.run([LATHE, "run", model, f"--loadInputs={files}", "--exportOutput", self.folder / "run", "--target=cpu",
                        f"--optShapes={shapes}", "--buildBudget=0"], check=True, capture_output=True)
        return np.load(self.folder / "run" / f"{onnx.load(model).graph.output[0].name}.npy")

    def layers(self):
        return {layer["name"]: layer for layer in json.loads(self.report.read_text())["layers"]}

    def kinds(self):
        return [node.op_type for node in onnx.load(self.out).graph.node]

    def residual(self, opset=17):
        """Two inputs; a residual, weights that a transposition makes, a product of two tensors, sizes that are read."""
        self.constants = {
            "w1": self.random.normal(0, 0.3, (8, 3, 3, 3)).astype(np.float32), "b1": self.random.normal(0, 1, 8).astype(np.float32),
            "w2": self.random.normal(0, 0.2, (8, 8, 3, 3)).astype(np.float32),
            "w3": self.random.normal(0, 0.2, (10, 8)).astype(np.float32), "b3": self.random.normal(0, 1, 10).astype(np.float32),
            "w4": self.random.normal(0, 0.2, (10, 12)).astype(np.float32)}
        node = helper.make_node
        nodes = [node("Conv", ["x", "w1", "b1"], ["c1"], "first", pads=[1] * 4), node("Relu", ["c1"], ["r1"], "relu"),
                 node("Conv", ["r1", "w2"], ["c2"], "second", pads=[1] * 4), node("Add", ["c2", "r1"], ["s"], "sum"),
                 node("Shape", ["s"], ["sizes"], "sizes"), node("GlobalAveragePool", ["s"], ["g"], "mean"),
                 node("Flatten", ["g"], ["f"], "flat"), node("Gemm", ["f", "w3", "b3"], ["d"], "dense", transB=1),
                 node("Transpose", ["w4"], ["w4t"], "turn"), node("Transpose", ["w4t"], ["w4tt"], "turn_back"),
                 node("MatMul", ["d", "w4tt"], ["m"], "wide"), node("MatMul", ["m", "scale"], ["y"], "computed")]
        save(self.model, nodes, [info("x", ["n", 3, 8, 8]), info("scale", [12, 4])], [info("y", ["n", 4]), info("sizes", [4], 7)],
             self.constants, opset)

    def feeds(self, samples):
        return {"x": self.random.normal(0, 1, (samples, 3, 8, 8)).astype(np.float32),
                "scale": self.random.normal(0, 1, (12, 4)).astype(np.float32)}

    def batches(self, count):
        """A folder with a folder for each batch."""
        for i in range(count):
            folder = self.folder / "data" / str(i)
            folder.mkdir(parents=True)
            for name, value in self.feeds(2).items():
                np.save(folder / f"{name}.npy", value)
        return self.folder / "data"

    def test_digits(self):
        """At most 0.5 % of held-out images fewer are right, in Lathe and in ONNX Runtime."""
        images, held_out, _, labels = train.split()
        np.savez(self.folder / "images.npz", image=images[:512])
        plain = EXAMPLE / "digits.onnx"
        right = (run_onnxruntime(plain, {"image": held_out}).argmax(1) == labels).mean()
        for options in ([], ["--method=minmax"], ["--method=percentile"], ["--types=u8,i8", "--asymmetric"], ["--per-tensor"]):
            self.quantize(*options, data=self.folder / "images.npz", model=plain)
            onnx.checker.check_model(self.out, full_check=True)
            for probabilities in (run_onnxruntime(self.out, {"image": held_out}), self.lathe(self.out, {"image": held_out})):
                self.assertGreaterEqual((probabilities.argmax(1) == labels).mean(), right - 0.005, options)
        self.assertEqual(sum(layer["quantized"] for layer in self.layers().values()), 5)

    def test_documented_commands(self):
        page = (EXAMPLE.parents[1] / "docs/quantization.md").read_text()
        section = page.split("\n## Quantising a model\n")[1].split("\n## ")[0]
        lines = [line for block in re.findall(r"```sh\n(.*?)```", section, re.DOTALL) for line in block.splitlines()]
        self.assertEqual(len(lines), 4)
        shutil.copy(EXAMPLE / "digits.onnx", self.folder)
        np.savez(self.folder / "images.npz", image=train.split()[0][:64])
        for line in lines:
            subprocess.run(line, shell=True, check=True, cwd=self.folder, capture_output=True,
                           env=os.environ | {"PATH": f"{LATHE.parent.absolute()}:{os.environ['PATH']}", "LATHE_TARGET": "cpu"})

    def test_answers_and_names(self):
        self.residual()
        data, feeds = self.batches(4), self.feeds(2)
        plain = run_onnxruntime(self.model, feeds)
        names = {name for node in onnx.load(self.model).graph.node for name in node.output}
        for types in ("i8,i8", "u8,i8", "i8,u8", "u8,u8"):
            for options in ([], ["--asymmetric"], ["--per-tensor", "--method=minmax"]):
                self.quantize(f"--types={types}", *options, data=data)
                onnx.checker.check_model(self.out, full_check=True)
                model = onnx.load(self.out)
                self.assertTrue(names <= {name for node in model.graph.node for name in node.output})
                self.assertFalse({"w1", "w2", "w3", "b1"} & {tensor.name for tensor in model.graph.initializer})
                got = run_onnxruntime(self.out, feeds)
                self.assertLess(np.abs(got - plain).max(), 0.05 * np.abs(plain).max(), (types, options))
                # A sum that lies between two levels may be rounded to either.
                self.assertLess(np.abs(self.lathe(self.out, feeds) - got).max(), 0.02 * np.abs(plain).max(), (types, options))
        layers = self.layers()
        self.assertEqual([name for name, layer in layers.items() if layer["quantized"]], ["first", "second", "dense", "wide"])
        self.assertIn("two tensors that are computed", layers["computed"]["why"])

    def test_levels(self):
        """Scales and zero points are those of the values; weights have theirs by channel."""
        self.residual()
        data = self.batches(3)
        xs = np.concatenate([np.load(file) for file in data.glob("*/x.npy")])
        self.quantize("--method=minmax", "--types=u8,i8", "--asymmetric", data=data)
        first = self.layers()["first"]
        self.assertAlmostEqual(first["low"], xs.min(), places=6)
        self.assertAlmostEqual(first["scale"], (xs.max() - xs.min()) / 255, places=6)
        self.assertEqual(first["zero_point"], round(-xs.min() / first["scale"]))
        tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(self.out).graph.initializer}
        steps = np.abs(self.constants["w1"]).max((1, 2, 3)) / 127
        np.testing.assert_allclose(tensors["w1_scale"], steps, rtol=1e-6)
        np.testing.assert_array_equal(tensors["w1_quantized"], np.rint(self.constants["w1"] / steps[:, None, None, None].astype(np.float32)))
        self.assertEqual(tensors["b1_quantized"].dtype, np.int32)
        self.quantize("--method=percentile", "--percentile=90", data=data)
        self.assertAlmostEqual(self.layers()["first"]["high"], np.percentile(np.abs(xs), 90), delta=0.02)
        self.quantize("--per-tensor", data=data)
        tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(self.out).graph.initializer}
        self.assertEqual(tensors["w1_scale"].shape, ())

    def test_8_bit_floats(self):
        """Of matrix products: convolutions stay as they are, and so do biases."""
        self.residual(opset=19)
        data, feeds = self.batches(3), self.feeds(2)
        plain = run_onnxruntime(self.model, feeds)
        for options in ([], ["--per-tensor"], ["--method=percentile"]):
            self.quantize("--types=f8e4m3fn,f8e4m3fn", *options, data=data)
            onnx.checker.check_model(self.out, full_check=True)
            got = run_onnxruntime(self.out, feeds)
            self.assertLess(np.abs(got - plain).max(), 0.25 * np.abs(plain).max(), options)  # of three bits, after three products
            self.assertGreater(np.abs(got - plain).max(), 0, options)
            self.assertLess(np.abs(self.lathe(self.out, feeds) - got).max(), 0.02 * np.abs(plain).max(), options)
        layers = self.layers()
        self.assertEqual([name for name, layer in layers.items() if layer["quantized"]], ["dense", "wide"])
        self.assertIn("matrix products alone", layers["first"]["why"])
        self.quantize("--types=f8e4m3fn,f8e4m3fn", data=data)
        dense = self.layers()["dense"]
        self.assertAlmostEqual(dense["scale"], max(-dense["low"], dense["high"]) / 448, places=7)
        tensors = {tensor.name: tensor for tensor in onnx.load(self.out).graph.initializer}
        steps = np.abs(self.constants["w3"]).max(1) / 448
        np.testing.assert_allclose(numpy_helper.to_array(tensors["w3_scale"]), steps, rtol=1e-6)
        levels = tensors["w3_quantized"]
        self.assertEqual(levels.data_type, TensorProto.FLOAT8E4M3FN)
        expected = (self.constants["w3"] / steps[:, None].astype(np.float32)).astype(ml_dtypes.float8_e4m3fn)
        self.assertEqual(levels.raw_data, expected.tobytes())
        self.assertIn("b3", tensors)
        for options, reason in ((["--method=entropy"], "minmax or percentile"), (["--asymmetric"], "no zero point")):
            self.assertIn(reason, self.quantize("--types=f8e4m3fn,f8e4m3fn", *options, data=data, status=1))
        self.residual()
        self.assertIn("8-bit floats need 19 or later",
                      self.quantize("--types=f8e4m3fn,f8e4m3fn", data=data, status=1))

    def test_excluded(self):
        self.residual()
        data = self.batches(2)
        self.quantize("--exclude=sec*", "--exclude=Gemm", data=data)
        self.assertEqual([name for name, layer in self.layers().items() if layer["quantized"]], ["first", "wide"])
        nodes = {node.name: node for node in onnx.load(self.out).graph.node}
        self.assertEqual(list(nodes["second"].input), ["r1", "w2"])
        self.assertIn("no layer that multiplies is called 'third'", self.quantize("--exclude=third", data=data, status=1))
        self.assertIn("nothing is to be quantised", self.quantize("--exclude=*", data=data, status=1))

    def test_data(self):
        """Each way to give the same values finds the same ranges."""
        self.residual()
        feeds = {name: np.stack([value] * 3).reshape(-1, *value.shape[1:]) if name == "x" else value
                 for name, value in self.feeds(2).items()}
        folder = self.folder / "data"
        np.savez(self.folder / "plain.npz", **feeds)
        np.savez_compressed(self.folder / "packed.npz", **feeds)
        (folder / "set").mkdir(parents=True)
        for i, (name, value) in enumerate(feeds.items()):
            (folder / "set" / f"input_{i}.pb").write_bytes(numpy_helper.from_array(value, name).SerializeToString())
        (folder / "set" / "output_0.pb").write_bytes(b"")
        found = []
        for data in (self.folder / "plain.npz", self.folder / "packed.npz", folder, folder / "set"):
            self.quantize(data=data)
            found.append(self.out.read_bytes())
        self.assertEqual(len(set(found)), 1)

    def test_refusals(self):
        self.residual()
        feeds = self.feeds(2)
        file = self.folder / "feeds.npz"

        def refused(reason, status=1, **changes):
            np.savez(file, **{name: value for name, value in (feeds | changes).items() if value is not None})
            self.assertIn(reason, self.quantize(data=file, status=status))

        refused("it has no array 'x'", x=None)
        refused("the model has no input 'z'", z=feeds["x"])
        refused("its shape is 2x3x8x9, but input 'x' has shape ?x3x8x8", x=np.zeros((2, 3, 8, 9), np.float32))
        refused("it holds float64, but input 'x' is float32", x=feeds["x"].astype(np.float64))
        spoilt = feeds["x"].copy()
        spoilt.flat[7] = np.nan
        refused("input 'x' holds nan at element 7", x=spoilt)
        refused("but input 'scale' has shape 12x4", scale=np.zeros((13, 4), np.float32))
        np.save(self.folder / "x.npy", feeds["x"])
        self.assertIn("give a .npz or a folder", self.quantize(data=self.folder / "x.npy", status=2))
        self.assertIn("there is no", self.quantize(data=self.folder / "nowhere", status=2))
        file.write_bytes(file.read_bytes()[:-30])
        self.assertIn("not a .npz file", self.quantize(data=file, status=1))
        np.savez(file, **feeds)
        self.quantize(data=file)
        self.assertIn("is quantised already", self.quantize(data=file, model=self.out, status=1))
        self.residual(opset=11)
        self.assertIn("need 13 or later", self.quantize(data=file, status=1))
        self.quantize("--per-tensor", data=file)
        onnx.checker.check_model(self.out, full_check=True)

    def test_weights_beside_the_file(self):
        self.residual()
        data, other = self.batches(2), self.folder / "other"
        self.quantize(data=data)
        expected = onnx.load(self.out)
        other.mkdir()
        onnx.save(onnx.load(self.model), other / "model.onnx", save_as_external_data=True, location="weights", size_threshold=0)
        self.quantize("--exclude=dense", data=data, model=other / "model.onnx")
        tensors = {tensor.name: tensor for tensor in onnx.load(self.out, load_external_data=False).graph.initializer}
        np.testing.assert_array_equal(numpy_helper.to_array(tensors["w3"]), self.constants["w3"])
        self.quantize(data=data, model=other / "model.onnx")
        feeds = self.feeds(2)
        onnx.save(expected, self.folder / "expected.onnx")
        np.testing.assert_array_equal(run_onnxruntime(self.out, feeds), run_onnxruntime(self.folder / "expected.onnx", feeds))

    def test_budget(self):
        """The layer whose tensor has one large value keeps floats, and no other has to."""
        weights = {f"w{i}": self.random.normal(0, 0.25, (16, 16)).astype(np.float32) for i in range(3)}
        spread = np.ones(16, np.float32)
        spread[3] = 3000
        nodes = [helper.make_node("MatMul", ["x", "w0"], ["a"], "plain"), helper.make_node("Mul", ["a", "spread"], ["wide"], "spread_out"),
                 helper.make_node("Div", ["wide", "spread"], ["even"], "evened"), helper.make_node("MatMul", ["wide", "w1"], ["b"], "sensitive"),
                 helper.make_node("Mul", ["b", "small"], ["c"], "shrunk"), helper.make_node("MatMul", ["even", "w2"], ["d"], "other"),
                 helper.make_node("Add", ["c", "d"], ["y"], "sum")]
        weights["w1"][3] = 0
        save(self.model, nodes, [info("x", ["n", 16])], [info("y", ["n", 16])],
             weights | {"spread": spread, "small": np.float32(1)})
        np.save(self.folder / "x.npy", self.random.normal(0, 1, (64, 16)).astype(np.float32))
        text = self.quantize("--method=minmax", "--accuracyBudget=0.05", "--target=cpu", data=self.folder / "x.npy")
        told = json.loads(self.report.read_text())["accuracy"]
        self.assertEqual(told["wide"], ["sensitive"], told)
        self.assertLessEqual(told["error"], 0.05)
        self.assertGreater(told["error_narrow"], 0.05)
        self.assertIn("sensitive", text)
        self.assertFalse(self.layers()["sensitive"]["quantized"])
        self.assertEqual(list(self.folder.glob("*.trial.onnx")), [])
        x = np.load(self.folder / "x.npy")
        plain, got = (run_onnxruntime(model, {"x": x}) for model in (self.model, self.out))
        self.assertLess(np.abs(got - plain).max(), 0.06 * np.abs(plain).max())


if __name__ == "__main__":
    unittest.main()
