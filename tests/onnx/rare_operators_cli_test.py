#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators that few models have, against NumPy: on the CPU with known and open sizes, some of them on an emulated GPU."""
import itertools
import unittest

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from one_node_cases import OneNodeCases


def unique(x, axis, in_order):
    """Values (slices along the axis), their first places, which of them each is, how many there are; loops of Python."""
    slices = [x.ravel()[i] for i in range(x.size)] if axis is None else [np.take(x, i, axis) for i in range(x.shape[axis])]
    keys = [tuple((1, 0.0) if e != e else (0, e) for e in np.ravel(s).tolist()) for s in slices]
    order = sorted(set(keys), key=keys.index if in_order else None)
    first = [keys.index(key) for key in order]
    values = np.take(x if axis is not None else x.ravel(), np.array(first, np.int64), axis or 0)
    return (values, np.array(first, np.int64), np.array([order.index(key) for key in keys], np.int64),
            np.array([keys.count(key) for key in order], np.int64))


def sample(image, point):
    """Linear between the pixels around the point, 0 outside."""
    low, total = np.floor(point).astype(int), 0.0
    for corner in itertools.product((0, 1), repeat=image.ndim):
        at = low + corner
        weight = np.prod([1 - abs(p - a) for p, a in zip(point, at)])
        if all(0 <= a < n for a, n in zip(at, image.shape)):
            total += weight * image[tuple(at)]
    return total


