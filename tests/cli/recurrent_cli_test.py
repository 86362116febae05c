#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""LSTM, GRU and RNN with open length and batch: one engine of each model, run at several sizes and compared with ONNX
Runtime; and the same models on an emulated GPU against their plain evaluation."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"])
EMULATED = {"LATHE_CUDA_DRIVER": str(BUILD / "fake_cuda/libfake_cuda_driver.so"),
            "LATHE_NVRTC": str(BUILD / "fake_cuda/libnvrtc.so")}
SIZES = ((1, 1), (5, 3), (40, 2))  # steps, batch
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
INPUT, HIDDEN = 6, 20


def lathe(*words, **variables):
    result = subprocess.run([BUILD / "bin/lathe", *map(str, words)], capture_output=True, text=True,
                            env=os.environ | variables)
    if result.returncode:
        raise AssertionError(f"lathe {words[0]} ended with {result.returncode}:\n{result.stdout}{result.stderr}")
    return result.stdout


class Model:
    """Layers on top of each other, as exporters write them: Y is transposed and reshaped for the next one."""

    def __init__(self, op, layers=1, direction="forward", lengths=False, states=False, batch_first=False, **attributes):
        self.rng, self.nodes, self.weights = np.random.default_rng(1), [], []
        self.shapes = {"x": ("batch", "steps", INPUT) if batch_first else ("steps", "batch", INPUT)}
        directions = 2 if direction == "bidirectional" else 1
        inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shapes["x"])]
        if lengths:
            self.shapes["lengths"] = ("batch",)
            inputs.append(helper.make_tensor_value_info("lengths", TensorProto.INT32, ["batch"]))
        if states:
            self.shapes["state"] = (directions, "batch", HIDDEN)
            inputs.append(helper.make_tensor_value_info("state", TensorProto.FLOAT, self.shapes["state"]))
        x, width = "x", INPUT
        if batch_first:
            x = self.node("Transpose", ["x"], "first", perm=[1, 0, 2])
        self.weights.append(numpy_helper.from_array(np.array([0, 0, -1]), "shape"))
        outputs = []
        for layer in range(layers):
            gates = GATES[op] * HIDDEN
            names = [x, self.weight(f"w{layer}", directions, gates, width), self.weight(f"r{layer}", directions, gates, HIDDEN),
                     self.weight(f"b{layer}", directions, 2 * gates), "lengths" if lengths else "", "state" if states else ""]
            names += ["state"] if states and op == "LSTM" else []
            outputs = [f"y{layer}", f"h{layer}"] + ([f"c{layer}"] if op == "LSTM" else [])
            self.nodes.append(helper.make_node(op, names, outputs, hidden_size=HIDDEN, direction=direction, **attributes))
            moved = self.node("Transpose", [f"y{layer}"], f"moved{layer}", perm=[0, 2, 1, 3])
            x, width = self.node("Reshape", [moved, "shape"], f"out{layer}"), directions * HIDDEN
        if batch_first:
            x = self.node("Transpose", [x], "last", perm=[1, 0, 2])
        outputs = [x, *outputs[1:]]
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(self.nodes, "layers", inputs, infos, self.weights)
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    def weight(self, name, *dims):
        self.weights.append(numpy_helper.from_array(self.rng.uniform(-0.3, 0.3, dims).astype(np.float32), name))
        return name

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def dims(self, steps, batch):
        return {name: tuple({"steps": steps, "batch": batch}.get(d, d) for d in shape) for name, shape in self.shapes.items()}

    def sizes(self, steps, batch):
        return ",".join(f"{name}:" + "x".join(map(str, dims)) for name, dims in self.dims(steps, batch).items())

    def data(self, steps, batch):
        def make(name, dims):
            if name == "lengths":
                return np.sort(self.rng.integers(1, steps + 1, dims))[::-1].astype(np.int32)
            return self.rng.standard_normal(dims, np.float32)
        return {name: make(name, dims) for name, dims in self.dims(steps, batch).items()}


