#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nodes that name standard plugins of TensorRT, against loops that say what each of
them does (in NumPy, one element after the other)."""
import unittest

import numpy as np

from plugin_nodes import PluginNodes


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


class StandardPlugins(PluginNodes):
    NMS = dict(score_threshold=0.3, iou_threshold=0.4, max_output_boxes=6, background_class=-1, score_activation=0, box_coding=0)

    def nms(self, inputs, expected, **fields):
        names = ("count", "boxes_out", "scores_out", "classes")
        self.expect("EfficientNMS_TRT", inputs, dict(zip(names, expected)), **{**self.NMS, **fields})

    # S248, S250: models with this node build here, so that none needs an older version.
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

    # S259: the same boxes as those of ONNX's NonMaxSuppression, which is what this one is.
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