def deformable(x, w, offset, bias, mask, *, strides, pads, dilations, group, offset_group):
    kernel, positions = w.shape[2:], offset.shape[2:]
    taps, spatial = int(np.prod(kernel)), len(kernel)
    y = np.zeros((x.shape[0], w.shape[0], *positions)) + (0 if bias is None else bias.reshape(-1, *[1] * spatial))
    for n, c, t in np.ndindex(x.shape[0], x.shape[1], taps):
        part, tap = c // (x.shape[1] // offset_group), np.unravel_index(t, kernel)
        of_group, within = divmod(c, w.shape[1])
        rows = slice(of_group * w.shape[0] // group, (of_group + 1) * w.shape[0] // group)
        for at in np.ndindex(*positions):
            point = [at[d] * strides[d] - pads[d] + tap[d] * dilations[d] +
                     offset[(n, (part * taps + t) * spatial + d, *at)] for d in range(spatial)]
            value = sample(x[n, c], np.array(point)) * (1 if mask is None else mask[(n, part * taps + t, *at)])
            y[(n, rows, *at)] += w[(rows, within, *tap)] * value
    return y


class RareOperators(OneNodeCases):
    # torch.unique() and torch.unique(dim=0) are exported so, the first with all outputs.
    def test_unique(self):
        numbers = self.random.integers(0, 4, (3, 4)).astype(np.float32)
        numbers[0, :2] = numbers[2, 1] = np.nan
        rows = self.random.integers(0, 2, (7, 3)).astype(np.int64)
        for in_order in (False, True):
            for x, axis in ((numbers, None), (rows, 0), (rows, -1), (rows.astype(np.float16), 0), (rows.astype(bool), None),
                            (rows.astype(np.uint8), 0), (rows[:, 0], 0), (np.array([0.0, -0.0, 1.0]), None),
                            (self.random.integers(0, 2, (2, 5, 2)).astype(np.int32), 1)):
                results = unique(x, None if axis is None else axis % x.ndim, in_order)
                self.write("Unique", [x], results, sorted=int(not in_order), **({} if axis is None else {"axis": axis}))
        self.all_pass()

    def test_unique_of_nothing(self):
        for shape, axis in (((0,), None), ((0, 3), 0), ((4, 0), 0)):
            x = np.zeros(shape, np.float32)
            self.write("Unique", [x], unique(x, axis, False), **({} if axis is None else {"axis": axis}))
        self.all_pass(("runtime", "cpu"))

    def deform_conv(self, spatial, kernel, dtype=np.float32, *, channels=4, results=6, group=1, offset_group=1,
                    strides=None, pads=None, dilations=None, bias=True, mask=True):
        n = len(spatial)
        how = dict(strides=strides or [1] * n, pads=pads or [0] * 2 * n, dilations=dilations or [1] * n, group=group,
                   offset_group=offset_group)
        positions = [(spatial[d] + how["pads"][d] + how["pads"][n + d] - (kernel[d] - 1) * how["dilations"][d] - 1) //
                     how["strides"][d] + 1 for d in range(n)]
        taps = int(np.prod(kernel)) * offset_group
        x = self.random.normal(size=(2, channels, *spatial)).astype(dtype)
        w = self.random.normal(size=(results, channels // group, *kernel)).astype(dtype)
        offset = self.random.uniform(-1.5, 1.5, (2, taps * n, *positions)).astype(dtype)
        b = self.random.normal(size=results).astype(dtype) if bias else None
        m = self.random.uniform(0, 1, (2, taps, *positions)).astype(dtype) if mask else None
        y = deformable(*[None if v is None else v.astype(np.float64) for v in (x, w, offset, b, m)], **how)
        given = {k: v for k, v in how.items() if k not in ("strides", "pads", "dilations") or v not in ([1] * n, [0] * 2 * n)}
        self.write("DeformConv", [x, w, offset, b, m], [y.astype(dtype)], constants=(1,), **given)

    # torchvision.ops.deform_conv2d has 2 dimensions, a bias and, in version 2, a mask.
    def test_deform_conv(self):
        self.deform_conv((5, 6), (3, 2), np.float64)
        self.deform_conv((6, 5), (2, 3), np.float64, strides=[2, 1], pads=[1, 0, 2, 1], dilations=[2, 1], group=2, offset_group=4)
        self.deform_conv((4, 4), (1, 1), np.float64, group=2, offset_group=2, bias=False, mask=False)
        self.deform_conv((7,), (3,), np.float64, mask=False, pads=[1, 1])
        self.deform_conv((3, 4, 3), (2, 2, 2), np.float64, channels=2, results=2, bias=False)
        self.all_pass()

    def test_deform_conv_of_other_shapes(self):
        x, w = np.zeros((1, 2, 4, 4), np.float32), np.zeros((2, 2, 3, 3), np.float32)
        y = np.zeros((1, 2, 2, 2), np.float32)
        for offset, text in ((np.zeros((1, 18, 3, 2), np.float32), "its offset has the shape [1, 18, 3, 2], but must have [1, 18, 2, 2]"),
                             (np.zeros((1, 9, 2, 2), np.float32), "its offset has the shape [1, 9, 2, 2]")):
            self.refuse(text, "DeformConv", [x, w, offset], [y], constants=(1,))
        offset = np.zeros((1, 18, 2, 2), np.float32)
        self.refuse("its input has the shape [1, 3, 4, 4], but must have [1, 2, 4, 4]", "DeformConv",
                    [np.zeros((1, 3, 4, 4), np.float32), w, offset], [y], constants=(1,))
        self.refuse("its bias has the shape [1], but must have [2]", "DeformConv", [x, w, offset, np.zeros(1, np.float32)], [y],
                    constants=(1,))
        self.refuse("its kernel_shape does not fit", "DeformConv", [x, w, offset], [y], constants=(1,), kernel_shape=[2, 3])
        self.refuse("groups of offsets", "DeformConv", [x, w, offset], [y], constants=(1,), offset_group=3)

    def test_bit_cast(self):
        x = self.random.normal(size=(2, 3)).astype(np.float32)
        wide, half = x.astype(np.float64), x.astype(np.float16)
        for given, to in ((x, TensorProto.INT32), (x, TensorProto.UINT32), (x.view(np.int32), TensorProto.FLOAT),
                          (wide, TensorProto.INT64), (wide.view(np.uint64), TensorProto.DOUBLE), (half, TensorProto.INT16),
                          (half.view(np.uint16), TensorProto.FLOAT16), (np.array([-1, 5], np.int8), TensorProto.UINT8),
                          (np.array([True, False]), TensorProto.INT8), (np.array([0, 1], np.uint8), TensorProto.BOOL)):
            self.write("BitCast", [given], [given.view(helper.tensor_dtype_to_np_dtype(to))], to=to)
        self.all_pass()
        self.refuse("has 32 bits", "BitCast", [x], [x], to=TensorProto.DOUBLE)

    # What is dropped is what NumPy draws below the ratio; without a seed, about as much of it.
    def test_dropout_in_training(self):
        x = self.random.normal(size=(40, 50)).astype(np.float32)
        for ratio, training in ((0.25, True), (0.0, True), (0.75, False)):
            mask = np.random.RandomState(7).random_sample(x.shape) >= (ratio if training else 0)
            y = np.where(mask, x / np.float32(1 - ratio), 0) if training else x
            for constants in ((), (1, 2)):
                operands = [x, np.float32(ratio), np.array(training)]
                self.write("Dropout", operands, [y.astype(np.float32), mask], constants=constants, seed=7)
        self.all_pass(("runtime", "cpu"), ("symbolic", "cpu"))
        self.refuse("its ratio is 1", "Dropout", [x, np.float32(1), np.array(True)], [x], constants=(1, 2))

    def test_max_unpool(self):
        x = self.random.normal(size=(2, 3, 6, 9)).astype(np.float32)
        windows = x.reshape(2, 3, 3, 2, 3, 3).transpose(0, 1, 2, 4, 3, 5).reshape(2, 3, 3, 3, 6)
        best = windows.argmax(-1)
        flat = (np.arange(6).reshape(2, 3, 1, 1) * 6 + np.arange(3).reshape(3, 1) * 2 + best // 3) * 9 + np.arange(3) * 3 + best % 3
        y = np.zeros(x.size, np.float32)
        y[flat.ravel()] = windows.max(-1).ravel()
        y, how = y.reshape(x.shape), dict(kernel_shape=[2, 3], strides=[2, 3])
        self.write("MaxUnpool", [windows.max(-1), flat], [y], **how)
        larger = np.pad(y, ((0, 0), (0, 0), (0, 1), (0, 2)))
        self.write("MaxUnpool", [windows.max(-1), flat, np.array(larger.shape)], [larger], constants=(2,), **how)
        self.all_pass()

    def test_determinants(self):
        for n in (1, 2, 3, 4, 6):
            x = self.random.normal(size=(2, 3, n, n))
            self.write("Det", [x], [np.linalg.det(x)])
        self.all_pass()

    def test_flex_attention(self):
        q, k, v = (self.random.normal(size=s) for s in ((2, 4, 3, 8), (2, 2, 5, 8), (2, 2, 5, 6)))
        graphs = {}
        for name, op in (("score_mod", "Tanh"), ("prob_mod", "Sqrt")):
            ends = [helper.make_tensor_value_info(e, TensorProto.DOUBLE, list("bhls")) for e in ("s", "t")]
            graphs[name] = helper.make_graph([helper.make_node(op, ["s"], ["t"])], name, ends[:1], ends[1:])
        for used in ((), ("score_mod",), ("score_mod", "prob_mod")):
            scores = q @ np.repeat(k, 2, 1).swapaxes(2, 3) * 0.25
            scores = np.tanh(scores) if "score_mod" in used else scores
            weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
            weights = np.sqrt(weights) if "prob_mod" in used else weights
            self.write("FlexAttention", [q, k, v], [weights @ np.repeat(v, 2, 1)], domain="ai.onnx.preview", scale=0.25,
                       **{name: graphs[name] for name in used})
        self.all_pass()
        wrong = helper.make_graph([helper.make_node("Transpose", ["s"], ["t"], perm=[0, 1, 3, 2])], "g", ends[:1], ends[1:])
        self.refuse("score_mod has the shape [2, 4, 5, 3], but must have [2, 4, 3, 5]", "FlexAttention", [q, k, v], [v],
                    domain="ai.onnx.preview", score_mod=wrong)

    TREES = dict(tree_roots=[0, 3], nodes_featureids=[0, 1, 1, 2], nodes_modes=np.array([0, 6, 3, 4], np.uint8),
                 nodes_splits=np.array([0.5, 0, -0.25, 1]), nodes_truenodeids=[1, 0, 2, 4], nodes_falsenodeids=[2, 1, 3, 5],
                 nodes_trueleafs=[0, 1, 1, 1], nodes_falseleafs=[0, 1, 1, 1], nodes_missing_value_tracks_true=[0, 0, 1, 0],
                 membership_values=np.array([1, 2, 3, np.nan]), leaf_targetids=[0, 1, 1, 0, 1, 0],
                 leaf_weights=np.array([1.0, 2, 4, 8, 16, 32]))

    def trees(self, x, function, post):
        rows = []
        for a, b, c in x:
            first = ((1.0, 0) if b in (1, 2, 3) else (2.0, 1)) if a <= 0.5 else ((4.0, 1) if b > -0.25 or b != b else (8.0, 0))
            rows.append([first, (16.0, 1) if c == 1 else (32.0, 0)])
        y = np.array([[function([w for w, t in row if t == target]) for target in range(2)] for row in rows])
        return post(y)

    def test_tree_ensembles(self):
        x = np.array([[a, b, c] for a in (0, 1, np.nan) for b in (-1, 0, 2, np.nan) for c in (0, 1)], np.float64)
        most = np.finfo(np.float64).max
        softmax = lambda y: np.exp(y - y.max(1, keepdims=True)) / np.exp(y - y.max(1, keepdims=True)).sum(1, keepdims=True)
        tensors = {name: numpy_helper.from_array(value, name) if isinstance(value, np.ndarray) else value
                   for name, value in self.TREES.items()}
        for number, function in ((0, lambda w: sum(w) / 2), (1, sum), (2, lambda w: min(w, default=most)),
                                 (3, lambda w: max(w, default=-most))):
            for post, apply in ((0, lambda y: y), (1, softmax), (2, lambda y: 1 / (1 + np.exp(-y))),
                                (3, lambda y: np.where(y == 0, 0, softmax(np.where(y == 0, -np.inf, y)))))[:4 if number < 2 else 1]:
                self.write("TreeEnsemble", [x], [self.trees(x, function, apply)], domain="ai.onnx.ml", n_targets=2,
                           aggregate_function=number, post_transform=post, **tensors)
        self.all_pass()
        self.refuse("post_transform 4", "TreeEnsemble", [x], [x], domain="ai.onnx.ml", n_targets=2, post_transform=4, **tensors)
        self.refuse("branches that lead back", "TreeEnsemble", [x], [x], domain="ai.onnx.ml", n_targets=2,
                    **{**tensors, "nodes_truenodeids": [0, 0, 2, 4]})
        self.refuse("a branch leads to leaf 9", "TreeEnsemble", [x], [x], domain="ai.onnx.ml", n_targets=2,
                    **{**tensors, "nodes_falsenodeids": [2, 1, 9, 5]})

    # One of each kind: kernels are compiled for each network.
    def test_on_a_gpu(self):
        rows = self.random.integers(0, 2, (5, 2)).astype(np.float32)
        self.write("Unique", [rows], unique(rows, 0, True), axis=0, sorted=0)
        self.write("Det", [rows[:4].reshape(2, 2, 2)], [np.linalg.det(rows[:4].reshape(2, 2, 2))])
        self.write("BitCast", [rows], [rows.view(np.int32)], to=TensorProto.INT32)
        self.deform_conv((3, 4), (2, 2), channels=2, results=2, pads=[1, 0, 0, 0])
        self.all_pass(("symbolic", "cuda"))

    def test_features(self):
        x = self.random.normal(size=(3, 4))
        self.write("ArrayFeatureExtractor", [x, np.array([[2, 0]])], [x[:, [2, 0]]], domain="ai.onnx.ml")
        self.write("ArrayFeatureExtractor", [x[0], np.array([1])], [x[:1, [1]]], domain="ai.onnx.ml")
        self.write("Binarizer", [(x * 10).astype(np.int32)], [((x * 10).astype(np.int32) > 2.5).astype(np.int32)], domain="ai.onnx.ml",
                   threshold=2.5)
        self.all_pass()

    # A key that is there twice counts as the last one; a NaN is a key.
    def test_what_no_engine_does(self):
        x = np.zeros(4, np.uint8)
        self.refuse("an engine decodes no pictures; decode them before it runs", "ImageDecoder", [x], [np.zeros((1, 1, 3), np.uint8)])
        y = np.zeros(2, np.float32)
        self.refuse("it differentiates the graph that computes its output 'y'", "Gradient", [y], [y], domain="ai.onnx.preview.training",
                    xs=["x0"], y="y0")

    def test_labels(self):
        x = np.array([[1, 7, 2], [3, 2, 9]])
        self.write("LabelEncoder", [x], [np.array([[0.5, -0.0, 4], [3, 4, -0.0]], np.float32)], domain="ai.onnx.ml",
                   keys_int64s=[1, 2, 3, 2], values_floats=[0.5, 9.0, 3.0, 4.0])
        self.write("LabelEncoder", [np.array([np.nan, 1, 5], np.float32)], [np.array([8, 9, -1])], domain="ai.onnx.ml",
                   keys_floats=[np.nan, 1.0], values_int64s=[8, 9])
        pairs = {name: numpy_helper.from_array(np.array(value, dtype), name) for name, value, dtype in
                 (("keys_tensor", [4, 6], np.int32), ("values_tensor", [1, 2], np.int16), ("default_tensor", [42], np.int16))}
        self.write("LabelEncoder", [np.array([6, 4, 5], np.int32)], [np.array([2, 1, 42], np.int16)], domain="ai.onnx.ml", **pairs)
        self.all_pass()
        self.refuse("keys of string for an input of i64", "LabelEncoder", [x], [x], domain="ai.onnx.ml", keys_strings=["a"], values_floats=[1.0])


if __name__ == "__main__":
    unittest.main()
