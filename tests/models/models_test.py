#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The model writer: sizes of the published networks, weights by rule, and graphs that ONNX Runtime agrees are sound."""
import pathlib
import sys
import unittest

import numpy as np
import onnx
import onnxruntime

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/models"))
import weights  # noqa: E402
import write  # noqa: E402

# Trained parameters as published, batch normalisation's running statistics not counted.
PARAMETERS = {"resnet50": 25557032, "mobilenet_v2": 3504872, "efficientnet_b0": 5288548, "yolov8n": 3157200,
              "s3d": 8320048, "lstm_2x256": 1052672, "gru_512_bidirectional": 3151872}


def trained(model):
    return sum(int(np.prod(t.dims)) for t in model.graph.initializer
               if not t.name.endswith(("running_mean", "running_var")) and not t.name.startswith("val_"))


def run(model, seed):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    entry = session.get_inputs()[0]
    shape = [d if isinstance(d, int) else 1 for d in entry.shape]
    data = np.random.default_rng(seed).standard_normal(shape, np.float32)
    return session.run(None, {entry.name: data})[0]


def plain_uniform(seed, low, high, i):
    """weights.uniform for one element, in Python's own integers."""
    mask = 2**64 - 1
    z = (seed + (i + 1) * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return np.float32(low + (high - low) * (((z ^ (z >> 31)) >> 40) / 2**24))


class Models(unittest.TestCase):
    def test_parameter_counts(self):
        for network, expected in PARAMETERS.items():
            self.assertEqual(trained(write.build(network, "dynamo")), expected, network)

    def test_rule_is_what_its_description_says(self):
        values = weights.uniform(7, -0.5, 1.5, (2, 3)).ravel()
        self.assertEqual(list(values), [plain_uniform(7, -0.5, 1.5, i) for i in range(6)])

    def test_weightless_models_hold_no_weights(self):
        model = write.build("resnet50")
        self.assertLess(len(model.SerializeToString()), 100_000)
        model = weights.fill(write.build("mobilenet_v2", "dynamo"))
        again = weights.fill(onnx.load_from_string(write.build("mobilenet_v2", "dynamo").SerializeToString()))
        self.assertEqual(model, again)

    def test_every_network_runs_and_sees_its_input(self):
        for network in PARAMETERS:
            for dialect in write.DIALECTS:
                with self.subTest(network=network, dialect=dialect):
                    model = weights.fill(write.build(network, dialect, batch="batch"))
                    onnx.checker.check_model(model)
                    first, second = run(model, 1), run(model, 2)
                    self.assertTrue(np.isfinite(first).all())
                    self.assertGreater(np.abs(first - second).mean(), 1e-3 * first.std())

    def test_dialects_differ_as_exporters_do(self):
        def ops(model):
            return {node.op_type for node in model.graph.node}

        torchscript, dynamo = ops(write.build("yolov8n")), ops(write.build("yolov8n", "dynamo"))
        self.assertIn("Constant", torchscript)
        self.assertNotIn("Constant", dynamo)
        self.assertIn("BatchNormalization", dynamo)
        self.assertNotIn("BatchNormalization", torchscript)
        functions = write.build("yolov8n", "dynamo", opset=23, functions=True)
        self.assertEqual([f.name for f in functions.functions], ["aten_silu"])
        with self.assertRaises(ValueError):
            write.build("resnet50", "torchscript", opset=18)


if __name__ == "__main__":
    unittest.main()
