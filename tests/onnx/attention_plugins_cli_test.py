#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nodes that name standard plugins of TensorRT for transformers, against loops that say what each
of them does (in NumPy, one element after the other)."""
import unittest

import numpy as np

from plugin_nodes import PluginNodes


class AttentionPlugins(PluginNodes):
    def test_deformable_attention(self):
        sizes, starts = np.array([[4, 3], [2, 5]], np.int32), np.array([0, 12], np.int32)
        value = self.random.normal(size=(2, 22, 2, 4)).astype(np.float32)
        points = self.random.uniform(-0.1, 1.1, (2, 3, 2, 2, 3, 2)).astype(np.float32)
        weights = self.random.uniform(0, 1, (2, 3, 2, 2, 3)).astype(np.float32)
        y = np.zeros((2, 3, 2, 4), np.float32)
        for n, q, m, level, p, d in np.ndindex(2, 3, 2, 2, 3, 4):
            height, width = sizes[level]
            image = value[n, starts[level]:starts[level] + height * width, m, d].reshape(height, width)
            u, v = points[n, q, m, level, p] * (width, height) - 0.5
            y[n, q, m, d] += weights[n, q, m, level, p] * self.bilinear(image, v, u)
        self.expect("MultiscaleDeformableAttnPlugin_TRT", {"value": value, "points": points, "weights": weights}, {"y": y},
                    constants={"sizes": sizes, "starts": starts}, order=["value", "sizes", "starts", "points", "weights"])

    def test_deformable_attention_of_sizes_that_differ(self):
        """Nothing is left out where inputs are of other levels, heads or points."""
        given = {"value": np.zeros((2, 22, 2, 4), np.float32), "points": np.zeros((2, 3, 2, 2, 3, 2), np.float32),
                 "weights": np.zeros((2, 3, 2, 2, 3), np.float32)}
        known = {"sizes": np.array([[4, 3], [2, 5]], np.int32), "starts": np.array([0, 12], np.int32)}
        names = ["value", "sizes", "starts", "points", "weights"]
        for texts, other in ((("input 3", "levels, points, 2"), {"points": np.zeros((2, 3, 2, 3, 3, 2), np.float32)}),
                             (("input 3", "heads"), {"points": np.zeros((2, 3, 4, 2, 3, 2), np.float32)}),
                             (("input 3", "points, 2"), {"points": np.zeros((2, 3, 2, 2, 3, 3), np.float32)}),
                             (("input 4", "queries"), {"weights": np.zeros((2, 4, 2, 2, 3), np.float32)}),
                             (("input 4 has 6 dimensions, expected 5", "levels, points"), {"weights": np.zeros((2, 3, 2, 2, 3, 1), np.float32)}),
                             (("input 2", "levels"), {"starts": np.array([0, 12, 22], np.int32)}),
                             (("level 1 has 2 x 5 pixels from 13 on", "of 22"), {"starts": np.array([0, 13], np.int32)}),
                             (("level 0 has 4 x 3 pixels from -1 on",), {"starts": np.array([-1, 12], np.int32)}),
                             (("level 1 has 0 x 5",), {"sizes": np.array([[4, 3], [0, 5]], np.int32)})):
            inputs, constants = ({name: other.get(name, x) for name, x in part.items()} for part in (given, known))
            with self.subTest(texts=texts):
                self.refuse("MultiscaleDeformableAttnPlugin_TRT", inputs, *texts, constants=constants, order=names)

    def test_disentangled_attention(self):
        length, span = 23, 6  # distances on both sides of half of the span, and beyond it
        scores, to, back = (self.random.normal(size=(2, length, n)).astype(np.float32) for n in (length, 2 * span, 2 * span))
        middle = span // 2
        y = np.zeros_like(scores)
        for b, q, k in np.ndindex(y.shape):
            bucket = q - k
            if abs(bucket) > middle:
                part = np.log(abs(bucket) / middle) / np.log((2 * span - 1) / middle)
                bucket = int(np.sign(bucket) * (np.ceil(part * (middle - 1) * (1 - 1e-7)) + middle))
            place = min(max(bucket + span, 0), 2 * span - 1)
            y[b, q, k] = (scores[b, q, k] + to[b, q, place] + back[b, k, place]) * 0.25
        self.expect("DisentangledAttention_TRT", {"scores": scores, "to": to, "back": back}, {"y": y}, span=span, factor=0.25,
                    plugin_version="2")
        op, inputs = "DisentangledAttention_TRT", {"scores": scores, "to": to, "back": back}
        self.refuse(op, inputs, "input 1", "but must have [n, 23, 14]: batch, length, twice the span", span=7, factor=0.25)
        self.refuse(op, {**inputs, "back": back[:, :-1]}, "input 2", "[n, 23, 12]", span=span, factor=0.25)
        self.refuse(op, {**inputs, "scores": scores[..., :-1]}, "input 0", "batch, length, length", span=span, factor=0.25)
        self.refuse(op, inputs, "'span' is 3, expected 4 to", span=3, factor=0.25)
        self.refuse(op, inputs, "'factor' is inf, expected a finite number", span=span, factor=np.inf)


if __name__ == "__main__":
    unittest.main()
