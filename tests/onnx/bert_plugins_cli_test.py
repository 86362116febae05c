#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nodes that name the standard plugins of TensorRT that BERT is made of, against loops that say
what each of them does (in NumPy, one element after the other, in doubles)."""
import unittest

import numpy as np

from plugin_nodes import PluginNodes

F32, F16, I8 = np.float32, np.float16, np.int8


def normalized(rows, gamma, beta, epsilon=2.0**-23):
    rows = rows.astype(np.float64)
    mean, variance = rows.mean(-1, keepdims=True), rows.var(-1, keepdims=True)
    return (rows - mean) / np.sqrt(variance + epsilon) * gamma + beta


CHANNELS_FIRST = (2, "tokens")


class BertPlugins(PluginNodes):
    def normal(self, *shape, dtype=F32):
        return self.random.normal(size=shape).astype(dtype)

    def levels(self, quotients):
        """Rounded to 8 bits. A quotient that lies in the middle between two would test rounding errors."""
        self.assertGreater(np.abs(quotients - np.floor(quotients) - 0.5).min(initial=1), 2e-5)
        return np.clip(np.rint(quotients), -128, 127)

    def test_skip_layer_norm(self):
        op, size = "CustomSkipLayerNormPluginDynamic", 9
        gamma, beta, bias = (self.normal(size) for _ in range(3))
        for version, shape in (("1", (3, 2)), ("5", (1, 1)), ("2", (7,)), ("6", (1,))):
            shape = (*shape, size, 1, 1)
            x, skip = self.normal(*shape), self.normal(*shape)
            for fields in ({}, {"bias": bias}):
                y = normalized((x + skip)[..., 0, 0].astype(np.float64) + fields.get("bias", 0), gamma, beta).reshape(shape)
                self.expect(op, {"x": x, "skip": skip}, {"y": y.astype(F32)}, type_id=0, gamma=gamma.tolist(), beta=beta.tolist(),
                            plugin_version=version, **({"ld": size} if version in "15" else {}),
                            **{k: v.tolist() for k, v in fields.items()})
            half = {"x": x.astype(F16), "skip": skip.astype(F16)}
            y = normalized((half["x"].astype(np.float64) + half["skip"])[..., 0, 0], gamma, beta).reshape(shape)
            self.expect(op, half, {"y": y.astype(F16)}, type_id=1, gamma=gamma.tolist(), beta=beta.tolist(), plugin_version=version,
                        tolerance=1e-2)
        fields = dict(type_id=0, gamma=gamma.tolist(), beta=beta.tolist())
        x = self.normal(3, 2, size, 1, 1)
        self.refuse(op, {"x": x, "skip": x}, "5 dimensions", "expected 4: tokens", plugin_version="2", **fields)
        self.refuse(op, {"x": x, "skip": x}, "type_id 3", **{**fields, "type_id": 3})
        self.refuse(op, {"x": x, "skip": x}, "version 9", "versions 1 to 8", plugin_version="9", **fields)
        self.refuse(op, {"x": x, "skip": x}, "field 'beta'", type_id=0, gamma=gamma.tolist())

    def test_skip_layer_norm_of_levels(self):
        """Between dequantised tensors, as models have it; the plugin's parameters are halves."""
        op, size = "CustomSkipLayerNormPluginDynamic", 37
        gamma, beta = self.normal(size, dtype=F16), self.normal(size, dtype=F16)
        fields = dict(gamma=gamma.astype(F32).tolist(), beta=beta.astype(F32).tolist())
        axes = dict.fromkeys(("x", "skip"), CHANNELS_FIRST)
        for version, tokens in (("3", 5), ("7", 1), ("4", 3), ("8", 11)):
            x, skip = ((self.random.integers(-128, 128, (1, size, tokens, 1)) * F32(s)).astype(F32) for s in (0.03, 0.11))
            total = (x.astype(np.float64) + skip)[0, :, :, 0].T
            y = normalized(total, gamma.astype(np.float64), beta.astype(np.float64)).T[None, :, :, None]
            expected = {"y": y.astype(F32)}
            if version in "48":
                expected["sum"] = (x + skip).astype(F32)
            self.expect(op, {"x": x, "skip": skip}, expected, axes=axes, plugin_version=version, **fields)
        self.refuse(op, {"x": x.astype(I8), "skip": skip}, "type i8", "DequantizeLinear before", plugin_version="3", axes=axes, **fields)
        self.refuse(op, {"x": x, "skip": skip}, "no bias", plugin_version="3", axes=axes, bias=[0.5] * size, **fields)
        x, skip = self.normal(3, 2, size, 1, 1), self.normal(3, 2, size, 1, 1)
        y = normalized((x.astype(np.float64) + skip)[..., 0, 0] + beta, gamma.astype(np.float64), beta.astype(np.float64))
        self.expect(op, {"x": x, "skip": skip}, {"y": y[..., None, None].astype(F32)}, type_id=2, bias=fields["beta"], **fields)

    SIZE, WORDS, SEGMENTS, PLACES = 7, 11, 2, 6

    def embedding_fields(self):
        sizes = {"layernorm_beta": (), "layernorm_gamma": (), "word_embeddings": (self.WORDS,),
                 "token_type_embeddings": (self.SEGMENTS,), "position_embeddings": (self.PLACES,)}
        tables = {"bert_embeddings_" + name: self.normal(*shape, self.SIZE) for name, shape in sizes.items()}
        return list(tables.values()), {name: x.ravel().tolist() for name, x in tables.items()}

    def tokens(self, *shape):
        return [self.random.integers(0, n, shape).astype(np.int32) for n in (self.WORDS, self.SEGMENTS)]

    def test_embeddings(self):
        op = "CustomEmbLayerNormPluginDynamic"
        (beta, gamma, words, segments, places), fields = self.embedding_fields()
        for version, length, batch in (("1", 5, 3), ("6", 1, 1)):
            word, segment = self.tokens(length, batch)
            mask = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 0], [1, 1, 0], [1, 0, 0]], np.int32)[:length, :batch]
            total = words[word] + segments[segment] + places[:length, None]
            sizes = np.array([next((s for s in range(length) if mask[s, b] == 0), length) for b in range(batch)], np.int32)
            for half in (0, 1):
                y = normalized(total, gamma, beta, 0)[..., None, None].astype(F16 if half else F32)
                self.expect(op, {"word": word, "segment": segment, "m": mask}, {"y": y, "mask": sizes[:, None]}, output_fp16=half,
                            mha_type_id=half, plugin_version=version, tolerance=2e-2 if half else 1e-5,
                            **fields)
            self.assertNotIn("full_mask", self.build({"word": word, "segment": segment, "m": mask}).stderr)
        inputs = {"word": word, "segment": segment, "m": mask}
        self.model(op, inputs, ["y", "mask"], full_mask=1, **fields)
        self.assertEqual(self.build(inputs).stderr.count("full_mask has no effect"), 1)
        self.refuse(op, inputs, "'mha_type_id' is 3, expected 0 to 2", mha_type_id=3, **fields)
        self.refuse(op, {"word": word, "segment": segment[:, :0], "m": mask}, "input 1", **fields)
        self.refuse(op, {"word": word, "segment": segment, "m": mask}, "2 dimensions", "expected 1", plugin_version="2", **fields)
        del fields["bert_embeddings_word_embeddings"]
        self.refuse(op, {"word": word, "segment": segment, "m": mask}, "'bert_embeddings_word_embeddings'", **fields)

    def test_embeddings_of_packed_sequences(self):
        op = "CustomEmbLayerNormPluginDynamic"
        (beta, gamma, words, segments, places), fields = self.embedding_fields()
        for starts in ([0, 3, 3, 4, 8, 8], [0, 1]):  # empty ones are among them
            starts = np.array(starts, np.int32)
            word, segment = self.tokens(starts[-1])
            total = np.zeros((starts[-1], self.SIZE), F32)
            for begin, end in zip(starts, starts[1:]):
                for s in range(begin, end):
                    total[s] = words[word[s]] + segments[segment[s]] + places[s - begin]
            y = normalized(total, gamma, beta, 0)[..., None, None].astype(F32)
            inputs = {"word": word, "segment": segment, "starts": starts}
            for version, second in (("2", np.zeros((), np.int32)), ("4", np.zeros((), np.int32)), ("3", total[..., None, None]),
                                    ("5", total[..., None, None])):
                self.expect(op, inputs, {"y": y, "second": second}, constants={"longest": np.zeros(4, np.int32)},
                            axes={"starts": (0, "begins")}, output_fp16=0, plugin_version=version, **fields)

    def test_full_connection(self):
        x, weights = self.normal(3, 2, 5, 1, 1), self.normal(5, 4)
        y = (x[..., 0, 0].astype(np.float64) @ weights)[..., None, None]
        for type_id, dtype, tolerance in ((0, F32, 1e-5), (1, F16, 1e-2)):
            self.expect("CustomFCPluginDynamic", {"x": x.astype(dtype)}, {"y": y.astype(dtype)}, type_id=type_id, out_dims=4,
                        W=weights.ravel().tolist(), tolerance=tolerance)
        self.refuse("CustomFCPluginDynamic", {"x": x}, "'W'", type_id=0, out_dims=4)

    def test_gelu(self):
        x, bias = self.normal(3, 2, 5, 1, 1), self.normal(5)
        for given, add, fields in ((x, 0, {}), (x, bias[:, None, None], {"bias": bias.tolist()}),
                                   (x[..., 0, 0], bias, {"bias": bias.tolist()})):
            z = given.astype(np.float64) + add
            y = 0.5 * z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3)))
            self.expect("CustomGeluPluginDynamic", {"x": given}, {"y": y.astype(F32)}, type_id=0, **fields)
        self.refuse("CustomGeluPluginDynamic", {"x": x}, "type_id 2", "0 (float32) and 1 (half) are", type_id=2)

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
        self.refuse(op, {"x": x.reshape(shape)}, "input 0", "but must have [n, 4, 45, 1, 1]: length, batch, hidden_size x 3, 1, 1",
                    **{**self.QKV, "hidden_size": 15})
        self.refuse(op, {"x": x.reshape(shape)}, "a multiple of num_heads, 5", **{**self.QKV, "num_heads": 5})

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

    def test_qkv_to_context_of_levels(self):
        """Versions 3 and 6: queries of all heads, then keys, then values, each with its channels first."""
        op, size, heads, scale, probs, result = "CustomQKVToContextPluginDynamic", 15, 3, 0.07, 1 / 127, 0.013
        for version, starts in (("3", [0, 3, 3, 4, 8]), ("6", [0, 1]), ("6", [0, 0, 5, 5])):
            starts = np.array(starts, np.int32)
            x = self.random.integers(-40, 41, (1, 3 * size, starts[-1], 1)).astype(I8)
            real = (x * np.float64(F32(scale)))[0, :, :, 0].T.reshape(-1, 3, heads, size // heads)
            y = np.zeros((starts[-1], heads, size // heads))
            for begin, end in zip(starts, starts[1:]):
                q, k, v = (real[begin:end, i] for i in range(3))
                for i, h in np.ndindex(end - begin, heads):
                    weights = np.exp(k[:, h] @ q[i, h] / np.sqrt(size // heads))
                    weights = self.levels(weights / weights.sum() / np.float64(F32(probs))) * np.float64(F32(probs))
                    y[begin + i, h] = weights @ v[:, h]
            y = self.levels(y.reshape(-1, size).T[None, :, :, None] / np.float64(F32(result))).astype(I8)
            fields = dict(hidden_size=size, num_heads=heads, use_int8_scale_max=1, plugin_version=version)
            explicit = dict(use_explicit_int8=1, input_qkv_scale=scale, output_ctx_scale=result)
            given = dict(axes={"x": CHANNELS_FIRST}, constants={"longest": np.zeros(4, np.int32)}, order=["x", "starts", "longest"])
            self.expect(op, {"x": x, "starts": starts}, {"y": y}, dq_probs=probs, **given, **fields, **explicit)
        floats = (x * F32(scale)).astype(F32)
        self.refuse(op, {"x": x, "starts": starts}, "type i8", "DequantizeLinear before", **given, **fields)
        self.refuse(op, {"x": floats, "starts": starts}, "expected i8 with use_explicit_int8", **given, **fields, **explicit)
        self.refuse(op, {"x": x, "starts": starts}, "'output_ctx_scale' is 0, expected more than 0", **given, **fields,
                    **{**explicit, "output_ctx_scale": 0.0})
        self.refuse(op, {"x": x, "starts": starts}, "2 inputs, expected 3", axes={"x": CHANNELS_FIRST}, **fields, **explicit)
        self.refuse(op, {"x": x, "starts": starts}, "'dq_probs' is 0", dq_probs=0.0, **given, **fields, **explicit)

    def test_qkv_to_context_between_dequantised_tensors(self):
        """What stands around the plugin rounds its tensors; inside, nothing is rounded."""
        op, x, starts = "CustomQKVToContextPluginDynamic", self.normal(6, 3, 3, 4), np.array([0, 4, 4, 6], np.int32)
        y = np.zeros((6, 12))
        for begin, end in zip(starts, starts[1:]):
            y[begin:end] = self.attended(x[begin:end], end - begin)
        longest, begins = np.zeros(4, np.int32), {"starts": (0, "begins")}
        self.expect(op, {"x": x.reshape(6, -1, 1, 1), "starts": starts}, {"y": y.reshape(6, -1, 1, 1).astype(F32)},
                    constants={"mask": longest, "longest": longest}, axes=begins, order=["x", "mask", "starts", "longest"], has_mask=1,
                    var_seqlen=1, plugin_version="2", **{**self.QKV, "type_id": 2})
        inputs = {"x": x.transpose(2, 1, 3, 0).reshape(1, 36, 6, 1), "starts": starts}
        self.expect(op, inputs, {"y": y.T[None, :, :, None].astype(F32)}, constants={"longest": longest}, dq_probs=0.01,
                    axes={"x": CHANNELS_FIRST, **begins}, plugin_version="3", hidden_size=12, num_heads=3)
        self.assertIn("dq_probs has no effect", self.build(inputs).stderr)


if __name__ == "__main__":
    unittest.main()
