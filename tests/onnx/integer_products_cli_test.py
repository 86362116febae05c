#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MatMulInteger, ConvInteger, QLinearMatMul and QLinearConv with zero points of every form, known and computed, compared with
NumPy's integers."""
import itertools
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
from onnx import helper, numpy_helper

LATHE = pathlib.Path(os.environ["LATHE_BUILD_DIR"], "bin/lathe")
random = np.random.default_rng(7)


def levels(dtype, *dims):
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max + 1, dims).astype(dtype)


def wide(array):
    return array.astype(np.int64)


def convolve(x, w, pads=(0, 0, 0, 0), strides=(1, 1), dilations=(1, 1), group=1):
    """Of centred integers: padding is 0."""
    x = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    reach = [(extent - 1) * dilation + 1 for extent, dilation in zip(w.shape[2:], dilations)]
    windows = np.lib.stride_tricks.sliding_window_view(x, reach, (2, 3))
    windows = windows[:, :, ::strides[0], ::strides[1], ::dilations[0], ::dilations[1]]
    parts = zip(np.split(windows, group, 1), np.split(w, group, 0))
    return np.concatenate([np.einsum("nchwij,ocij->nohw", *part) for part in parts], 1)


def requantized(sums, scale, zero_point):
    limits = np.iinfo(zero_point.dtype)
    return np.clip(np.rint(sums * scale) + wide(zero_point), limits.min, limits.max).astype(zero_point.dtype)


class IntegerProducts(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.count = 0

    def write(self, op, operands, wanted, known=(), **attributes):
        """One case; operands of the numbers in `known` are constants, None is an omitted one."""
        folder = self.folder / "cases" / "node" / f"case_{self.count}"
        self.count += 1
        (folder / "test_data_set_0").mkdir(parents=True)
        names = ["" if array is None else f"x{i}" for i, array in enumerate(operands)]
        tensors = [numpy_helper.from_array(np.ascontiguousarray(a), n) for a, n in zip(operands, names) if n]
        constants = [t for t in tensors if int(t.name[1:]) in known]
        inputs = [t for t in tensors if t not in constants]
        output = numpy_helper.from_array(wanted, "y")
        info = [helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)) for t in [*inputs, output]]
        graph = helper.make_graph([helper.make_node(op, names, ["y"], **attributes)], "g", info[:-1], info[-1:], constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        onnx.checker.check_model(model)
        onnx.save(model, folder / "model.onnx")
        for name, proto in [(f"input_{i}", t) for i, t in enumerate(inputs)] + [("output_0", output)]:
            (folder / "test_data_set_0" / f"{name}.pb").write_bytes(proto.SerializeToString())

    def all_pass(self):
        result = subprocess.run([LATHE, "conformance", self.folder, "--mode=runtime"], capture_output=True, text=True)
        last = result.stdout.strip().splitlines()[-1] if result.stdout else result.stderr
        self.assertEqual(last, f"passed={self.count} failed=0 unsupported=0", result.stdout[-3000:] + result.stderr[-2000:])

    def test_products_of_matrices(self):
        for a_type, b_type in itertools.product((np.uint8, np.int8), repeat=2):
            for a_dims, b_dims in (((5, 37), (37, 19)), ((2, 3, 8), (8, 4)), ((2, 4, 16), (2, 16, 33)), ((6,), (6, 3))):
                a, b = levels(a_type, *a_dims), levels(b_type, *b_dims)
                rows, columns = a_dims[-2] if len(a_dims) > 1 else 1, b_dims[-1]
                for p, q in ((levels(a_type), None), (None, levels(b_type, 1)), (levels(a_type, 1), levels(b_type)),
                             (levels(a_type), levels(b_type, columns)), (levels(a_type, rows), levels(b_type, columns))):
                    left = wide(a) - (0 if p is None else wide(p)[:, None] if p.size > 1 else wide(p))
                    right = wide(b) - (0 if q is None else wide(q))
                    for known in ((), (1,), (2, 3), (1, 2, 3)):
                        self.write("MatMulInteger", [a, b, p, q], (left @ right).astype(np.int32), known)
        self.all_pass()

    def test_convolutions(self):
        modes = [{}, {"pads": (1, 0, 2, 1)}, {"pads": (1, 1, 1, 1), "strides": (2, 2), "dilations": (1, 2)}, {"group": 2}]
        for x_type, w_type, mode in itertools.product((np.uint8, np.int8), (np.uint8, np.int8), modes):
            groups = mode.get("group", 1)
            x, w = levels(x_type, 2, 4, 7, 6), levels(w_type, 6, 4 // groups, 3, 2)
            for p, q in ((levels(x_type), None), (None, levels(w_type)), (levels(x_type), levels(w_type)),
                         (levels(x_type, 1), levels(w_type, 6))):
                left = wide(x) - (0 if p is None else wide(p))
                right = wide(w) - (0 if q is None else wide(q).reshape(-1, 1, 1, 1))
                for known in ((), (1,), (2, 3), (1, 2, 3)):
                    self.write("ConvInteger", [x, w, p, q], convolve(left, right, **mode).astype(np.int32), known, **mode)
        same = {"auto_pad": "SAME_UPPER"}
        x, w, p = levels(np.uint8, 1, 3, 6, 6), levels(np.int8, 2, 3, 3, 3), levels(np.uint8)
        self.write("ConvInteger", [x, w, p], convolve(wide(x) - wide(p), wide(w), (1, 1, 1, 1)).astype(np.int32), **same)
        self.all_pass()

    def test_results_in_levels(self):
        scale = np.float32
        for x_type, w_type in itertools.product((np.uint8, np.int8), repeat=2):
            p, r = levels(x_type), levels(x_type)
            for q, of_w in ((levels(w_type), scale(0.25)), (np.zeros((), w_type), scale(0.5)),
                            (levels(w_type, 6), np.array([0.5, 1, 2, 0.25, 0.125, 1], scale))):
                a, b = levels(x_type, 5, 16), levels(w_type, 16, 6)
                sums = (wide(a) - wide(p)) @ (wide(b) - wide(q))
                operands = [a, scale(0.5), p, b, of_w, q, scale(64), r]
                wanted = requantized(sums, np.float64(of_w) / 128, r)
                for known in ((), (1, 2, 4, 5, 6, 7), (1, 2, 3, 4, 5, 6, 7)):
                    self.write("QLinearMatMul", [np.asarray(o) for o in operands], wanted, known)
                x, w = levels(x_type, 1, 4, 7, 6), levels(w_type, 6, 4, 3, 3)
                bias = random.integers(-999, 999, 6).astype(np.int32)
                sums = convolve(wide(x) - wide(p), wide(w) - wide(q).reshape(-1, 1, 1, 1), (1, 1, 1, 1))
                operands = [x, scale(0.5), p, w, of_w, q, scale(64), r, bias]
                factor = np.float64(of_w).reshape(-1, 1, 1) / 128
                wanted = requantized(sums + wide(bias).reshape(-1, 1, 1), factor, r)
                for known in ((), (1, 2, 4, 5, 6, 7), (1, 2, 3, 4, 5, 6, 7, 8)):
                    self.write("QLinearConv", [np.asarray(o) for o in operands], wanted, known, pads=(1, 1, 1, 1))
        self.all_pass()


if __name__ == "__main__":
    unittest.main()
