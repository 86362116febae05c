#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators that ONNX Runtime's optimiser puts in place of patterns, beside ONNX Runtime: normalisations, GELUs,
products and rotary positions."""
import re
import unittest

import numpy as np
from onnx import TensorProto
from runtime_nodes import Operand, RuntimeNodes, integers, weights

ROWS = [dict(batch=2, length=7), dict(batch=1, length=1), dict(batch=3, length=20)]
FLOAT, HALF, INT = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT32


def rows(*dims, **named):
    return Operand("batch", "length", *(dims or (48,)), **named)


def uniform(low, high):
    return lambda dims, sizes, random: random.uniform(low, high, dims)


class Normalizations(RuntimeNodes):
    def test_rms_normalization_by_its_older_name(self):
        for domain in ("", "com.microsoft"):
            x, scale = rows(6, 8), weights(8)
            # ONNX Runtime has it in the default domain alone.
            expected = None if domain == "" else lambda x, s: [x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * s]
            self.check("SimplifiedLayerNormalization", [x, scale], ROWS, domain=domain, expected=expected, stash_type=1)
        self.check("SimplifiedLayerNormalization", [x, weights(6, 8)], ROWS, domain="", axis=2, epsilon=0.01)
        root = lambda x, s: 1 / np.sqrt((x**2).mean((2, 3), keepdims=True) + np.float32(0.01))
        self.check("SimplifiedLayerNormalization", [x, weights(6, 8)], ROWS, 2, domain="", axis=2, epsilon=0.01,
                   expected=lambda x, s: [x * root(x, s) * s, root(x, s)])

    def test_scale_of_another_type(self):
        self.tolerance = 1e-3
        x, scale = rows(48), weights(48, dtype=np.float16)
        self.check("SimplifiedLayerNormalization", [x, scale], ROWS, [HALF], domain="",
                   expected=lambda x, s: [(x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * s).astype(np.float16)])

    def test_layer_normalization_before_version_17(self):
        self.check("LayerNormalization", [rows(), weights(48), weights(48)], ROWS, domain="", opset=14)

    def test_skip_layer_normalization(self):
        x, one = rows(), weights(48)
        for skip in (rows(), Operand(1, "length", 48), Operand("length", 48)):
            self.check("SkipLayerNormalization", [x, skip, one, weights(48)], ROWS)
        self.check("SkipLayerNormalization", [x, x, one, weights(48), weights(48)], ROWS, [FLOAT, None, None, FLOAT], epsilon=1e-3)
        self.check("SkipLayerNormalization", [x, x, one, None, weights(48)], ROWS)
        self.check("SkipSimplifiedLayerNormalization", [x, x, one], ROWS)
        self.check("SkipSimplifiedLayerNormalization", [x, x, one, weights(48)], ROWS, [FLOAT, None, None, FLOAT], epsilon=1e-3)
        tokens = Operand("length", 48)
        self.check("SkipSimplifiedLayerNormalization", [tokens, tokens, one], ROWS)

    def test_statistics(self):
        def layer(x, skip, gamma, beta):
            s = x + skip
            mean, root = s.mean(-1, keepdims=True), 1 / np.sqrt(s.var(-1, keepdims=True) + np.float32(1e-12))
            return [(s - mean) * root * gamma + beta, mean, root, s]

        def rms(x, skip, gamma):
            s = x + skip
            root = 1 / np.sqrt((s**2).mean(-1, keepdims=True) + np.float32(1e-12))
            return [s * root * gamma, root, s]
        self.check("SkipLayerNormalization", [rows(), rows(), weights(48), weights(48)], ROWS, 4, expected=layer)
        self.check("SkipSimplifiedLayerNormalization", [rows(), rows(), weights(48)], ROWS, [FLOAT, None, FLOAT, FLOAT], expected=rms)

    def test_halves(self):
        self.tolerance = 2e-3
        def layer(x, skip, gamma, beta):
            s = x.astype(np.float32) + skip
            y = (s - s.mean(-1, keepdims=True)) / np.sqrt(s.var(-1, keepdims=True) + 1e-12) * gamma + beta
            return [y.astype(np.float16), s.astype(np.float16)]
        half = dict(dtype=np.float16)
        self.check("SkipLayerNormalization", [rows(**half), rows(**half), weights(48, **half), weights(48, **half)], ROWS,
                   [HALF, None, None, HALF], expected=layer)

    def test_embeddings(self):
        words, segments = integers(0, 30, "batch", "length"), integers(0, 2, "batch", "length")
        tables = [weights(30, 24), weights(40, 24)]
        parts = [weights(24), weights(24)]
        mask = Operand("batch", "length", dtype=np.int32,
                       make=lambda dims, sizes, random: np.arange(dims[1]) < random.integers(1, dims[1] + 1, (dims[0], 1)))
        self.check("EmbedLayerNormalization", [words, segments, *tables, weights(2, 24), *parts], ROWS, [FLOAT, INT], epsilon=1e-5)
        self.check("EmbedLayerNormalization", [words, segments, *tables, weights(2, 24), *parts, mask], ROWS, [FLOAT, INT, FLOAT])
        self.check("EmbedLayerNormalization", [words, None, *tables, None, *parts], ROWS, [FLOAT, INT])
        for places in (integers(0, 40, "batch", "length"), integers(0, 40, 1, "length")):
            self.check("EmbedLayerNormalization", [words, None, *tables, None, *parts, mask, places], ROWS, [FLOAT, INT], mask_index_type=1)

    def test_groups(self):
        sizes = [dict(n=2, h=5, w=3), dict(n=1, h=1, w=9), dict(n=3, h=8, w=8)]
        affine = [weights(12), weights(12)]

        def normalized(x, gamma, beta, last, silu):
            x = x if last else x.transpose(0, 2, 3, 1)
            groups = x.reshape(*x.shape[:3], 4, 3).astype(np.float64)
            mean, variance = groups.mean((1, 2, 4), keepdims=True), groups.var((1, 2, 4), keepdims=True)
            y = ((groups - mean) / np.sqrt(variance + 1e-5)).reshape(x.shape) * gamma + beta
            y = y / (1 + np.exp(-y)) if silu else y
            return (y if last else y.transpose(0, 3, 1, 2)).astype(np.float32)
        for last, silu in ((1, 1), (1, 0), (0, 1)):
            x = Operand("n", "h", "w", 12) if last else Operand("n", 12, "h", "w")
            self.check("GroupNorm", [x, *affine], sizes, groups=4, activation=silu, channels_last=last,
                       expected=lambda x, g, b: [normalized(x, g, b, last, silu)])
            for skip in (x, Operand("n", 12), Operand("n", 1, 1, 12) if last else x):
                def summed(x, g, b, skip, bias):
                    skip = skip if skip.ndim == 4 else skip[:, None, None] if last else skip[:, :, None, None]
                    s = x + skip + (bias if last else bias[:, None, None])
                    return [normalized(s, g, b, last, silu), s]
                self.check("SkipGroupNorm", [x, *affine, skip, weights(12)], sizes, 2, groups=4, activation=silu, channels_last=last,
                           expected=summed)
        self.tolerance = 2e-3
        self.check("GroupNorm", [Operand("n", "h", "w", 12, dtype=np.float16), *affine], sizes, [HALF], groups=4, activation=1,
                   expected=lambda x, g, b: [normalized(x, g, b, True, True).astype(np.float16)])

    def test_what_is_refused(self):
        x, one = rows(), weights(48)
        self.refuse("SkipSimplifiedLayerNormalization", [x, x, one], "output 1, the mean", sizes=ROWS, outputs=2)
        self.refuse("SkipLayerNormalization", [Operand(2, 3, 48), Operand(2, 4, 48), one], "3", "4")
        self.refuse("SkipLayerNormalization", [Operand(1, 3, 48), Operand(2, 3, 48), one], "the input plus skip has the shape [2, 3, 48]")
        self.refuse("EmbedLayerNormalization", [integers(0, 3, 2, 4), integers(0, 2, 2, 4), weights(3, 8), weights(4, 8), None, weights(8), weights(8)],
                    "segment_ids and segment_embedding")
        self.refuse("GroupNorm", [Operand(2, 12, 5), weights(12), weights(12)], "the input has 3 dimensions, expected 4", groups=4, activation=0)
        self.refuse("GroupNorm", [Operand(2, 5, 5, 12), weights(12), weights(12)], "activation is 2", groups=4, activation=2)


class Pointwise(RuntimeNodes):
    def test_gelu(self):
        for name, operands in (("Gelu", [rows()]), ("FastGelu", [rows()]), ("FastGelu", [rows(), weights(48)]),
                               ("BiasGelu", [rows(), weights(48)]), ("QuickGelu", [rows()])):
            self.check(name, operands, ROWS)
        self.check("QuickGelu", [rows()], ROWS, alpha=0.5)
        self.check("QuickGelu", [rows()], ROWS, alpha=1.0)

        def split(x, bias):
            a, b = np.split(x + bias, 2, -1)
            gelu = np.vectorize(lambda v: 0.5 * v * (1 + __import__("math").erf(v / 2**0.5)))
            return [(a * gelu(b)).astype(np.float32)]
        self.check("BiasSplitGelu", [rows(), weights(48)], ROWS, expected=split)

    def test_what_is_refused(self):
        self.refuse("BiasGelu", [Operand(2, 48), Operand(2, 48)], "the bias has 2 dimensions, expected 1")
        self.refuse("BiasGelu", [Operand(2, 48), weights(32)], "48", "32")
        self.refuse("BiasGelu", [Operand(2, 48)], "input 1 is required")
        self.refuse("BiasSplitGelu", [Operand(2, 47), weights(47)], "known and even")
        self.refuse("FusedGemm", [Operand(2, 8), weights(8, 3)], "activation 'Sine' is not supported", activation="Sine")


class Products(RuntimeNodes):
    def test_fused_matmul(self):
        a, b = Operand("batch", 4, "length", 16), Operand("batch", 4, 16, "length")
        self.check("FusedMatMul", [a, b], ROWS, alpha=0.125)
        self.check("FusedMatMul", [a, a], ROWS, transB=1)
        self.check("FusedMatMul", [b, b], ROWS, transA=1, alpha=2.0)
        self.check("FusedMatMul", [b, a], ROWS, transA=1, transB=1)
        self.check("FusedMatMul", [a, weights(16, 24)], ROWS)
        rows_first, columns_first = Operand("length", "batch", 4, 16), Operand(16, "batch", 4, "length")
        self.check("FusedMatMul", [rows_first, b], ROWS, transBatchA=1)
        self.check("FusedMatMul", [rows_first, rows_first], ROWS, transBatchA=1, transBatchB=1, transB=1)
        self.check("FusedMatMul", [columns_first, columns_first], ROWS, transBatchA=1, transBatchB=1, transA=1)
        self.check("FusedMatMul", [Operand("batch", "length", 16), weights(16)], ROWS, transB=1)

    def test_fused_gemm_and_convolution(self):
        x = Operand("batch", 16)
        for name, numbers in (("Relu", {}), ("LeakyRelu", dict(activation_alpha=0.3)), ("Sigmoid", {}), ("Tanh", {}),
                              ("HardSigmoid", dict(activation_alpha=0.3, activation_beta=0.4))):
            self.check("FusedGemm", [x, weights(24, 16), weights(24)], ROWS, transB=1, alpha=0.5, beta=2.0, activation=name, **numbers)
        image, w = Operand("batch", 3, 9, 9), weights(8, 3, 3, 3)
        for name, numbers in (("Relu", []), ("LeakyRelu", [0.3]), ("Clip", [-0.5, 0.5]), ("HardSigmoid", [0.3, 0.4])):
            numbers = dict(activation_params=numbers) if numbers else {}
            self.check("FusedConv", [image, w, weights(8)], ROWS, pads=[1] * 4, activation=name, **numbers)
        self.check("FusedConv", [image, w, weights(8), Operand("batch", 8, 9, 9)], ROWS, pads=[1] * 4, activation="Relu")


class Rotary(RuntimeNodes):
    def test_positions(self):
        caches = [weights(40, 8, make=uniform(-1, 1)), weights(40, 8, make=uniform(-1, 1))]
        first = Operand(1, make=lambda dims, sizes, random: [3], dtype=np.int64)
        each = integers(0, 40, "batch", "length", dtype=np.int64)
        for interleaved in (0, 1):
            for positions in (first, each):
                self.check("RotaryEmbedding", [rows(64), positions, *caches], ROWS, interleaved=interleaved)
                self.check("RotaryEmbedding", [Operand("batch", 4, "length", 16), positions, *caches], ROWS, interleaved=interleaved)
                self.check("RotaryEmbedding", [rows(96), positions, *caches], ROWS, interleaved=interleaved, num_heads=4,
                           rotary_embedding_dim=16)
        self.check("RotaryEmbedding", [rows(64), each, *caches], ROWS, is_packed_batching=1)

    def test_what_is_refused(self):
        caches = [weights(40, 8), weights(40, 8)]
        x, positions = Operand(2, 5, 64), integers(0, 40, 2, 5, dtype=np.int64)
        refuse = lambda text, operands, **attributes: self.refuse("RotaryEmbedding", operands, text, **attributes)
        refuse("rank 3 or 4", [Operand(5, 64), positions, *caches])
        refuse("rotary_embedding_dim needs num_heads", [x, positions, *caches], rotary_embedding_dim=16)
        refuse("rotary_embedding_dim is 8, but cos_cache has rows of 8, expected 4", [x, positions, *caches], num_heads=4, rotary_embedding_dim=8)
        refuse("input 2 has 1 dimensions", [x, positions, weights(40), weights(40)])
        refuse("scale is 2", [x, positions, *caches], scale=2.0)


class Experts(RuntimeNodes):
    SIZES = [dict(tokens=7), dict(tokens=1), dict(tokens=40)]
    tokens, scores = Operand("tokens", 24), Operand("tokens", 5)

    def products(self, inner, fused=1):
        """The first two with their biases, of five experts."""
        small = lambda *dims: weights(*dims, make=uniform(-0.3, 0.3))
        return [small(5, fused * inner, 24), small(5, fused * inner), small(5, 24, inner), small(5, 24)]

    def test_activations(self):
        for name in ("relu", "silu", "identity"):
            self.check("MoE", [self.tokens, self.scores, *self.products(40)], self.SIZES, activation_type=name, k=2)
        first, _, second, _ = self.products(33)
        self.check("MoE", [self.tokens, self.scores, first, None, second], self.SIZES, k=1)
        self.tolerance = 2e-3  # ONNX Runtime's GELU is one by tanh
        self.check("MoE", [self.tokens, self.scores, *self.products(40)], self.SIZES, activation_type="gelu", k=3)

    def test_routing(self):
        x = [Operand("batch", "length", 24), self.scores, *self.products(40)]
        sizes = [dict(at, tokens=at["batch"] * at["length"]) for at in ROWS]
        for normalizes in (0, 1):
            self.check("MoE", x, sizes, k=2, normalize_routing_weights=normalizes)

    def test_swiglu(self):
        numbers = dict(activation_type="swiglu", k=2, activation_alpha=1.5, activation_beta=0.5, swiglu_limit=0.4)
        x = [self.tokens, self.scores]
        self.check("MoE", [*x, *self.products(40, 2)], self.SIZES, swiglu_fusion=1, **numbers)

        def expected(split):
            def of(x, scores, first, first_bias, second, second_bias, *third):
                y = np.zeros_like(x)
                for row, token in enumerate(x):
                    shares = np.exp(scores[row]) / np.exp(scores[row]).sum()
                    for expert in np.argsort(-scores[row])[:2]:
                        gate, up = split(first[expert] @ token + first_bias[expert], token, expert, *third)
                        gate, up = np.minimum(gate, 0.4), np.clip(up, -0.4, 0.4)
                        inner = gate / (1 + np.exp(-1.5 * gate)) * (up + 0.5)
                        y[row] += shares[expert] * (second[expert] @ inner + second_bias[expert])
                return [y]
            return of
        halves = lambda made, token, expert: np.split(made, 2)
        apart = lambda made, token, expert, w, b: (made, w[expert] @ token + b[expert])
        self.check("MoE", [*x, *self.products(40, 2)], self.SIZES, swiglu_fusion=2, expected=expected(halves), **numbers)
        third = self.products(40)[:2]
        self.check("MoE", [*x, *self.products(40), *third], self.SIZES, expected=expected(apart), **numbers)

    def test_third_product_is_a_factor(self):
        def expected(x, scores, first, first_bias, second, second_bias, third):
            best, y = np.argmax(scores, -1), np.zeros_like(x)
            for row, expert in enumerate(best):
                made = first[expert] @ x[row] + first_bias[expert]
                share = np.exp(scores[row, expert]) / np.exp(scores[row]).sum()
                y[row] = share * (second[expert] @ (made / (1 + np.exp(-made)) * (third[expert] @ x[row])) + second_bias[expert])
            return [y]
        operands = [self.tokens, self.scores, *self.products(40), self.products(40)[0]]
        self.check("MoE", operands, self.SIZES, expected=expected, activation_type="silu", k=1)

    @staticmethod
    def levels(packed, bits):
        """Codes of rows that begin with a byte each."""
        fields = [packed >> shift & (1 << bits) - 1 for shift in range(0, 8, bits)]
        return np.stack(fields, -1).reshape(*packed.shape[:-1], -1).astype(np.float32)

    def quantized(self, bits, block, zeros):
        """Weights, scales and biases of both products, 64 of each inside, and what NumPy makes of them."""
        codes = lambda *dims: Operand(*dims, make=lambda dims, sizes, random: random.integers(0, 256, dims), dtype=np.uint8, constant=True)
        small = lambda *dims: weights(*dims, make=uniform(0.005, 0.01))
        blocks = lambda k: (k // block,) if block else ()
        product = lambda n, k: [codes(4, n, k * bits // 8), small(4, n, *blocks(k)), weights(4, n)]
        zero = lambda n, k: codes(4, n, -(-k // block * bits // 8)) if block else codes(4, n * bits // 8)
        x = [Operand("tokens", 32), Operand("tokens", 4), *product(64, 32), *product(32, 64)]
        x += [None, None, None, zero(64, 32), zero(32, 64)] if zeros else []

        def matrices(w, s, z=None):
            w = self.levels(w, bits)
            s = s[..., None] if s.ndim == 2 else s
            z = np.full(s.shape, 1 << bits - 1) if z is None else self.levels(z, bits)[..., :s.shape[-1] if block else None].reshape(s.shape)
            each = w.reshape(*s.shape, -1)
            return ((each - z[..., None]) * s[..., None]).reshape(w.shape)

        def expected(x, scores, w1, s1, b1, w2, s2, b2, z1=None, z2=None, weights=None):
            first, second, y = matrices(w1, s1, z1), matrices(w2, s2, z2), np.zeros_like(x)
            for row, token in enumerate(x):
                best = np.argsort(-scores[row])[:2]
                shares = np.exp(scores[row]) / np.exp(scores[row]).sum() if weights is None else weights[row] / weights[row][best].sum()
                for expert in best:
                    inner = np.maximum(first[expert] @ token + b1[expert], 0)
                    y[row] += shares[expert] * (second[expert] @ inner + b2[expert])
            return [y.astype(np.float32)]
        return x, expected

    def test_matrices_of_few_bits(self):
        for bits, block, zeros in ((4, 0, False), (4, 16, False), (8, 32, False), (8, 0, True), (4, 32, True), (2, 16, False)):
            x, expected = self.quantized(bits, block, zeros)
            numbers = dict(block_size=block) if block else {}
            self.check("QMoE", x, self.SIZES, expected=expected, k=2, expert_weight_bits=bits, **numbers)
            steps = re.findall(r"^ *\d+ +expert_gemm(\w*) ", self.lathe("inspect", self.folder / "model.engine")[1], re.MULTILINE)
            self.assertEqual(steps, ["_weight_only" if bits > 2 else ""] * 2)

    def test_shares_of_their_own(self):
        x, expected = self.quantized(4, 16, False)
        x += [None] * 6 + [Operand("tokens", 4, make=uniform(1, 2))]
        self.check("QMoE", x, self.SIZES, expected=lambda *arrays: expected(*arrays[:-1], weights=arrays[-1]), k=2,
                   block_size=16, normalize_routing_weights=1)

    def test_what_is_refused_of_few_bits(self):
        x, _ = self.quantized(4, 16, False)
        x = [Operand(3, 32), Operand(3, 4), *x[2:]]
        refuse = lambda text, operands=x, **attributes: self.refuse("QMoE", operands, text, block_size=16, **attributes)
        refuse("quant_type 'fp4'", quant_type="fp4")
        refuse("weights_prepacked is 1", weights_prepacked=1)
        refuse("weights of 3 bits", expert_weight_bits=3)
        refuse("input 15", [*x, *[None] * 7, weights(4)])
        refuse("computed while running", [*x[:2], Operand(4, 64, 16, dtype=np.uint8), *x[3:]])
        self.refuse("QMoE", x, "no multiple of block_size 24", block_size=24)

    def test_what_is_refused(self):
        operands = [Operand(3, 24), Operand(3, 5), *self.products(40)]
        refuse = lambda text, operands=operands, **attributes: self.refuse("MoE", operands, text, **attributes)
        refuse("use_sparse_mixer", use_sparse_mixer=1, k=2)
        refuse("activation_type 'tanh'", activation_type="tanh")
        refuse("swiglu_fusion is 3", activation_type="swiglu", swiglu_fusion=3)
        refuse("needs fc3_experts_weights", activation_type="swiglu")
        refuse("part of the first product", [*operands, self.products(40)[0]], activation_type="swiglu", swiglu_fusion=1)
        refuse("the tokens have 1 dimensions", [Operand(24), *operands[1:]])
        refuse("must be equal", [Operand(3, 20), *operands[1:]])


if __name__ == "__main__":
    unittest.main()
