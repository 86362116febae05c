#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GatherBlockQuantized and QAttention of ONNX Runtime's domain, beside ONNX Runtime, with open sizes."""
import unittest

import ml_dtypes
import numpy as np
from onnx import TensorProto
from runtime_nodes import Operand, RuntimeNodes, weights

SIZES = [dict(batch=2, length=7), dict(batch=1, length=1), dict(batch=3, length=20)]
PAST = [dict(batch=2, length=4, past=5, total=9), dict(batch=1, length=1, past=8, total=9), dict(batch=3, length=6, past=1, total=7)]
HALF = TensorProto.FLOAT16


def levels(low, high, *dims, dtype=np.uint8, **named):
    return Operand(*dims, make=lambda dims, sizes, random: random.integers(low, high, dims), dtype=dtype, **named)


def constant(low, high, *dims, dtype=np.uint8):
    return levels(low, high, *dims, dtype=dtype, constant=True)


def scales(*dims, dtype=np.float32):
    return weights(*dims, make=lambda dims, sizes, random: random.uniform(0.01, 0.02, dims), dtype=dtype)


def scale(value):
    return weights(make=lambda dims, sizes, random: np.array(value))


class GatherBlockQuantized(RuntimeNodes):
    indices = levels(-30, 30, "batch", "length", dtype=np.int64)

    def gather(self, *operands, **attributes):
        self.check("GatherBlockQuantized", operands, SIZES, **attributes)

    def test_bytes(self):
        for bits, per_byte in ((4, 2), (8, 1)):
            table = constant(0, 256, 30, 64 // per_byte)
            zeros = constant(0, 256, 30, 2 * bits // 8)
            for parts in ([], [zeros]):
                self.gather(table, self.indices, scales(30, 2), *parts, bits=bits, block_size=32, quantize_axis=1)

    def test_short_blocks_and_an_odd_number_of_them(self):
        self.gather(constant(0, 256, 30, 40), self.indices, scales(30, 3), constant(0, 256, 30, 2), bits=4, block_size=32, quantize_axis=-1)

    def test_two_bits(self):
        self.gather(constant(0, 256, 30, 16), self.indices, scales(30, 4), bits=2, block_size=16,
                    expected=lambda b, i, s: [(((b[:, :, None] >> np.arange(0, 8, 2)) & 3).reshape(30, 64).astype(np.float32)[i] - 2)
                                              * np.repeat(s, 16, 1)[i]])

    def test_four_bit_types(self):
        for dtype, low in ((ml_dtypes.int4, -8), (ml_dtypes.uint4, 0)):
            table = constant(low, low + 16, 30, 64, dtype=dtype)
            for zeros in ([], [constant(low, low + 16, 30, 2, dtype=dtype)]):
                self.gather(table, self.indices, scales(30, 2), *zeros, block_size=32, opset=21)
            across = levels(-64, 64, "batch", dtype=np.int32)
            self.gather(table, across, scales(30, 2), gather_axis=1, quantize_axis=1, block_size=32, opset=21)
            self.gather(table, across, scales(1, 64), gather_axis=1, quantize_axis=0, block_size=32, opset=21)

    def test_eight_bit_floats(self):
        expected = lambda block: lambda table, i, s: [(table.astype(np.float32) * np.repeat(np.broadcast_to(s, (30, s.shape[1])), block, 1))[i]]
        table = weights(30, 64, dtype=ml_dtypes.float8_e4m3fn)
        self.gather(table, self.indices, scales(30, 2), block_size=32, opset=21, expected=expected(32))
        self.gather(table, self.indices, scales(1, 2), block_size=32, opset=21, expected=expected(32))
        self.gather(table, self.indices, scales(30, 1), block_size=0, opset=21, expected=expected(64))

    def test_halves(self):
        self.tolerance = 1e-3
        self.gather(constant(0, 256, 30, 32), self.indices, scales(30, 2, dtype=np.float16), bits=4, block_size=32, outputs=[HALF])

    def test_what_is_refused(self):
        table, indices = constant(0, 256, 30, 32), levels(0, 30, 5, dtype=np.int64)
        refuse = lambda text, *operands, **attributes: self.refuse("GatherBlockQuantized", operands, text, **attributes)
        refuse("block_size is 24; it is a power of two, at least 16", table, indices, scales(30, 2), block_size=24)
        refuse("bits is 3; give 2, 4 or 8", table, indices, scales(30, 2), block_size=32, bits=3)
        refuse("gathered along axis 0", table, indices, scales(30, 2), block_size=32, gather_axis=1)
        refuse("the scales have 1 dimensions, expected 2", table, indices, scales(60), block_size=32)
        refuse("have no zero points", weights(30, 64, dtype=ml_dtypes.float8_e4m3fn), indices, scales(30, 2),
               weights(30, 2, dtype=ml_dtypes.float8_e4m3fn), block_size=32, opset=21)


class QAttention(RuntimeNodes):
    def attend(self, sizes, *operands, **attributes):
        self.check("QAttention", operands, sizes, attention=1, num_heads=4, **attributes)

    def inputs(self, dtype, weight_dtype, columns):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max + 1
        zero = weights(make=lambda dims, at, random: np.array(low + 120), dtype=dtype)
        of_weights = np.iinfo(weight_dtype)
        table = constant(of_weights.min, of_weights.max + 1, 32, 192, dtype=weight_dtype)
        dims = (192,) if columns else ()
        weight_zero = weights(*dims, make=lambda dims, at, random: np.full(dims, of_weights.min + 128), dtype=weight_dtype)
        return [levels(low, high, "batch", "length", 32, dtype=dtype), table, weights(192), scale(0.02), scales(*dims), None, zero, weight_zero]

    def test_types(self):
        for weight_dtype, columns in ((np.int8, 0), (np.uint8, 0), (np.int8, 1)):
            self.attend(SIZES, *self.inputs(np.uint8, weight_dtype, columns))

    def test_signed_inputs(self):
        """For which ONNX Runtime has no kernel for CPUs."""
        def expected(x, w, bias, scale, of_weights, zero, weight_zero):
            y = (x.astype(np.float32) - zero) * scale @ ((w.astype(np.float32) - weight_zero) * of_weights) + bias
            q, k, v = (part.reshape(*x.shape[:2], 4, 16).transpose(0, 2, 1, 3) for part in np.split(y, 3, -1))
            scores = q @ k.transpose(0, 1, 3, 2) / 4
            e = np.exp(scores - scores.max(-1, keepdims=True))
            y = (e / e.sum(-1, keepdims=True)) @ v
            return [y.transpose(0, 2, 1, 3).reshape(*x.shape[:2], 64).astype(np.float32)]
        self.attend(SIZES, *self.inputs(np.int8, np.int8, 1), expected=expected)

    def test_masks_and_past(self):
        given = self.inputs(np.uint8, np.int8, 0)
        past = Operand(2, "batch", 4, "past", 16)
        for causal in (0, 1):
            self.attend(PAST, *given, past, unidirectional=causal, outputs=2)
        mask = Operand("batch", make=lambda dims, sizes, random: random.integers(1, sizes["length"] + 1, dims), dtype=np.int32)
        self.attend(SIZES, *given[:5], mask, *given[6:])

    def test_what_is_refused(self):
        given = self.inputs(np.uint8, np.int8, 0)
        self.refuse("QAttention", given, "do_rotary is not supported", sizes=SIZES, num_heads=4, do_rotary=1)
        self.refuse("QAttention", given, "the weights have 192 columns", sizes=SIZES, num_heads=5)


if __name__ == "__main__":
    unittest.main()
