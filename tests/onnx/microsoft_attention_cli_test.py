#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attention and MultiHeadAttention of ONNX Runtime's domain, beside ONNX Runtime: one step of attention whatever their
inputs are, unless scores are an output."""
import unittest

import numpy as np
from onnx import TensorProto
from runtime_nodes import Operand, RuntimeNodes, integers, weights

SELF = [dict(batch=2, length=7), dict(batch=1, length=1), dict(batch=3, length=20)]
CROSS = [dict(batch=2, length=7, keys=5), dict(batch=1, length=1, keys=9), dict(batch=3, length=20, keys=1)]
PAST = [dict(batch=2, length=4, past=5, total=9), dict(batch=1, length=1, past=8, total=9), dict(batch=3, length=6, past=1, total=7)]
FLOAT, HALF, BFLOAT = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
HEADS, SIZE = 4, 16
HIDDEN = HEADS * SIZE


def tokens(length="length", *dims, **named):
    return Operand("batch", length, *(dims or (HIDDEN,)), **named)


def mask(*dims):
    """Zeros and ones, of which a row ends in at least a one."""
    def make(dims, sizes, random):
        ones = random.integers(0, 2, dims)
        ones[..., 0] = 1
        return ones
    return Operand(*dims, make=make, dtype=np.int32)


def ends(name, *dims):
    return Operand(*(dims or ("batch",)), make=lambda dims, sizes, random: random.integers(1, sizes[name] + 1, dims), dtype=np.int32)


def reference(q, k, v, bias=0, scale=SIZE**-0.5):
    """Of heads, in float32."""
    q, k, v = (x.astype(np.float32) for x in (q, k, v))
    scores = (np.einsum("bhqd,bhkd->bhqk", q, k) * scale + bias).astype(np.float32)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    y = np.einsum("bhqk,bhkd->bhqd", e / e.sum(-1, keepdims=True), v)
    return y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1)


class MultiHeadAttention(RuntimeNodes):
    def attend(self, operands, sizes, outputs=1, *, attention=1, **attributes):
        self.check("MultiHeadAttention", operands, sizes, outputs, attention=attention, num_heads=HEADS, **attributes)

    def test_forms_of_inputs(self):
        self.attend([tokens(), tokens("keys"), tokens("keys")], CROSS)
        self.attend([tokens(), tokens("keys"), tokens("keys", 96)], CROSS)
        self.attend([tokens(), tokens("keys"), tokens("keys"), weights(3 * HIDDEN)], CROSS, scale=0.3)
        heads = Operand("batch", HEADS, "keys", SIZE)
        for bias in (None, weights(3 * HIDDEN)):  # whose part for queries alone is added
            self.attend([tokens(), heads, heads, bias], CROSS)

    def test_packed_inputs(self):
        """For which ONNX Runtime has no kernel for CPUs."""
        heads = lambda x: x.reshape(*x.shape[:2], HEADS, SIZE).transpose(0, 2, 1, 3)
        parts = lambda x, bias: [(x[:, :, :, i] + bias[i - x.shape[3]].reshape(HEADS, SIZE)).transpose(0, 2, 1, 3) for i in range(x.shape[3])]
        for biases in ([], [None, None, weights(3 * HIDDEN)]):
            thirds = lambda bias: np.split(bias[0], 3) if bias else np.zeros((3, HIDDEN), np.float32)
            self.attend([tokens("length", HEADS, 3, SIZE), *biases], SELF,
                        expected=lambda x, *bias: [reference(*parts(x, thirds(bias)))])
            self.attend([tokens(), tokens("keys", HEADS, 2, SIZE), *biases[1:]], CROSS,
                        expected=lambda q, kv, *bias: [reference(heads(q + thirds(bias)[0]), *parts(kv, thirds(bias)))])

    def test_masks_of_keys(self):
        qkv = [tokens(), tokens("keys"), tokens("keys"), None]
        for padding in (ends("keys"), mask("batch", "keys"), mask("batch", "length", "keys")):
            for bias in (None, Operand("batch", HEADS, "length", "keys"), Operand(1, 1, "length", "keys"), Operand("batch", 1, "length", "keys")):
                self.attend([*qkv, padding, bias], CROSS)
            self.attend([*qkv, padding], CROSS, mask_filter_value=-3.0)
        self.attend([*qkv, None, Operand(1, HEADS, "length", "keys")], CROSS)

    def test_starts_of_packed_sequences_say_no_more_than_their_ends(self):
        def make(dims, sizes, random):
            return np.concatenate([random.integers(1, 8, 2), np.arange(6)])

        def expected(q, k, v, padding):
            split = lambda x: x.reshape(2, -1, HEADS, SIZE).transpose(0, 2, 1, 3)
            hidden = np.where(np.arange(k.shape[1]) < padding[:2, None], 0, -10000)[:, None, None]
            return [reference(split(q), split(k), split(v), hidden)]
        x = Operand(2, "length", HIDDEN)
        self.attend([x, x, x, None, Operand(8, make=make, dtype=np.int32)], [dict(length=7), dict(length=3)], expected=expected)

    def test_past_and_causal(self):
        past = Operand("batch", HEADS, "past", SIZE)
        qkv = [tokens(), tokens(), tokens()]
        for causal in (0, 1):
            self.attend(qkv, SELF, 3, unidirectional=causal)
            for padding in (None, mask("batch", "total"), mask("batch", "length", "total"), ends("total")):
                self.attend([*qkv, None, padding, None, past, past], PAST, 3, unidirectional=causal)
        self.attend([*qkv, weights(3 * HIDDEN), None, Operand(1, HEADS, "length", "total"), past, past], PAST, 3)

    def test_scores(self):
        for causal in (0, 1):
            self.attend([tokens(), tokens(), tokens(), None, mask("batch", "length")], SELF, [FLOAT, None, None, FLOAT],
                        attention=0, unidirectional=causal, defined=lambda at, name: lambda x: np.maximum(x, -1e5))

    def test_halves(self):
        self.tolerance = 3e-3
        split = lambda x: x.reshape(*x.shape[:2], HEADS, SIZE).transpose(0, 2, 1, 3)

        def expected(q, k, v, padding):
            hidden = np.where(padding > 0, 0, -10000)[:, None, None]
            return [reference(split(q), split(k), split(v), hidden).astype(np.float16)]
        half = dict(dtype=np.float16)
        self.attend([tokens(**half), tokens("keys", **half), tokens("keys", **half), None, mask("batch", "keys")], CROSS, [HALF], expected=expected)

    def test_what_is_refused(self):
        def refuse(text, operands, sizes=CROSS, outputs=1, **attributes):
            self.refuse("MultiHeadAttention", operands, text, sizes=sizes, outputs=outputs, **{"num_heads": HEADS, **attributes})
        q, k = tokens(), tokens("keys")
        past, one = Operand("batch", HEADS, "past", SIZE), Operand(1, dtype=np.int32)
        refuse("num_heads is 0", [q, k, k], num_heads=0)
        refuse("the query has 3 dimensions, expected 3 with a key", [q])
        refuse("input 2 is required", [q, k])
        refuse("expected [batch, tokens, 4, 3, size]", [tokens("length", HEADS, 2, SIZE)])
        refuse("the value has 4 dimensions", [q, k, Operand("batch", HEADS, "keys", SIZE)])
        refuse("past_key and past_value are given together", [q, q, q, None, None, None, past], PAST)
        refuse("past_sequence_length is not supported", [q, q, q, None, None, None, past, past, one], PAST)
        refuse("cache_indirection is not supported", [q, q, q, None, None, None, past, past, None, Operand(1, 1, 1, dtype=np.int32)], PAST)
        refuse("key_padding_mask has the shape [2, 6], but must have [2, 5]",
               [Operand(2, 7, HIDDEN), Operand(2, 5, HIDDEN), Operand(2, 5, HIDDEN), None, Operand(2, 6, dtype=np.int32)])
        refuse("one for each of 2 sequences", [Operand(2, 7, HIDDEN)] * 3 + [None, Operand(3, dtype=np.int32)])
        refuse("as many as queries", [Operand(2, 7, HIDDEN), Operand(2, 5, HIDDEN), Operand(2, 5, HIDDEN)], unidirectional=1)


class Attention(RuntimeNodes):
    parts = [weights(24, 3 * HIDDEN), weights(3 * HIDDEN)]

    def attend(self, operands, sizes, outputs=1, **attributes):
        self.check("Attention", operands, sizes, outputs, attention=1, num_heads=HEADS, **attributes)

    def test_weights(self):
        x = tokens("length", 24)
        self.attend([x, *self.parts], SELF)
        self.attend([x, *self.parts], SELF, unidirectional=1, scale=0.3)
        self.attend([x, weights(24, 2 * HIDDEN + 96), weights(2 * HIDDEN + 96)], SELF, qkv_hidden_sizes=[HIDDEN, HIDDEN, 96])
        for bias in (Operand("batch", HEADS, "length", "length"), Operand(1, 1, "length", "length")):
            self.attend([x, *self.parts, None, None, bias], SELF)

    def test_masks(self):
        x = tokens("length", 24)

        def both(dims, sizes, random):
            start = random.integers(0, sizes["length"], sizes["batch"])
            return np.concatenate([random.integers(start + 1, sizes["length"] + 1), start])
        sizes = [{**at, "twice": 2 * at["batch"]} for at in SELF]
        masks = (ends("length"), mask("batch", "length"), mask("batch", "length", "length"), mask("batch", 1), mask(1, 1))
        for padding in masks:
            for causal in (0, 1):
                self.attend([x, *self.parts, padding], SELF, unidirectional=causal)
        self.attend([Operand(3, "length", 24), *self.parts, Operand(6, make=lambda dims, at, random: both(dims, {**at, "batch": 3}, random), dtype=np.int32)],
                    SELF, mask_filter_value=-5.0)
        self.attend([x, *self.parts, ends("length"), None, Operand("batch", HEADS, "length", "length")], SELF)

    def test_past(self):
        x, past = tokens("length", 24), Operand(2, "batch", HEADS, "past", SIZE)
        for causal in (0, 1):
            for padding in (None, mask("batch", "total"), mask("batch", "length", "total"), ends("total")):
                self.attend([x, *self.parts, padding, past], PAST, 2, unidirectional=causal)
        self.attend([x, *self.parts], SELF, 2, unidirectional=1)

    def test_square_mask(self):
        """[batch, 1, rows, rows], for which ONNX Runtime has no kernel for CPUs."""
        def expected(x, w, b, padding, past):
            q, k, v = ((x @ w + b)[..., i * HIDDEN:(i + 1) * HIDDEN].reshape(*x.shape[:2], HEADS, SIZE).transpose(0, 2, 1, 3) for i in range(3))
            k, v = np.concatenate([past[0], k], 2), np.concatenate([past[1], v], 2)
            total, before = k.shape[2], past.shape[3]
            hidden = np.where(padding[:, :, before:total, :total] > 0, 0, -10000)
            return [reference(q, k, v, hidden), np.stack([k, v])]
        self.attend([tokens("length", 24), *self.parts, mask("batch", 1, 12, 12), Operand(2, "batch", HEADS, "past", SIZE)], PAST, 2,
                    expected=expected)

    def test_what_is_refused(self):
        x = Operand(2, 5, 24)
        refuse = lambda text, operands, **attributes: self.refuse("Attention", operands, text, num_heads=HEADS, **attributes)
        refuse("do_rotary is not supported; use RotaryEmbedding", [x, *self.parts], do_rotary=1)
        refuse("past_present_share_buffer is not supported", [x, *self.parts], past_present_share_buffer=1)
        refuse("the weights have 192 columns", [x, *self.parts], qkv_hidden_sizes=[64, 32, 96])
        refuse("past has 4 dimensions, expected 5", [x, *self.parts, None, Operand(2, 2, HEADS, SIZE)])
        refuse("mask_index has the shape [2, 6], but must have [2, 5]", [x, *self.parts, Operand(2, 6, dtype=np.int32)])
        refuse("mask_index has 5 dimensions", [x, *self.parts, Operand(2, 1, 1, 5, 5, dtype=np.int32)])


if __name__ == "__main__":
    unittest.main()
