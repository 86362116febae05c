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

    def test_skip_layer_norm(self):
        x, skip = (self.random.normal(size=(3, 2, 8, 1, 1)).astype(np.float32) for _ in range(2))
        gamma, beta, bias = (self.random.normal(size=8).astype(np.float32) for _ in range(3))
        for fields in ({}, {"bias": bias}):
            total = (x + skip)[..., 0, 0].astype(np.float64) + fields.get("bias", np.zeros(8))
            y = (total - total.mean(-1, keepdims=True)) / np.sqrt(total.var(-1, keepdims=True) + 2.0**-23) * gamma + beta
            self.expect("CustomSkipLayerNormPluginDynamic", {"x": x, "skip": skip}, {"y": y[..., None, None].astype(np.float32)},
                        type_id=0, ld=8, gamma=gamma.tolist(), beta=beta.tolist(), **{k: v.tolist() for k, v in fields.items()})

    @staticmethod
    def attended(x, keys):
        """[S, N, 3, H] of one sequence, of which the first keys count: [S, N * H]."""
        y = np.zeros((len(x), x.shape[1], x.shape[3]))
        for i, h in np.ndindex(y.shape[:2]) if keys else ():
            weights = np.exp(x[:keys, h, 1].astype(np.float64) @ x[i, h, 0] / np.sqrt(x.shape[3]))
            y[i, h] = weights @ x[:keys, h, 2] / weights.sum()
        return y.reshape(len(x), x.shape[1] * x.shape[3])

    QKV = dict(type_id=0, hidden_size=12, num_heads=3)

    def test_qkv_to_context(self):
        op, shape = "CustomQKVToContextPluginDynamic", (5, 4, -1, 1, 1)
        x = self.random.normal(size=(5, 4, 3, 3, 4)).astype(np.float32)
        y = np.stack([self.attended(x[:, b], 5) for b in range(4)], 1).reshape(shape).astype(np.float32)
        self.expect(op, {"x": x.reshape(shape)}, {"y": y}, has_mask=0, dq_probs=0.01, **self.QKV)
        sizes = np.array([3, 5, 0, 9], np.int32)  # of keys: some, all, none, more than there are
        y = np.stack([self.attended(x[:, b], sizes[b]) for b in range(4)], 1).reshape(shape).astype(np.float32)
        for version, mask in (("1", sizes[:, None]), ("2", sizes), ("4", sizes[:, None]), ("5", sizes)):
            inputs = {"x": x.reshape(shape), "mask": mask}
            self.expect(op, inputs, {"y": y}, fixed={"mask"}, has_mask=1, plugin_version=version, **self.QKV)
        self.expect(op, {"x": x.reshape(shape).astype(np.float16), "mask": sizes}, {"y": y.astype(np.float16)}, fixed={"mask"},
                    tolerance=4e-3, has_mask=1, plugin_version="2", **{**self.QKV, "type_id": 1})
        packed = {"x": x.reshape(shape), "mask": np.zeros((4, 8), np.int32)}
        self.refuse(op, packed, "[4, 8]", "IAttention", fixed={"mask"}, has_mask=1, **self.QKV)
        for version, mask in (("2", sizes[:, None]), ("2", sizes[:3]), ("1", sizes), ("1", sizes[:3, None])):
            self.refuse(op, {**packed, "mask": mask}, "the mask has the shape", fixed={"mask"}, has_mask=1, plugin_version=version,
                        **self.QKV)
        self.refuse(op, {**packed, "mask": sizes.astype(np.float32)}, "input 1", "int32", fixed={"mask"}, has_mask=1,
                    plugin_version="2", **self.QKV)
        self.refuse(op, {"x": x.reshape(shape)}, "1 inputs", "has_mask 1", has_mask=1, **self.QKV)
        self.refuse(op, {"x": x.reshape(shape)}, "version 3", "8-bit", plugin_version="3", hidden_size=12, num_heads=3)

    def test_qkv_to_context_of_packed_sequences(self):
        op, starts = "CustomQKVToContextPluginDynamic", np.array([0, 3, 3, 4, 8, 8, 8, 8, 8], np.int32)
        x = self.random.normal(size=(9, 3, 3, 4)).astype(np.float32)  # a token is behind the last sequence
        y = np.zeros((9, 12))
        for begin, end in zip(starts, starts[1:]):
            y[begin:end] = self.attended(x[begin:end], end - begin)
        rest = {"mask": np.zeros(1, np.int32), "longest": np.zeros(4, np.int32)}
        for type_id, dtype, tolerance in ((0, np.float32, 1e-5), (1, np.float16, 4e-3)):
            for version in "25":
                self.expect(op, {"x": x.reshape(9, -1, 1, 1).astype(dtype), "starts": starts},
                            {"y": y.reshape(9, -1, 1, 1).astype(dtype)}, constants=rest, order=["x", "mask", "starts", "longest"],
                            tolerance=tolerance, has_mask=1, var_seqlen=1, plugin_version=version, **{**self.QKV, "type_id": type_id})
        self.refuse(op, {"x": x.reshape(9, -1, 1, 1)}, "var_seqlen", has_mask=1, var_seqlen=1, plugin_version="1", **self.QKV)


if __name__ == "__main__":
    unittest.main()