MODELS = {
    "lstm": lambda: Model("LSTM"),
    "lstm, stacked": lambda: Model("LSTM", layers=2, direction="bidirectional", batch_first=True),
    "lstm, states": lambda: Model("LSTM", direction="reverse", states=True, lengths=True),
    "lstm, functions": lambda: Model("LSTM", activations=["HardSigmoid", "Softsign", "Relu"], activation_alpha=[0.25],
                                     activation_beta=[0.4], clip=1.5, input_forget=1),
    "gru": lambda: Model("GRU", layers=2, linear_before_reset=1),
    "gru, reset before": lambda: Model("GRU", direction="bidirectional", states=True),
    "gru, lengths": lambda: Model("GRU", direction="bidirectional", linear_before_reset=1, lengths=True, batch_first=True),
    "rnn": lambda: Model("RNN", layers=3),
    "rnn, relu": lambda: Model("RNN", direction="bidirectional", activations=["Relu", "ScaledTanh"],
                               activation_alpha=[1.5], activation_beta=[0.5], lengths=True),
}


class Recurrent(unittest.TestCase):
    def compare(self, model, folder):
        path, engine = folder / "model.onnx", folder / "model.engine"
        onnx.save(model.model, path)
        lathe("build", path, "-o", engine, f"--minShapes={model.sizes(1, 1)}", f"--optShapes={model.sizes(5, 3)}",
              f"--maxShapes={model.sizes(40, 3)}", "--buildBudget=0")
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        for steps, batch in SIZES:
            data = model.data(steps, batch)
            for name, array in data.items():
                np.save(folder / f"{name}.npy", array)
            lathe("run", engine, "--loadInputs=" + ",".join(f"{name}:{folder / name}.npy" for name in data),
                  "--exportOutput", folder / "out")
            for output, expected in zip(session.get_outputs(), session.run(None, data)):
                got = np.load(folder / "out" / f"{output.name}.npy")
                self.assertEqual(got.shape, expected.shape)
                self.assertLess(np.abs(got - expected).max(), 2e-6, f"{output.name}, {steps} steps, batch {batch}")

    def test_on_the_cpu(self):
        for name, make in MODELS.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                self.compare(make(), pathlib.Path(folder))

    def test_layers_on_top_of_each_other_are_not_copied(self):
        with tempfile.TemporaryDirectory() as folder:
            path, engine = pathlib.Path(folder, "model.onnx"), pathlib.Path(folder, "model.engine")
            model = Model("LSTM", layers=2, direction="bidirectional")
            onnx.save(model.model, path)
            report = lathe("build", path, "-o", engine, f"--minShapes={model.sizes(1, 1)}",
                           f"--optShapes={model.sizes(5, 3)}", f"--maxShapes={model.sizes(40, 3)}", "--buildBudget=0",
                           "--verbose")
            self.assertNotRegex(lathe("inspect", engine), r"\n +\d+ +eval ", report)

    def test_on_an_emulated_gpu(self):
        for name in ("lstm, stacked", "gru, lengths", "rnn, relu"):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                path, model = pathlib.Path(folder, "model.onnx"), MODELS[name]()
                onnx.save(model.model, path)
                lathe("compare", path, f"--shapes={model.sizes(4, 3)}", "--target=cuda", "--buildBudget=0", "--noTF32",
                      "--rtol=1e-5", "--atol=1e-5", LATHE_CACHE_DIR=folder, **EMULATED)

    def test_errors_name_what_is_wrong(self):
        for change, words in (({"activations": ["Sigmoid", "Tanh"]}, "2 activations, expected 3"),
                              ({"activations": ["Sigmoid", "Tanh", "Gelu"]}, "activation 'Gelu' is unknown"),
                              ({"activation_alpha": [0.5]}, "more than its activations take"),
                              ({"layout": 2}, "layout is 2"),
                              ({"direction": "sideways"}, "direction 'sideways'")):
            with self.subTest(words), tempfile.TemporaryDirectory() as folder:
                path, model = pathlib.Path(folder, "model.onnx"), Model("LSTM", **change)
                onnx.save(model.model, path)
                with self.assertRaisesRegex(AssertionError, words):
                    lathe("build", path, "-o", pathlib.Path(folder, "model.engine"))


if __name__ == "__main__":
    unittest.main()
