#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nodes that name standard plugins of TensorRT, on the CPU and on an emulated GPU, against loops that say what each of
them does (in NumPy, one element after the other)."""
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
from onnx import helper, numpy_helper

BUILD = pathlib.Path(os.environ["LATHE_BUILD_DIR"])
LATHE = BUILD / "bin/lathe"


def iou(a, b):
    extent = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    if (extent <= 0).any():
        return np.float32(0)
    shared = extent[0] * extent[1]
    area = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return np.float32(shared / (area[0] + area[1] - shared))


def detections(boxes, scores, *, score, overlap, most, background=-1, agnostic=False, per_class=None, logits=False,
               candidates=None, strict=False, empty_class=0, rows=None):
    """boxes[B, N, 1 or C, 4] as corners: all candidates of an image in the order of their scores, greedily. Lists what
    is kept in `rows`, (image, class, anchor)."""
    batches, anchors, classes = scores.shape
    count = np.zeros((batches, 1), np.int32)
    kept_boxes, kept_scores = np.zeros((batches, most, 4), np.float32), np.zeros((batches, most), np.float32)
    kept_classes = np.full((batches, most), empty_class, np.int32)
    shown = 1 / (1 + np.exp(-scores)) if logits else scores
    for b in range(batches):
        kept = []
        order = sorted(((-scores[b, n, c], n, c) for n in range(anchors) for c in range(classes)))
        for _, n, c in order:
            if candidates and sum(scores[b, :, c] > scores[b, n, c]) >= candidates:
                continue
            if (shown[b, n, c] <= score if strict else shown[b, n, c] < score) or c == background or len(kept) == most:
                continue
            box = boxes[b, n, c if boxes.shape[2] > 1 else 0]
            if per_class and sum(other == c for other, _ in kept) == per_class:
                continue
            limit = np.nextafter(np.float32(overlap), np.float32(2)) if strict else np.float32(overlap)
            if any((agnostic or other == c) and iou(box, theirs) >= limit for other, theirs in kept):
                continue
            i = len(kept)
            kept_boxes[b, i], kept_scores[b, i], kept_classes[b, i] = box, shown[b, n, c], c
            kept.append((c, box))
            if rows is not None:
                rows.append((b, c, n))
        count[b] = len(kept)
    return count, kept_boxes, kept_scores, kept_classes


def corner_boxes(random, *dims):
    low = random.uniform(0, 0.8, (*dims, 2))
    return np.concatenate([low, low + random.uniform(0.1, 0.4, (*dims, 2))], -1).astype(np.float32)


class StandardPlugins(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = {**os.environ, "LATHE_CUDA_DRIVER": str(BUILD / "fake_cuda/libfake_cuda_driver.so"),
                            "LATHE_NVRTC": str(BUILD / "fake_cuda/libnvrtc.so"), "LATHE_CACHE_DIR": str(self.folder / "cache")}
        self.random = np.random.default_rng(5)

    def model(self, op, inputs, outputs, constants=None, domain="TRT", order=None, fixed=(), **fields):
        self.fixed = fixed  # inputs whose shape is
        node = helper.make_node(op, order or [*inputs, *(constants or {})], outputs, name="plugin", domain=domain, **fields)
        graph = helper.make_graph(
            [node], "g",
            [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape if name in fixed else ["n", *x.shape[1:]])
             for name, x in inputs.items()],
            [helper.make_empty_tensor_value_info(name) for name in outputs],
            [numpy_helper.from_array(x, name) for name, x in (constants or {}).items()])
        opsets = [helper.make_opsetid("", 17)] + ([helper.make_opsetid(domain, 1)] if domain else [])
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), self.folder / "m.onnx")

    def build(self, inputs, target="cpu"):
        def shapes(factor):
            return ",".join(f"{name}:{'x'.join(map(str, (factor * x.shape[0], *x.shape[1:])))}" for name, x in inputs.items()
                            if name not in self.fixed)
        profile = [f"--minShapes={shapes(1)}", f"--optShapes={shapes(1)}", f"--maxShapes={shapes(3)}"]
        return subprocess.run([LATHE, "build", self.folder / "m.onnx", "-o", self.folder / "m.engine", "--buildBudget=0",
                               f"--target={target}", "--noTF32", *profile], capture_output=True, text=True, env=self.environment)

    def expect(self, op, inputs, expected, *, tolerance=1e-5, **fields):
        """`expected`: name -> result, on both devices."""
        self.model(op, inputs, list(expected), **fields)
        for name, x in inputs.items():
            np.save(self.folder / f"{name}.npy", x)
        files = ",".join(f"{name}:{self.folder}/{name}.npy" for name in inputs)
        for target in ("cpu", "cuda"):
            with self.subTest(target=target):
                built = self.build(inputs, target)
                self.assertEqual(built.returncode, 0, built.stderr)
                ran = subprocess.run([LATHE, "run", self.folder / "m.engine", f"--loadInputs={files}",
                                      f"--exportOutput={self.folder}"], capture_output=True, text=True, env=self.environment)
                self.assertEqual(ran.returncode, 0, ran.stderr)
                for name, y in expected.items():
                    result = np.load(self.folder / f"{name}.npy")
                    self.assertEqual((result.shape, result.dtype), (y.shape, y.dtype), name)
                    np.testing.assert_allclose(result, y, rtol=tolerance, atol=tolerance, err_msg=name)

    def refuse(self, op, inputs, *texts, **fields):
        self.model(op, inputs, ["y"], **fields)
        built = self.build(inputs)
        self.assertEqual(built.returncode, 1, built.stderr)
        for text in (op, *texts):
            self.assertIn(text, built.stderr)

    NMS = dict(score_threshold=0.3, iou_threshold=0.4, max_output_boxes=6, background_class=-1, score_activation=0, box_coding=0)

    def nms(self, inputs, expected, **fields):
        names = ("count", "boxes_out", "scores_out", "classes")
        self.expect("EfficientNMS_TRT", inputs, dict(zip(names, expected)), **{**self.NMS, **fields})

    def test_efficient_nms(self):
        boxes, scores = corner_boxes(self.random, 2, 12, 1), self.random.uniform(0, 1, (2, 12, 3)).astype(np.float32)
        scores[1, :, :] *= 0.31  # an image with few boxes
        how = dict(score=0.3, overlap=0.4, most=6)
        self.nms({"boxes": boxes[:, :, 0], "scores": scores}, detections(boxes, scores, **how))
        self.nms({"boxes": boxes, "scores": scores[..., None]}, detections(boxes, scores, background=1, **how), background_class=1)
        self.nms({"boxes": boxes, "scores": scores}, detections(boxes, scores, agnostic=True, **how), class_agnostic=1)

    # S249: it works, and is warned of, once for each model.
    def test_efficient_nms_is_deprecated(self):
        inputs = {"x": np.zeros((1, 4, 4), np.float32), "scores": np.zeros((1, 4, 2), np.float32)}
        for op, count, fields in (("EfficientNMS_TRT", 1, self.NMS), ("LReLU_TRT", 0, {"negSlope": 0.5})):
            given = inputs if op == "EfficientNMS_TRT" else {"x": inputs["x"]}
            outputs = ["count", "boxes", "best", "classes"] if op == "EfficientNMS_TRT" else ["y"]
            self.model(op, given, outputs, **fields)
            built = self.build(given)
            self.assertEqual(built.returncode, 0, built.stderr)
            said = (built.stdout + built.stderr).count(f"plugin '{op}' is deprecated, and works; export NonMaxSuppression")
            self.assertEqual(said, count, built.stderr)

    def test_efficient_nms_in_half_precision(self):
        boxes = corner_boxes(self.random, 2, 12, 1).astype(np.float16)
        scores = self.random.permutation(np.linspace(0, 1, 72)).reshape(2, 12, 3).astype(np.float16)
        count, *kept, classes = detections(boxes.astype(np.float32), scores.astype(np.float32), score=0.3, overlap=0.4, most=6)
        self.nms({"boxes": boxes, "scores": scores}, (count, *(x.astype(np.float16) for x in kept), classes))

    def test_efficient_nms_with_boxes_of_each_class(self):
        boxes, scores = corner_boxes(self.random, 2, 9, 3), self.random.uniform(0, 1, (2, 9, 3)).astype(np.float32)
        swapped = np.concatenate([boxes[..., 2:], boxes[..., :2]], -1)  # any two opposite corners
        for agnostic in (False, True):
            expected = detections(boxes, scores, score=0.3, overlap=0.4, most=40, agnostic=agnostic)
            self.nms({"boxes": swapped, "scores": scores}, expected, class_agnostic=int(agnostic), max_output_boxes=40)

    def test_efficient_nms_of_logits_and_centers(self):
        boxes, scores = corner_boxes(self.random, 1, 10, 1), self.random.normal(size=(1, 10, 2)).astype(np.float32)
        centers = np.concatenate([(boxes[..., :2] + boxes[..., 2:]) / 2, boxes[..., 2:] - boxes[..., :2]], -1)
        expected = detections(boxes, scores, score=0.3, overlap=0.4, most=6, logits=True)
        self.nms({"boxes": centers[:, :, 0], "scores": scores}, expected, score_activation=1, box_coding=1)
        anchors = np.concatenate([np.full((1, 10, 2), 0.25), np.full((1, 10, 2), 0.5)], -1).astype(np.float32)
        deltas = np.concatenate([(centers[:, :, 0, :2] - 0.25) / 0.5, np.log(centers[:, :, 0, 2:] / 0.5)], -1).astype(np.float32)
        self.nms({"boxes": deltas, "scores": scores}, expected, constants={"anchors": anchors}, score_activation=1, box_coding=1)
        self.nms({"boxes": boxes[:, :, 0] - anchors, "scores": scores}, expected, constants={"anchors": anchors}, score_activation=1)

    def test_thresholds_are_within(self):
        """A score at the threshold counts, and so does an overlap."""
        boxes = np.array([[[0, 0, 1, 1], [0, 0, 1, 0.5], [4, 4, 5, 5]]], np.float32)
        scores = np.array([[[1], [0.75], [0.5]]], np.float32)
        expected = detections(boxes[:, :, None], scores, score=0.5, overlap=0.5, most=6)
        self.assertEqual(expected[0], 2)
        self.nms({"boxes": boxes, "scores": scores}, expected, score_threshold=0.5, iou_threshold=0.5)

    def test_efficient_nms_as_tensorflow_has_it(self):
        boxes, scores = corner_boxes(self.random, 2, 12, 1) * 1.3, self.random.uniform(0, 1, (2, 12, 3)).astype(np.float32)
        boxes = boxes.astype(np.float32)
        count, kept, best, classes = detections(boxes, scores, score=0.2, overlap=0.5, most=6, per_class=2)
        self.expect("EfficientNMS_Explicit_TF_TRT", {"boxes": boxes, "scores": scores},
                    {"count": count, "boxes_out": np.clip(kept, 0, 1), "scores_out": best, "classes": classes}, score_threshold=0.2,
                    iou_threshold=0.5, max_total_size=20, max_output_size_per_class=2, pad_per_class=1, clip_boxes=1)

    def test_efficient_nms_as_onnx_has_it(self):
        boxes, scores = corner_boxes(self.random, 2, 12, 1), self.random.uniform(0, 1, (2, 12, 3)).astype(np.float32)
        for threshold, least in ((0.4, 5), (0.9, 1), (2.0, 0)):  # many, few and no boxes
            rows = []
            detections(boxes, scores, score=threshold, overlap=0.4, most=7, per_class=7, rows=rows)
            self.assertGreaterEqual(len(rows), least)
            y = np.array((rows + 14 * (rows[-1:] or [(-1, -1, -1)]))[:14], np.int32)
            self.expect("EfficientNMS_ONNX_TRT", {"boxes": boxes[:, :, 0], "scores": scores}, {"y": y}, score_threshold=threshold,
                        iou_threshold=0.4, max_output_boxes_per_class=7)

    def test_batched_nms(self):
        fields = dict(shareLocation=1, backgroundLabelId=0, numClasses=3, topK=5, keepTopK=4, scoreThreshold=0.25, iouThreshold=0.5)
        scores = self.random.permutation(np.linspace(0, 1, 72)).reshape(2, 12, 3).astype(np.float32)
        scores[1] *= 0.27
        scores[0, 3, 1] = 0.25  # not above the threshold
        for shared in (1, 0):
            boxes = corner_boxes(self.random, 2, 12, 1 if shared else 3)
            count, kept, best, classes = detections(boxes, scores, score=0.25, overlap=0.5, most=4, background=0, candidates=5,
                                                    strict=True, empty_class=-1)
            self.assertLess(count.min(), 4)
            self.expect("BatchedNMSDynamic_TRT", {"boxes": boxes, "scores": scores},
                        {"count": count, "kept": np.clip(kept, 0, 1), "best": best, "classes": classes.astype(np.float32)},
                        **{**fields, "shareLocation": shared})
        self.refuse("BatchedNMSDynamic_TRT", {"boxes": boxes, "scores": scores}, "isNormalized", **fields, isNormalized=0)

    def test_region(self):
        x = self.random.normal(size=(2, 2 * 8, 3, 4)).astype(np.float32)
        y = x.copy().reshape(2, 2, 8, 3, 4)
        for n, box, i, j in np.ndindex(2, 2, 3, 4):
            cell = y[n, box, :, i, j]
            cell[[0, 1, 4]] = 1 / (1 + np.exp(-cell[[0, 1, 4]]))
            cell[5:] = np.exp(cell[5:]) / np.exp(cell[5:]).sum()
        self.expect("Region_TRT", {"x": x}, {"y": y.reshape(x.shape)}, num=2, coords=4, classes=3)

    def test_coordinates(self):
        x = self.random.normal(size=(2, 3, 4, 5)).astype(np.float32)
        rows, columns = np.meshgrid(np.linspace(-1, 1, 4), np.linspace(-1, 1, 5), indexing="ij")
        planes = np.broadcast_to(np.stack([rows, columns]), (2, 2, 4, 5))
        self.expect("CoordConvAC", {"x": x}, {"y": np.concatenate([x, planes], 1).astype(np.float32)})

    def test_normalizations(self):
        x = self.random.normal(size=(2, 6, 4, 5)).astype(np.float32)
        scales, bias = self.random.normal(size=(2, 6)).astype(np.float32)
        normal = (x - x.mean((2, 3), keepdims=True)) / np.sqrt(x.var((2, 3), keepdims=True) + 1e-3)
        y = normal * scales[:, None, None] + bias[:, None, None]
        fields = dict(epsilon=1e-3, scales=scales.tolist(), bias=bias.tolist())
        self.expect("InstanceNormalization_TRT", {"x": x}, {"y": y}, plugin_version="3", **fields)
        self.expect("InstanceNormalization_TRT", {"x": x}, {"y": np.where(y < 0, y * 0.25, y)}, relu=1, alpha=0.25, domain="", **fields)
        groups = x.reshape(2, 3, 2, 4, 5)
        groups = (groups - groups.mean((2, 3, 4), keepdims=True)) / np.sqrt(groups.var((2, 3, 4), keepdims=True) + 1e-3)
        y = groups.reshape(x.shape) * scales[:, None, None] + bias[:, None, None]
        self.expect("GroupNormalizationPlugin", {"x": x}, {"y": y}, constants={"gamma": scales, "beta": bias}, eps=1e-3, num_groups=3)

    def test_small_ones(self):
        x = self.random.normal(size=(2, 5, 6)).astype(np.float32)
        self.expect("LReLU_TRT", {"x": x}, {"y": np.where(x < 0, x * np.float32(0.3), x)}, negSlope=0.3)
        self.expect("Clip_TRT", {"x": x}, {"y": np.clip(x, np.float32(-0.5), np.float32(0.7))}, clipMin=-0.5, clipMax=0.7)
        self.expect("SpecialSlice_TRT", {"x": x}, {"y": x[..., :4]})
        indices = self.random.integers(0, 5, (2, 3, 6))
        updates = self.random.normal(size=indices.shape).astype(np.float32)
        y = x.copy()
        for at in np.ndindex(indices.shape):
            y[at[0], indices[at], at[2]] += updates[at]
        self.expect("ScatterElements", {"x": x}, {"y": y}, constants={"i": indices, "u": updates}, reduction="add", axis=1)

    def test_roi_align(self):
        """One sample in the centre of each bin."""
        x = self.random.normal(size=(2, 3, 8, 9)).astype(np.float32)
        regions = np.array([[2, 3, 12, 11], [0, 1, 6, 14]], np.float32)
        images = np.array([1, 0], np.int32)
        y = np.zeros((2, 3, 2, 4), np.float32)
        for r, c, i, j in np.ndindex(y.shape):
            x0, y0, x1, y1 = regions[r] * 0.5 - 0.5
            v, u = y0 + (i + 0.5) * (y1 - y0) / 2, x0 + (j + 0.5) * (x1 - x0) / 4
            y[r, c, i, j] = self.bilinear(x[images[r], c], np.clip(v, 0, 7), np.clip(u, 0, 8))
        self.expect("ROIAlign_TRT", {"x": x}, {"y": y}, constants={"r": regions, "i": images}, output_height=2, output_width=4,
                    sampling_ratio=1, spatial_scale=0.5, mode=1, coordinate_transformation_mode=1, plugin_version="2")

    def test_pyramid_roi_align(self):
        maps = {f"p{i}": self.random.normal(size=(2, 3, n, n + 1)).astype(np.float32) for i, n in enumerate((12, 8, 5, 3))}
        regions = np.array([[[2, 3, 12, 9], [0, 0, 60, 50], [30, 8, 5, 40]], [[1, 1, 100, 80], [9, 9, 9, 9], [-5, 70, 30, 200]]], np.float32)
        for ratio, transform in ((2, 2), (0, 2), (0, 1)):
            y, levels = np.zeros((2, 3, 3, 2, 2), np.float32), set()
            for n, r in np.ndindex(2, 3):
                x0, x1 = np.clip(sorted(regions[n, r, ::2]), 0, 96) / 96
                y0, y1 = np.clip(sorted(regions[n, r, 1::2]), 0, 80) / 80
                level = sum((y1 - y0) * (x1 - x0) > 32 * 32 / (96 * 80) / 4 * 4**i for i in range(3))
                levels.add(level)
                image = maps[f"p{level}"][n]
                offset = 0.5 if transform == 2 else 0
                u0, u1, v0, v1 = (e * image.shape[d] - offset for e, d in ((x0, 2), (x1, 2), (y0, 1), (y1, 1)))
                du, dv = (u1 - u0) / 2, (v1 - v0) / 2
                columns, rows = (ratio or max(1, int(np.ceil(d))) for d in (du, dv))
                for c, i, j, a, b in np.ndindex(3, 2, 2, rows, columns):
                    v = np.clip(v0 + dv * (i + (a + 0.5) / rows), 0, image.shape[1] - 1)
                    u = np.clip(u0 + du * (j + (b + 0.5) / columns), 0, image.shape[2] - 1)
                    y[n, r, c, i, j] += self.bilinear(image[c], v, u) / rows / columns
            self.assertEqual(levels, {0, 1, 2, 3})
            self.expect("PyramidROIAlign_TRT", {"r": regions, **maps}, {"y": y}, tolerance=1e-3, pooled_size=2, image_size=[80, 96],
                        fpn_scale=32, sampling_ratio=ratio, roi_coords_transform=transform)
        self.refuse("PyramidROIAlign_TRT", {"r": regions, **maps}, "roi_coords_transform", legacy=1)

    @staticmethod
    def bilinear(image, v, u):
        """Of an image that is 0 beyond its edges."""
        total = 0.0
        for i, j in np.ndindex(2, 2):
            row, column = int(np.floor(v)) + i, int(np.floor(u)) + j
            if 0 <= row < image.shape[0] and 0 <= column < image.shape[1]:
                total += image[row, column] * max(0, 1 - abs(v - row)) * max(0, 1 - abs(u - column))
        return total

    def test_proposals(self):
        batch, height, width, stride, image = 2, 3, 4, 16, (48, 64)
        sizes, ratios = [16.0, 40.0], [0.5, 1.0, 2.0]
        scores = self.random.permutation(np.linspace(0, 1, 144)).reshape(batch, 6, height, width).astype(np.float32)
        deltas = self.random.normal(size=(batch, 24, height, width)).astype(np.float32) * np.float32(0.5)
        deltas[1, 2::4] -= 1.5  # an image most of whose boxes are too narrow

        def overlap(a, b):  # of boxes whose last pixel is part of them
            extent = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]) + 1, 0)
            shared = extent.prod()
            return shared / ((a[2:] - a[:2] + 1).prod() + (b[2:] - b[:2] + 1).prod() - shared)

        small_ones, unfilled, full = 0, 0, 0
        for before, after, least, limit in ((10, 8, 12.0, 0.3), (72, 50, 0.0, 0.7), (500, 72, 20.0, 0.9)):
            y = np.zeros((batch, after, 4, 1), np.float32)
            for n in range(batch):
                candidates = []
                for a, i, j in np.ndindex(6, height, width):
                    size, ratio = sizes[a // 3], np.sqrt(ratios[a % 3])
                    tx, ty, tw, th = deltas[n, 4 * a:4 * a + 4, i, j].astype(np.float64)
                    w, h = size * ratio * np.exp(tw), size / ratio * np.exp(th)
                    u, v = (j + 0.5) * stride + size * ratio * tx, (i + 0.5) * stride + size / ratio * ty
                    box = np.clip([v - h / 2, u - w / 2, v + h / 2, u + w / 2], 0, np.array(image * 2) - 1)
                    is_small = min(box[2:] - box[:2]) <= least
                    candidates.append((-scores[n, a, i, j] if not is_small else np.inf, len(candidates), box))
                kept = []
                for score, _, box in sorted(candidates, key=lambda c: c[:2])[:before]:
                    if len(kept) < after and all(overlap(other, box) <= limit for other in kept):
                        y[n, len(kept), :, 0] = box / (np.array(image * 2) - 1)
                        kept.append(box)
                        small_ones += score == np.inf
                unfilled, full = unfilled + (len(kept) < after), full + (len(kept) == after)
            fields = dict(input_height=image[0], input_width=image[1], rpn_stride=stride, roi_min_size=least, nms_iou_threshold=limit,
                          pre_nms_top_n=before, post_nms_top_n=after, anchor_sizes=sizes, anchor_ratios=ratios)
            for op in ("Proposal", "ProposalDynamic"):
                self.expect(op, {"scores": scores, "deltas": deltas}, {"y": y}, **fields)
        self.assertTrue(small_ones and unfilled and full)
        inputs = {"scores": scores, "deltas": deltas}
        self.refuse("Proposal", inputs, "roi_min_size", **{**fields, "nms_iou_threshold": 0.0})
        self.refuse("Proposal", inputs, "anchor_sizes", **{**fields, "anchor_sizes": [16.0, -1.0]})
        self.refuse("ProposalDynamic", inputs, "6 and 24 channels, expected 3 and 12", **{**fields, "anchor_sizes": [16.0]})

    def test_crop_and_resize(self):
        x = self.random.normal(size=(2, 3, 6, 7)).astype(np.float32)
        regions = np.array([[[0.1, 0.2, 0.7, 0.9], [0.5, -0.2, 1.3, 0.6]], [[0, 0, 1, 1], [0.9, 0.8, 0.2, 0.1]]], np.float32)[..., None]
        for height, width in ((3, 4), (1, 2)):
            y = np.zeros((2, 2, 3, height, width), np.float32)
            for n, b, c, i, j in np.ndindex(y.shape):
                y0, x0, y1, x1 = regions[n, b, :, 0]
                v = y0 + (i / (height - 1) if height > 1 else 0.5) * (y1 - y0)
                u = x0 + (j / (width - 1) if width > 1 else 0.5) * (x1 - x0)
                if 0 <= v <= 1 and 0 <= u <= 1:
                    y[n, b, c, i, j] = self.bilinear(x[n, c], v * 5, u * 6)
            self.expect("CropAndResizeDynamic", {"x": x, "r": regions}, {"y": y}, crop_height=height, crop_width=width)

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

    def test_deformable_convolution(self):
        for groups, offset_groups in ((1, 1), (2, 4), (2, 1)):
            x = self.random.normal(size=(2, 4, 6, 7)).astype(np.float32)
            offset = self.random.uniform(-1.5, 1.5, (2, offset_groups * 2 * 6, 3, 5)).astype(np.float32)
            mask = self.random.uniform(0, 1, (2, offset_groups * 6, 3, 5)).astype(np.float32)
            weight = self.random.normal(size=(6, 4 // groups, 2, 3)).astype(np.float32)
            bias = self.random.normal(size=6).astype(np.float32)
            y = np.zeros((2, 6, 3, 5), np.float64) + bias[:, None, None]
            for n, c, t, i, j in np.ndindex(2, 4, 6, 3, 5):
                part = c // (4 // offset_groups)  # of the offsets
                v = i * 2 - 1 + t // 3 * 2 + offset[n, (part * 6 + t) * 2, i, j]
                u = j * 1 - 0 + t % 3 * 1 + offset[n, (part * 6 + t) * 2 + 1, i, j]
                sample = mask[n, part * 6 + t, i, j] * self.bilinear(x[n, c], v, u)
                group, within = divmod(c, 4 // groups)
                of_group = slice(group * 6 // groups, (group + 1) * 6 // groups)
                y[n, of_group, i, j] += weight[of_group, within, t // 3, t % 3] * sample
            self.expect("ModulatedDeformConv2d", {"x": x, "offset": offset, "mask": mask}, {"y": y.astype(np.float32)},
                        constants={"w": weight, "b": bias}, stride=[2, 1], padding=[1, 0], dilation=[2, 1], group=groups,
                        deformable_group=offset_groups, plugin_version="2")

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

    def test_prior_boxes(self):
        feature, image = np.zeros((2, 3, 2, 3), np.float32), np.zeros((2, 3, 40, 60), np.float32)
        variance = [0.1, 0.1, 0.2, 0.2]
        for most, clip in (([], 0), ([20.0, 50.0], 1)):
            boxes = []
            for i, j, size in np.ndindex(2, 3, 2):
                least = (10.0, 30.0)[size]
                extents = [(least, least)] + ([(np.sqrt(least * most[size]),) * 2] if most else [])
                extents += [(least * np.sqrt(r), least / np.sqrt(r)) for r in (2, 0.5)]  # width, height
                for w, h in extents:
                    u, v = (j + 0.5) * 20, (i + 0.5) * 20
                    boxes += [(u - w / 2) / 60, (v - h / 2) / 40, (u + w / 2) / 60, (v + h / 2) / 40]
            boxes = np.clip(boxes, 0, 1) if clip else np.array(boxes)
            y = np.stack([boxes, np.tile(variance, len(boxes) // 4)])[None, ..., None].repeat(2, 0).astype(np.float32)
            self.expect("PriorBox_TRT", {"feature": feature, "image": image}, {"y": y}, minSize=[10.0, 30.0],
                        aspectRatios=[1.0, 2.0], flip=1, clip=clip, variance=variance, offset=0.5, **({"maxSize": most} if most else {}))
        self.refuse("PriorBox_TRT", {"feature": feature, "image": image}, "minSize", variance=variance)

    def test_grid_anchors(self):
        feature, ratios, variance = np.zeros((2, 3, 2, 2), np.float32), [1.0, 2.0, 0.5, 3.0], [0.1, 0.1, 0.2, 0.2]
        expected, scales = {}, (0.2, 0.5, 0.8)
        for level, (height, width) in enumerate(((2, 3), (2, 1), (1, 1))):
            sizes = [(0.1, 1.0), (0.2, 2.0), (0.2, 0.5)]
            if level:
                sizes = [(scales[level], r) for r in ratios] + [(np.sqrt(scales[level] * (*scales, 1.0)[level + 1]), 1.0)]
            boxes = []
            for i, j in np.ndindex(height, width):
                for size, r in sizes:
                    u, v, w, h = (j + 0.5) / width, (i + 0.5) / height, size * np.sqrt(r), size / np.sqrt(r)
                    boxes += [u - w / 2, v - h / 2, u + w / 2, v + h / 2]
            boxes = np.stack([boxes, np.tile(variance, len(boxes) // 4)])[None, ..., None].repeat(2, 0)
            expected[f"y{level}"] = boxes.astype(np.float32)
        fields = dict(minSize=0.2, maxSize=0.8, aspectRatios=ratios, variance=variance, numLayers=3)
        self.expect("GridAnchorRect_TRT", {"x": feature}, expected, featureMapShapes=[2, 3, 2, 1, 1, 1], **fields)
        self.refuse("GridAnchor_TRT", {"x": feature}, "featureMapShapes", featureMapShapes=[2, 3], **fields)

    def test_reorg(self):
        x = self.random.normal(size=(2, 3, 4, 6)).astype(np.float32)
        y = np.zeros((2, 12, 2, 3), np.float32)
        for n, c, i, j in np.ndindex(y.shape):
            block, channel = divmod(c, 3)
            y[n, c, i, j] = x[n, channel, 2 * i + block // 2, 2 * j + block % 2]
        self.expect("Reorg_TRT", {"x": x}, {"y": y}, stride=2, plugin_version="2")

    # S258: what is missing is named, with its library and what registers it.
    def test_refusals(self):
        x = np.zeros((1, 4, 4, 4), np.float32)
        self.refuse("GroupNormalizationPlugin", {"x": x}, "eps", constants={"g": np.ones(4, np.float32), "b": np.ones(4, np.float32)},
                    epsilon=0.5)
        self.refuse("LReLU_TRT", {"x": x}, "'negSlope'")
        self.refuse("LReLU_TRT", {"x": x}, "version 7", negSlope=0.5, plugin_version="7")
        self.refuse("LReLU_TRT", {"x": x}, "namespace 'mine'", negSlope=0.5, plugin_namespace="mine")
        self.refuse("EfficientNMS_TRT", {"x": x[0], "scores": x[0]}, "more than 0", **{**self.NMS, "max_output_boxes": 0})
        self.refuse("NoSuch_TRT", {"x": x}, "plugin 'NoSuch_TRT'", "nvinfer_plugin", "initLibNvInferPlugins()")


if __name__ == "__main__":
    unittest.main()
