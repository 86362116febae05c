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


if __name__ == "__main__":
    unittest.main()
