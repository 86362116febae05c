#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GroupQueryAttention of ONNX Runtime's domain, beside ONNX Runtime, with sizes that follow from a mask as
onnxruntime-genai writes it: one step of attention, for prompts and for tokens behind them, of sequences of several
lengths. What sequences do not have, rows behind their end, is not compared."""
import subprocess
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from runtime_nodes import LATHE, Operand, RuntimeNodes, weights

FLOAT, HALF, INT8 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT8
HEADS, SHARED, SIZE = 4, 2, 16
# Sequences of the first prompt have one length: what padded queries see is not defined.
PROMPT = [dict(batch=2, length=7, total=7), dict(batch=1, length=1, total=1), dict(batch=3, length=12, total=12)]
GROWING = [dict(batch=2, length=1, past=6, total=7), dict(batch=1, length=4, past=5, total=9), dict(batch=3, length=1, past=11, total=12)]
BUFFER = [dict(batch=2, length=1, past=16, total=7), dict(batch=1, length=4, past=16, total=9), dict(batch=3, length=12, past=16, total=12),
          dict(batch=3, length=1, past=16, total=16)]


def padding(dims, sizes, random):
    """Ones of each sequence, as many as the longest has in one; all in prompts."""
    batch, total = dims
    lengths = random.integers(max(1, total // 2), total + 1, batch)
    lengths[0] = total
    if sizes["length"] == total or batch == 1:
        lengths[:] = total
    return np.arange(total) < lengths[:, None]


BEFORE = [helper.make_node("ReduceSum", ["x20", "axes"], ["count"], keepdims=0), helper.make_node("Sub", ["count", "one"], ["last"]),
          helper.make_node("Cast", ["last"], ["seqlens_k"], to=TensorProto.INT32), helper.make_node("Shape", ["x20"], ["shape"]),
          helper.make_node("Gather", ["shape", "one"], ["second"], axis=0),
          helper.make_node("Cast", ["second"], ["total_length"], to=TensorProto.INT32)]
for name, value in (("axes", [1]), ("one", 1)):
    BEFORE.insert(0, helper.make_node("Constant", [], [name], value=onnx.numpy_helper.from_array(np.array(value, np.int64))))
INNER = {5: "seqlens_k", 6: "total_length"}
QKV = [Operand("batch", "length", HEADS * SIZE), *[Operand("batch", "length", SHARED * SIZE)] * 2]
PACKED = [Operand("batch", "length", (HEADS + 2 * SHARED) * SIZE), None, None]
PAST = [Operand("batch", SHARED, "past", SIZE)] * 2
NONE = [None, None]


def angles(*dims):
    return weights(*dims, make=lambda dims, sizes, random: random.uniform(-1, 1, dims))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class GroupQueryAttention(RuntimeNodes):
    def attend(self, sizes, qkv=QKV, past=NONE, caches=NONE, positions=None, bias=None, sink=None, others=(), **named):
        operands = [*qkv, *past, None, None, *caches, positions, bias, sink, *others]
        operands += [None] * (20 - len(operands)) + [Operand("batch", "total", make=padding, dtype=np.int64, hidden=True)]

        def defined(at, name):
            if name == "y0":
                return lambda y: y
            return lambda y: y[:1, :, :at["total"]]  # of the longest sequence
        self.check("GroupQueryAttention", operands, sizes, named.pop("outputs", 3), before=BEFORE, inner=INNER, defined=defined,
                   attention=1, num_heads=HEADS, kv_num_heads=SHARED, **named)

    def test_prompts(self):
        for qkv in (QKV, PACKED):
            self.attend(PROMPT, qkv)
        self.attend(PROMPT, scale=0.3, softcap=2.0)
        self.attend(PROMPT, bias=Operand(1, HEADS, "length", "total"))

    def test_caches_that_grow(self):
        for qkv in (QKV, PACKED):
            self.attend(GROWING, qkv, PAST)
        self.attend(GROWING, QKV, PAST, bias=Operand("batch", 1, "length", "total"), softcap=3.0)

    def test_buffers(self):
        for qkv in (QKV, PACKED):
            self.attend(BUFFER, qkv, PAST)

    def test_rotary_positions(self):
        each = Operand("batch", "length", make=lambda dims, at, random: random.integers(0, 16, dims), dtype=np.int64)
        caches = [angles(16, 8), angles(16, 8)]
        for interleaved in (0, 1):
            for sizes, past in ((PROMPT, NONE), (GROWING, PAST), (BUFFER, PAST)):
                self.attend(sizes, PACKED, past, caches, do_rotary=1, rotary_interleaved=interleaved)
            self.attend(GROWING, QKV, PAST, caches, each, do_rotary=1, rotary_interleaved=interleaved)

    def test_part_of_a_head_turns(self):
        size = 32
        qkv = [Operand("batch", "length", (HEADS + 2 * SHARED) * size), None, None]
        self.attend(GROWING, qkv, [Operand("batch", SHARED, "past", size)] * 2, [angles(16, 8), angles(16, 8)], do_rotary=1)

    def test_windows(self):
        for window in (1, 3, 20):
            self.attend(PROMPT, local_window_size=window)
            self.attend(GROWING, QKV, PAST, local_window_size=window)
            self.attend(BUFFER, QKV, PAST, local_window_size=window)

    def test_both_directions(self):
        self.attend(PROMPT, causal=0)
        self.attend(BUFFER, QKV, PAST, causal=0)

    def test_sinks(self):
        for sizes, past in ((PROMPT, NONE), (BUFFER, PAST)):
            self.attend(sizes, QKV, past, sink=weights(HEADS))
            self.attend(sizes, QKV, past, smooth_softmax=1)
        self.attend(GROWING, QKV, PAST, sink=weights(HEADS), local_window_size=3, bias=Operand("batch", 1, "length", "total"))

    def test_normalised_queries_and_keys(self):
        """For which ONNX Runtime has no kernel for CPUs."""
        def expected(q, k, v, *rest):
            norm = lambda x, scale: x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * scale
            heads = lambda x, n: x.reshape(*x.shape[:2], n, SIZE).transpose(0, 2, 1, 3)
            q, k, v = norm(heads(q, HEADS), rest[0]), norm(heads(k, SHARED), rest[1]), heads(v, SHARED)
            scores = np.einsum("bhqd,bhkd->bhqk", q, np.repeat(k, HEADS // SHARED, 1)) / np.sqrt(SIZE)
            scores = np.where(np.tri(scores.shape[-1], dtype=bool), scores, -np.inf)
            y = softmax(scores) @ np.repeat(v, HEADS // SHARED, 1)
            return [x.astype(np.float32) for x in (y.transpose(0, 2, 1, 3).reshape(*y.shape[:1], y.shape[2], -1), k, v)]
        self.attend(PROMPT, others=[None, None, weights(SIZE), weights(SIZE)], expected=expected)

    def test_halves(self):
        self.tolerance = 3e-3
        half = lambda operand: operand and Operand(*operand.dims, dtype=np.float16)
        for sizes, past in ((PROMPT, NONE), (GROWING, PAST)):
            self.attend(sizes, [half(x) for x in PACKED], [half(x) for x in past], outputs=[HALF] * 3)

    def test_caches_of_8_bits(self):
        past = [Operand("batch", SHARED, "past", SIZE, make=lambda dims, at, random: random.integers(-128, 128, dims), dtype=np.int8)] * 2
        for kind, dims in (("PER_TENSOR", (1,)), ("PER_CHANNEL", (SHARED, 1, SIZE))):
            scales = [weights(*dims, make=lambda dims, at, random: random.uniform(0.01, 0.03, dims)) for _ in range(2)]
            for sizes in (GROWING, BUFFER):
                self.attend(sizes, past=past, others=scales, outputs=[FLOAT, INT8, INT8], k_quant_type=kind,
                            v_quant_type=kind, kv_cache_bit_width=8)

    def test_sizes_are_inputs(self):
        """Of one engine for each, as its dimensions are those of the value of an input."""
        for sizes in BUFFER + GROWING:
            count = Operand("batch", make=lambda dims, at, random: np.full(dims, at["total"] - 1), dtype=np.int32)
            total = Operand(make=lambda dims, at, random: at["total"], dtype=np.int32)
            model, [arrays] = self.write("GroupQueryAttention", [*QKV, *PAST, count, total], [sizes], 3, num_heads=HEADS, kv_num_heads=SHARED)
            session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
            feeds = {f"x{i}": x for i, x in enumerate(arrays)}
            wanted = session.run(None, feeds)
            for name, value in feeds.items():
                np.save(self.folder / f"{name}.npy", value)
            files = ",".join(f"{name}:{self.folder / name}.npy" for name in feeds)
            result = subprocess.run([LATHE, "run", model, f"--loadInputs={files}", "--exportOutput", self.folder / "out", "--target=cpu",
                                     "--buildBudget=0"], capture_output=True, text=True)
            self.assertEqual(result.returncode, 0, result.stderr)
            for i, y in enumerate(wanted):
                got = np.load(self.folder / "out" / f"y{i}.npy")
                self.assertEqual(got.shape, y.shape)
                rows = slice(None) if i == 0 else (slice(None), slice(None), slice(sizes["total"]))
                np.testing.assert_allclose(got[rows], y[rows], rtol=0, atol=1e-5)

    def test_what_is_refused(self):
        def refuse(text, operands=(), at=PROMPT, outputs=3, **attributes):
            given = [*QKV, None, None, None, None, *operands]
            given += [None] * (20 - len(given)) + [Operand("batch", "total", make=padding, dtype=np.int64, hidden=True)]
            self.refuse("GroupQueryAttention", given, text, sizes=at, outputs=outputs, before=BEFORE, inner=INNER,
                        **{"num_heads": HEADS, "kv_num_heads": SHARED, **attributes})
        refuse("num_heads is 4, expected a multiple of kv_num_heads, 3", kv_num_heads=3)
        refuse("k_scale is given with k_quant_type PER_TENSOR or PER_CHANNEL, and not without", k_quant_type="PER_TENSOR")
        refuse("kv_cache_bit_width 4 is not supported; give a cache of 8 bits or of floats", kv_cache_bit_width=4)
        refuse("sliding_window_cache is not supported; give a cache of all tokens", sliding_window_cache=1, local_window_size=4)
        refuse("output_qk is not supported", outputs=4, qk_output=1)
        refuse("do_rotary needs cos_cache and sin_cache", do_rotary=1)
        refuse("cos_cache and sin_cache are given together", [angles(16, 8)], do_rotary=1)
        refuse("the last one known and at most half of 16", [angles(16, 16), angles(16, 16)], do_rotary=1)
        refuse("local_window_size is 4, which needs causal", causal=0, local_window_size=4)
        refuse("the query has rows of 64, which are not those of 6 heads", num_heads=6)


if __name__ == "__main__":
    unittest.main()
