#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PagedAttention of ONNX Runtime's domain, which has no kernel of it for CPUs: beside NumPy, one sequence after the other.
Tables name blocks in random order; what sequences do not use of them is garbage, and so is what blocks hold behind them."""
import re
import unittest

import ml_dtypes
import numpy as np
from onnx import TensorProto
from runtime_nodes import Operand, RuntimeNodes, weights

FLOAT, HALF, INT8, FLOAT8 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT8, TensorProto.FLOAT8E4M3FN
HEADS, SHARED, SIZE, BLOCK = 4, 2, 16, 16
# (past, new tokens) of each sequence; lengths end within blocks and at their ends.
PROMPTS = [[(0, 7)], [(0, 16), (0, 5)], [(0, 1), (0, 33), (0, 0), (0, 15)]]
MIXED = [[(37, 1), (0, 20)], [(15, 1)], [(16, 1), (31, 3), (5, 0), (0, 2)]]
STEPS = [[(37, 1), (0, 1)], [(15, 1)], [(16, 1), (31, 1), (40, 1)]]


def batch(sequences, block=BLOCK, table=3, blocks=14, written=1):
    """`written`: how many of the tokens have a slot, of those that are given."""
    past, new = zip(*sequences) if sequences else ((), ())
    return dict(sequences=len(past), ends=len(past) + 1, tokens=sum(new), table=table, blocks=blocks, past=past, new=new, block=block,
                written=written, seed=len(past))


def starts(dims, at, random):
    return np.cumsum([0, *at["new"]])


def table(dims, at, random):
    random = np.random.default_rng(at["seed"])
    order = random.permutation(at["blocks"])
    rows = random.choice([-1, 99, -7, 0], dims)
    for row, past, new in zip(rows, at["past"], at["new"]):
        count = -(-(past + new) // at["block"])
        row[:count], order = order[:count], order[count:]
    return rows


def pool(dims, at, random):
    values = random.standard_normal(dims)
    large = random.integers(0, max(dims[0], 1))
    values[large : large + 1] *= 100
    return values


def slots(dims, at, random):
    """Those that the table has, which are mostly written."""
    rows = table((at["sequences"], at["table"]), at, np.random.default_rng(at["seed"]))
    numbers = [row[place // at["block"]] * at["block"] + place % at["block"]
               for row, past, new in zip(rows, at["past"], at["new"]) for place in range(past, past + new)]
    return np.where(random.random(dims) < at["written"], np.reshape(numbers, dims), random.choice([-1, -1, -7], dims))


def angles(*dims):
    return weights(*dims, make=lambda dims, sizes, random: random.uniform(-1, 1, dims))


def turned(x, angle, interleaved):
    cosine, sine = angle
    half = len(cosine)
    a, b = (slice(0, 2 * half, 2), slice(1, 2 * half, 2)) if interleaved else (slice(0, half), slice(half, 2 * half))
    y = x.copy()
    y[..., a], y[..., b] = cosine * x[..., a] - sine * x[..., b], cosine * x[..., b] + sine * x[..., a]
    return y


def attended(q, k, v, places, length, how):
    """Of q[tokens, heads, size] at these places, in float64."""
    seen = np.arange(length) <= places[:, None] if how.get("is_causal", 1) else np.ones((len(places), length), bool)
    if how.get("local_window_size", -1) > 0:
        seen &= np.arange(length) > places[:, None] - how["local_window_size"]
    repeat = lambda x: np.repeat(x[:length], HEADS // SHARED, 1)
    scores = np.einsum("qhd,khd->hqk", q, repeat(k)) * how.get("scale", 1 / np.sqrt(q.shape[-1]))
    if cap := how.get("softcap", 0):
        scores = cap * np.tanh(scores / cap)
    scores = np.where(seen, scores, -np.inf)
    if (sink := how.get("sink")) is not None:
        scores = np.concatenate([scores, np.broadcast_to(sink[:, None, None], (*scores.shape[:2], 1))], -1)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hqk,khd->qhd", (e / e.sum(-1, keepdims=True))[..., :length], repeat(v))


def of_heads(scale):
    return scale if scale.size == 1 else scale[:, 0]


def levels(rows, dtype, scale):
    """As a cache of that type has them."""
    if scale is None:
        return rows
    rows = rows.astype(np.float32) / of_heads(scale)
    return np.clip(np.rint(rows), -128, 127) if dtype == np.int8 else np.clip(rows, -448, 448).astype(dtype)


def paged(names, arrays, how):
    """What the operator gives of its inputs."""
    given = dict(zip(names, arrays))
    keys, values = given["key_cache"].copy(), given["value_cache"].copy()
    size, block = keys.shape[3], keys.shape[1]
    rows = [given["query"]] if "key" not in given else [given["query"], given["key"], given["value"]]
    rows = np.concatenate(rows, 1).astype(np.float64)
    rows = rows.reshape(len(rows), rows.shape[1] // size, size)
    q, k, v = rows[:, :HEADS], rows[:, HEADS : HEADS + SHARED], rows[:, HEADS + SHARED :]
    if "q_norm" in given:
        norm = lambda x, scale: x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * scale
        q, k = norm(q, given["q_norm"]), norm(k, given["k_norm"])
    y = np.zeros_like(q)
    for past, begin, end, numbers in zip(given["past"], given["starts"], given["starts"][1:], given["table"]):
        places = past + np.arange(end - begin)
        for token, place in zip(range(begin, end), places):
            if "cosines" in given:
                angle = given["cosines"][place], given["sines"][place]
                q[token], k[token] = turned(q[token], angle, how.get("rotary_interleaved")), turned(k[token], angle, how.get("rotary_interleaved"))
            slot = numbers[place // block] * block + place % block if "slots" not in given else given["slots"][token]
            if slot >= 0:
                keys[slot // block, slot % block] = levels(k[token], keys.dtype, given.get("k_scale"))
                values[slot // block, slot % block] = levels(v[token], values.dtype, given.get("v_scale"))
        length = past + end - begin
        numbers = numbers[: -(-length // block)]
        whole = lambda pool, scale: pool[numbers].reshape(-1, SHARED, size).astype(np.float64) * (1 if scale is None else of_heads(scale))
        if end > begin:
            y[begin:end] = attended(q[begin:end], whole(keys, given.get("k_scale")), whole(values, given.get("v_scale")), places, length,
                                    {**how, "sink": given.get("sink")})
    return [y.reshape(len(y), HEADS * size).astype(given["query"].dtype), keys, values]


NAMES = ["query", "key", "value", "key_cache", "value_cache", "starts", "past", "table", "cosines", "sines", "slots", "sink", "q_norm", "k_norm",
         "k_scale", "v_scale", "bounds"]


class PagedAttention(RuntimeNodes):
    def operands(self, block=BLOCK, packed=False, size=SIZE, dtype=np.float32, tokens="tokens", cache=None, **others):
        widths = [HEADS, SHARED, SHARED] if not packed else [HEADS + 2 * SHARED]
        rows = [Operand(tokens, n * size, dtype=dtype) for n in widths]
        cache = cache or Operand("blocks", block, SHARED, size, make=pool, dtype=dtype)
        given = dict(zip(NAMES, [*rows, *[None] * (3 - len(rows)), cache, cache]))
        given |= dict(starts=Operand("ends", make=starts, dtype=np.int32),
                      past=Operand("sequences", make=lambda dims, at, random: np.array(at["past"]), dtype=np.int32),
                      table=Operand("sequences", "table", make=table, dtype=np.int32), **others)
        given = [given.get(name) for name in NAMES]
        while given[-1] is None:
            given.pop()
        return given

    def attend(self, batches, outputs=3, block=BLOCK, how=None, **given):
        how = how or {}
        operands = self.operands(block, **given)
        names = [name for name, operand in zip(NAMES, operands) if operand]
        sizes = [batch(sequences, block) if isinstance(sequences, list) else sequences for sequences in batches]
        self.check("PagedAttention", operands, sizes, outputs, attention=1, opset=19, expected=lambda *arrays: paged(names, arrays, how),
                   num_heads=HEADS, kv_num_heads=SHARED, **how)

    def test_prompts(self):
        for packed in (False, True):
            self.attend(PROMPTS, packed=packed)

    def test_prompts_behind_others(self):
        self.attend(MIXED)
        self.attend(MIXED, how=dict(scale=0.3, softcap=2.0))

    def test_a_token_for_each_sequence(self):
        """As many rows as sequences, by the name of their dimension."""
        for packed in (False, True):
            self.attend(STEPS, packed=packed, tokens="sequences")
        self.attend([[(30, 2), (7, 0), (0, 1)], [(3, 0), (8, 2)]], tokens="sequences")

    def test_nothing(self):
        """No tokens, no sequences, and sizes that are no others."""
        for packed in (False, True):
            self.attend([MIXED[0], [(5, 0)], [(3, 0), (0, 0)], []], packed=packed)
        self.attend([[(5, 0)]])
        self.attend([STEPS[2], []], tokens="sequences")

    def test_sizes_of_blocks(self):
        for block, blocks in ((32, 8), (256, 5)):
            sizes = [batch(sequences, block, 2, blocks) for sequences in MIXED]
            self.attend(sizes, block=block)
        self.attend([batch(sequences, 32, 2, 8) for sequences in STEPS], block=32, tokens="sequences")

    def test_windows(self):
        for window in (1, 5, 40):
            self.attend(MIXED, how=dict(local_window_size=window))
        self.attend(STEPS, tokens="sequences", how=dict(local_window_size=18))

    def test_both_directions(self):
        self.attend(MIXED, how=dict(is_causal=0))
        self.attend(STEPS, tokens="sequences", how=dict(is_causal=0, local_window_size=18))

    def test_rotary_positions(self):
        for interleaved in (0, 1):
            how = dict(do_rotary=1, rotary_interleaved=interleaved)
            self.attend(MIXED, packed=True, cosines=angles(48, 8), sines=angles(48, 8), how=how)
        self.attend(STEPS, tokens="sequences", cosines=angles(48, 4), sines=angles(48, 4), how=dict(do_rotary=1))

    def test_norms_and_sinks(self):
        self.attend(MIXED, sink=weights(HEADS), q_norm=weights(SIZE), k_norm=weights(SIZE))

    def test_bounds(self):
        """Which say no sizes where they are 0, and more than there is otherwise."""
        for sequences, bounds in ((MIXED[0], [0, 0]), (MIXED[0], [20, 38]), (STEPS[2], [2, 41, 1])):
            operand = Operand(len(bounds), make=lambda dims, at, random: np.array(bounds), dtype=np.int32, constant=True)
            self.attend([sequences], bounds=operand)

    def test_given_slots(self):
        """Of all tokens, of some and of none."""
        for sequences, tokens in ((MIXED[0], "tokens"), (MIXED[2], "tokens"), (STEPS[2], "sequences")):
            sizes = [batch(sequences, written=written) for written in (1, 0.5, 0)] + [batch([], written=0)]
            self.attend(sizes, tokens=tokens, slots=Operand(tokens, make=slots, dtype=np.int32))

    def test_pools_of_no_block(self):
        """Nothing is read or written of them where there are no keys; a table that names blocks is an error."""
        for others in (dict(), dict(slots=Operand("tokens", make=slots, dtype=np.int32))):
            self.attend([MIXED[0], batch([], blocks=0, table=0), batch([], blocks=0), batch([(0, 0)], blocks=0, table=0)], **others)
        self.attend([STEPS[2], batch([], blocks=0)], tokens="sequences", slots=Operand("sequences", make=slots, dtype=np.int32))
        self.fail_to_run(self.operands(), r"'node\w*' \(gather\): gather: index 0 is outside \[-0, 0\)", batch([(0, 0)], blocks=0))

    def test_caches_of_8_bits(self):
        float8 = ml_dtypes.float8_e4m3fn
        for kind, dims, dtype, type in (("PER_TENSOR", (1,), np.int8, INT8), ("PER_CHANNEL", (SHARED, 1, SIZE), np.int8, INT8),
                                        ("PER_TENSOR", (1,), float8, FLOAT8), ("PER_CHANNEL", (SHARED, 1, SIZE), float8, FLOAT8)):
            cache = Operand("blocks", BLOCK, SHARED, SIZE, make=lambda dims, at, random: random.integers(-128, 128, dims), dtype=dtype)
            scales = {name: weights(*dims, make=lambda dims, at, random: random.uniform(0.01, 0.03, dims)) for name in ("k_scale", "v_scale")}
            how = dict(k_quant_type=kind, v_quant_type=kind)
            self.attend(MIXED[2:], [FLOAT, type, type], cache=cache, how=how, **scales)
            self.attend(STEPS[2:], [FLOAT, type, type], cache=cache, how=how, tokens="sequences", **scales)
            self.attend([batch(MIXED[2], written=0.5)], [FLOAT, type, type], cache=cache, how=how,
                        slots=Operand("tokens", make=slots, dtype=np.int32), **scales)

    def test_halves(self):
        self.tolerance = 3e-3
        self.attend(MIXED, [HALF] * 3, dtype=np.float16)
        self.attend(STEPS, [HALF] * 3, dtype=np.float16, tokens="sequences")

    def test_pools_stay_where_they_are(self):
        """They are copied unless input and output are one address, and nothing else writes them."""
        for others in (dict(), dict(slots=Operand("tokens", make=slots, dtype=np.int32))):
            model, _ = self.write("PagedAttention", self.operands(**others), [batch(MIXED[0])], 3, num_heads=HEADS, kv_num_heads=SHARED)
            engine = self.folder / "model.engine"
            code, text = self.lathe("build", model, "-o", engine, "--target=cpu", "--buildBudget=0")
            self.assertEqual(code, 0, text)
            code, text = self.lathe("inspect", engine)
            pools = [line.split()[1:3] for line in text.splitlines() if f" ?x{BLOCK}x{SHARED}x{SIZE} " in line and re.match(r" *\d+ ", line)]
            self.assertEqual(pools, [["copy", "copy"], ["scatter", "scatter"]] * 2, text)

    def test_blocks_that_do_not_exist(self):
        """Where they are used, a CPU says so."""
        operands = self.operands(slots=Operand("tokens", make=lambda dims, at, random: np.full(dims, 14 * BLOCK), dtype=np.int32))
        self.fail_to_run(operands, r"index 14 is outside \[-14, 14\)")
        for number in (99, -1):
            def bad(dims, at, random):
                rows = table(dims, at, random)
                rows[0, 1] = number
                return rows
            operands = self.operands()[:7] + [Operand("sequences", "table", make=bad, dtype=np.int32)]
            self.fail_to_run(operands, r"index (99|4294967295) is outside \[-14, 14\)")

    def fail_to_run(self, operands, pattern, sizes=None):
        model, [arrays] = self.write("PagedAttention", operands, [sizes or batch(MIXED[0])], 3, num_heads=HEADS, kv_num_heads=SHARED)
        files = ",".join(f"x{i}:{self.saved(f'x{i}', x)}" for i, x in enumerate(arrays) if x is not None)
        code, text = self.lathe("run", model, f"--loadInputs={files}", "--target=cpu", "--buildBudget=0")
        self.assertNotEqual(code, 0, text)
        self.assertRegex(text, pattern)

    def test_what_is_refused(self):
        def refuse(text, dtype=np.float32, cache=None, others=None, **attributes):
            operands = self.operands(dtype=dtype, **(others or {}))
            if cache:
                operands[3] = operands[4] = Operand("blocks", BLOCK, SHARED, SIZE, dtype=cache)
            self.refuse("PagedAttention", operands, text, sizes=[batch(MIXED[0])], outputs=3,
                        **{"num_heads": HEADS, "kv_num_heads": SHARED, **attributes})
        refuse("num_heads is 4, expected a multiple of kv_num_heads, 3", kv_num_heads=3)
        refuse("k_scale is given with k_quant_type PER_TENSOR or PER_CHANNEL, and not without", k_quant_type="PER_TENSOR")
        refuse("k_scale is given with k_quant_type PER_TENSOR or PER_CHANNEL, and not without", others=dict(k_scale=weights(1)))
        refuse("v_quant_type is 'PER_HEAD', expected NONE, PER_TENSOR or PER_CHANNEL", v_quant_type="PER_HEAD")
        refuse("a quantised k cache of f32 is not supported; give one of int8 or float8e4m3fn", others=dict(k_scale=weights(1)),
               k_quant_type="PER_TENSOR")
        refuse("k_scale has 4 numbers, expected 32 for k_quant_type 'PER_CHANNEL'", cache=np.int8,
               others=dict(k_scale=weights(4)), k_quant_type="PER_CHANNEL")
        refuse("k_scale has 2 numbers, expected 1 for k_quant_type 'PER_TENSOR'", cache=np.int8,
               others=dict(k_scale=weights(2)), k_quant_type="PER_TENSOR")
        refuse("v_cache_dtype 'int4' is not supported for a cache of f32", v_cache_dtype="int4")
        refuse("kv_cache_layout 'LATENT' is not supported", kv_cache_layout="LATENT")
        refuse("rotary_offset 8 is not supported", rotary_offset=8)
        refuse("do_rotary needs cos_cache and sin_cache", do_rotary=1)
        refuse("local_window_size is 0, expected a size, or -1 for none", local_window_size=0)
        refuse("a k cache of f16 beside a query of f32 is not supported without k_quant_type", cache=np.float16)
        refuse("slot_mapping", others=dict(slots=Operand("tokens", 1, dtype=np.int32)))
        refuse("slot_mapping is f32, expected integers", others=dict(slots=Operand("tokens", dtype=np.float32)))
        refuse("at most half of 16", others=dict(cosines=angles(48, 16), sines=angles(48, 16)), do_rotary=1)
        refuse("the query has rows of 64, which are not those of 6 heads", num_heads=6)


if __name__ == "__main__":
    unittest.main()
