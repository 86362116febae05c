#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The committed digits network is a trained one, and the layers that trained it have correct gradients."""
import pathlib
import sys
import unittest

import numpy as np
import onnxruntime

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/digits"
sys.path.insert(0, str(EXAMPLE))
import layers  # noqa: E402
import train  # noqa: E402


class Digits(unittest.TestCase):
    def test_held_out_accuracy(self):
        images, labels = train.held_out()
        session = onnxruntime.InferenceSession(EXAMPLE / "digits.onnx", providers=["CPUExecutionProvider"])
        probabilities, = session.run(None, {"image": images})
        self.assertEqual(len(labels), 360)
        self.assertGreaterEqual((probabilities.argmax(1) == labels).mean(), 0.97)

    def test_gradients_match_differences(self):
        rng = np.random.default_rng(3)
        x = rng.standard_normal((2, 4, 4, 4)).astype(np.float32)
        for layer in (layers.Conv(rng, 4, 4), layers.BatchNorm(4), layers.Relu(), layers.MaxPool(),
                      layers.Residual(layers.Conv(rng, 4, 4))):
            y = layer.forward(x, True)
            weight = rng.standard_normal(y.shape).astype(np.float32)
            dx = layer.backward(weight)
            step = rng.standard_normal(x.shape).astype(np.float32) * 1e-3
            plus, minus = layer.forward(x + step, True), layer.forward(x - step, True)
            expected = ((plus - minus).astype(np.float64) * weight).sum() / 2
            self.assertAlmostEqual(float((dx * step).sum()), expected, delta=2e-2 * abs(expected) + 1e-4, msg=layer)


if __name__ == "__main__":
    unittest.main()
