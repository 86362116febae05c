#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nodes that name standard plugins of TensorRT, against loops that say what each of
them does (in NumPy, one element after the other)."""
import unittest

import numpy as np

from greedy_detections import corner_boxes, detections
from plugin_nodes import PluginNodes


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
        for op, counts in (("EfficientNMS_Explicit_TF_TRT", count), ("EfficientNMS_Implicit_TF_TRT", count[:, 0])):
            self.expect(op, {"boxes": boxes, "scores": scores},
                        {"count": counts, "boxes_out": np.clip(kept, 0, 1), "scores_out": best, "classes": classes}, score_threshold=0.2,
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
            for op in ("BatchedNMSDynamic_TRT", "BatchedNMS_TRT"):
                self.expect(op, {"boxes": boxes, "scores": scores},
                            {"count": count, "kept": np.clip(kept, 0, 1), "best": best, "classes": classes.astype(np.float32)},
                            **{**fields, "shareLocation": shared})
        pixels = np.rint(boxes[..., [2, 1, 0, 3]] * 10).astype(np.float32)  # any two opposite corners
        how = dict(score=0.25, overlap=0.3, most=12, background=0, candidates=12, strict=True, empty_class=-1)
        wanted, other = detections(pixels, scores, pixel=1, **how), detections(pixels, scores, **how)
        self.assertFalse(all(np.array_equal(a, b) for a, b in zip(wanted, other)))
        count, kept, best, classes = wanted
        self.expect("BatchedNMSDynamic_TRT", {"boxes": pixels, "scores": scores},
                    {"count": count, "kept": kept, "best": best, "classes": classes.astype(np.float32)},
                    **{**fields, "shareLocation": 0, "isNormalized": 0, "clipBoxes": 0, "iouThreshold": 0.3, "topK": 12, "keepTopK": 12})
        self.model("BatchedNMSDynamic_TRT", {"boxes": pixels, "scores": scores}, ["count", "kept", "best", "classes"],
                   **{**fields, "shareLocation": 0, "isNormalized": 0, "caffeSemantics": 0})
        self.assertIn("a pixel wider and higher in TensorRT", self.build({"boxes": pixels, "scores": scores}).stderr)

    def test_boxes_that_are_none(self):
        boxes, scores = np.zeros((2, 12, 1, 4), np.float32), np.zeros((2, 12, 3), np.float32)
        for texts, inputs in ((("input 0", "batch, anchors, 4"), {"boxes": boxes[:, :, 0, :3], "scores": scores}),
                              (("input 0", "batch, anchors, classes, 4"), {"boxes": boxes.repeat(2, 2), "scores": scores}),
                              (("input 0", "[n, 11, 4]"), {"boxes": boxes[:, :, 0], "scores": scores[:, :11]}),
                              (("input 1", "batch, anchors, classes, 1"), {"boxes": boxes, "scores": scores[..., None].repeat(2, 3)})):
            self.refuse("EfficientNMS_TRT", inputs, *texts, **self.NMS)
        self.refuse("EfficientNMS_TRT", {"boxes": boxes, "scores": scores}, "input 2", "1, anchors, 4",
                    constants={"anchors": np.zeros((1, 1, 4), np.float32)}, **self.NMS)
        self.refuse("EfficientNMS_TRT", {"boxes": boxes, "scores": scores}, "'max_output_boxes' is 1048577, expected 1 to 1048576",
                    **{**self.NMS, "max_output_boxes": 1048577})
        self.refuse("EfficientNMS_TRT", {"boxes": boxes, "scores": scores}, "'score_threshold' is nan, expected 0 or more",
                    **{**self.NMS, "score_threshold": np.nan})
        fields = dict(shareLocation=1, backgroundLabelId=0, numClasses=3, topK=5, keepTopK=4, scoreThreshold=0.25, iouThreshold=0.5)
        for texts, shown, more in ((("input 1", "[n, 12, 4]: batch, anchors, numClasses"), boxes, {"numClasses": 4}),
                                   (("input 0", "1 with shareLocation"), boxes.repeat(3, 2), {}),
                                   (("input 0", "[n, 12, 3, 4]: batch, anchors, numClasses, 4"), boxes, {"shareLocation": 0}),
                                   (("input 0 has 3 dimensions, expected 4",), boxes[:, :, 0], {"shareLocation": 0}),
                                   (("'topK' is 0, expected 1 to",), boxes, {"topK": 0})):
            self.refuse("BatchedNMS_TRT", {"boxes": shown, "scores": scores}, *texts, **{**fields, **more})

    def test_more_candidates_than_boxes(self):
        """Room is for those that there are."""
        boxes, scores = corner_boxes(self.random, 2, 12, 1), self.random.permutation(np.linspace(0, 1, 72)).reshape(2, 12, 3).astype(np.float32)
        count, kept, best, classes = detections(boxes, scores, score=0.25, overlap=0.5, most=4, strict=True, empty_class=-1)
        self.expect("BatchedNMS_TRT", {"boxes": boxes, "scores": scores},
                    {"count": count, "kept": np.clip(kept, 0, 1), "best": best, "classes": classes.astype(np.float32)}, shareLocation=1,
                    backgroundLabelId=-1, numClasses=3, topK=1048576, keepTopK=4, scoreThreshold=0.25, iouThreshold=0.5)

    def test_thresholds_that_no_probability_or_each_is_above(self):
        """By what they mean of probabilities, for a logit of such a threshold is none."""
        boxes = np.array([[[0, 0, 1, 1], [2, 2, 3, 3], [4, 4, 5, 5]]], np.float32)
        scores = np.array([[[-40], [0.5], [40]]], np.float32)
        for threshold in (0.0, 1.5, np.inf):
            expected = detections(boxes[:, :, None], scores, score=threshold, overlap=0.5, most=6, logits=True)
            self.assertEqual(expected[0], 0 if threshold else 3)
            if threshold < np.inf:
                self.nms({"boxes": boxes, "scores": scores}, expected, score_threshold=threshold, iou_threshold=0.5, score_activation=1)
        fields = dict(shareLocation=1, varianceEncodedInTarget=1, backgroundLabelId=-1, numClasses=1, topK=3, keepTopK=3, nmsThreshold=0.5,
                      codeType=0, confSigmoid=1, isNormalized=0)
        inputs = {"loc": np.zeros((1, 12, 1, 1), np.float32), "priors": np.stack([boxes.reshape(1, -1)] * 2, 1)[..., None],
                  "scores": scores.reshape(1, 3, 1, 1)}
        for threshold, found in ((-0.5, 3), (0.0, 3), (1.5, 0)):
            self.expect("NMSDynamic_TRT", inputs, {"rows": self.rows_of_ssd(boxes, scores, found), "count": np.array([[[[found]]]], np.int32)},
                        inputOrder=[0, 2, 1], confidenceThreshold=threshold, **fields)

    @staticmethod
    def rows_of_ssd(boxes, scores, found):
        """Of one image and class: those found, best first."""
        rows = np.zeros((1, 1, 3, 7), np.float32)
        rows[..., 1] = -1
        for row, i in zip(rows[0, 0], np.argsort(-scores.ravel())[:found]):
            row[1:] = [0, 1 / (1 + np.exp(-scores.ravel()[i])), *np.clip(boxes[0, i], 0, 1)]
        return rows

    @staticmethod
    def decoded(loc, priors, variance, coding):
        """loc[B, N, L, 4], priors[B, N, 4] and what offsets are multiplied by, [B, N, 4]."""
        boxes = np.zeros(loc.shape)
        for n, i, k in np.ndindex(loc.shape[:3]):
            (x0, y0, x1, y1), offset = priors[n, i].astype(np.float64), (loc[n, i, k] * variance[n, i]).astype(np.float64)
            if coding == 3:
                u, v, w, h = loc[n, i, k][[1, 0, 3, 2]] * variance[n, i]
                offset, coding_of_box = np.array([u, v, w, h], np.float64), 1
            else:
                coding_of_box = coding
            if coding_of_box == 0:
                boxes[n, i, k] = np.array([x0, y0, x1, y1]) + offset
            elif coding_of_box == 2:
                boxes[n, i, k] = np.array([x0, y0, x1, y1]) + offset * [x1 - x0, y1 - y0, x1 - x0, y1 - y0]
            else:
                u, v = (x0 + x1) / 2 + offset[0] * (x1 - x0), (y0 + y1) / 2 + offset[1] * (y1 - y0)
                w, h = np.exp(offset[2:]) * [x1 - x0, y1 - y0]
                boxes[n, i, k] = [u - w / 2, v - h / 2, u + w / 2, v + h / 2]
        return boxes.astype(np.float32)

    def test_detections_of_ssd(self):
        batch, anchors, classes = 2, 9, 3
        scores = self.random.permutation(np.linspace(0.02, 0.98, 54)).reshape(batch, anchors, classes).astype(np.float32)
        scores[1] *= 0.43
        priors = corner_boxes(self.random, batch, anchors)
        variance = self.random.uniform(0.1, 0.3, (batch, anchors, 4)).astype(np.float32)
        fields = dict(varianceEncodedInTarget=0, backgroundLabelId=0, numClasses=classes, topK=5, keepTopK=4, confidenceThreshold=0.4,
                      nmsThreshold=0.3)

        def check(op, order, sets, coding, *, both=True, shown=scores, given=scores, **more):
            loc = self.random.normal(size=(batch, anchors, sets, 4)).astype(np.float32)
            used = priors if both else np.broadcast_to(priors[:1], priors.shape)
            factors = np.ones_like(variance) if more.get("varianceEncodedInTarget") else variance if both else variance[:1].repeat(2, 0)
            boxes = self.decoded(loc, used, factors, coding)
            count, kept, best, labels = detections(boxes, shown, score=0.4, overlap=0.3, most=4, background=0, candidates=5, strict=True,
                                                   empty_class=-1)
            rows = np.concatenate([np.repeat(np.arange(2.0), 4).reshape(2, 4, 1), labels[..., None], best[..., None], np.clip(kept, 0, 1)], 2)
            parts = {"loc": loc.reshape(batch, -1, 1, 1), "scores": given.reshape(batch, -1, 1, 1),
                     "priors": np.stack([priors.reshape(batch, -1), variance.reshape(batch, -1)], 1)[..., None]}
            names = [list(parts)[order.index(i)] for i in range(3)]
            self.expect(op, {name: parts[name] for name in names}, {"rows": rows[:, None].astype(np.float32), "count": count.reshape(2, 1, 1, 1)},
                        **{**fields, "shareLocation": int(sets == 1), "inputOrder": list(order), "codeType": coding, **more})
            return count
        self.assertLess(min(check("NMSDynamic_TRT", (0, 1, 2), 1, coding).min() for coding in range(4)), 4)
        check("NMSDynamic_TRT", (0, 2, 1), classes, 1)
        check("NMSDynamic_TRT", (2, 0, 1), 1, 1, varianceEncodedInTarget=1)
        check("NMSDynamic_TRT", (0, 1, 2), 1, 2, confSigmoid=1, given=np.log(scores / (1 - scores)))
        check("NMS_TRT", (0, 1, 2), 1, 3, both=False)
        check("NMS_TRT", (0, 1, 2), 1, 0, isBatchAgnostic=0)
        parts = {"a": np.zeros((1, 8, 1, 1), np.float32), "b": np.zeros((1, 6, 1, 1), np.float32), "c": np.zeros((1, 2, 8, 1), np.float32)}
        for text, more in (("inputOrder", {"inputOrder": [0, 1, 1]}), ("'codeType' is 4", {"codeType": 4}), ("'keepTopK' is 9", {"keepTopK": 9})):
            self.refuse("NMS_TRT", parts, text, **{**fields, "shareLocation": 1, **more})
        for texts, more in ((("input 0", "[n, 24, 1, 1]", "anchors x numClasses x 4"), {"shareLocation": 0}),
                            (("input 1", "[n, 8, 1, 1]", "anchors x numClasses"), {"numClasses": 4})):
            self.refuse("NMS_TRT", parts, *texts, **{**fields, "shareLocation": 1, "inputOrder": [0, 1, 2], **more})

    def test_region(self):
        x = self.random.normal(size=(2, 2 * 8, 3, 4)).astype(np.float32)
        y = x.copy().reshape(2, 2, 8, 3, 4)
        for n, box, i, j in np.ndindex(2, 2, 3, 4):
            cell = y[n, box, :, i, j]
            cell[[0, 1, 4]] = 1 / (1 + np.exp(-cell[[0, 1, 4]]))
            cell[5:] = np.exp(cell[5:]) / np.exp(cell[5:]).sum()
        self.expect("Region_TRT", {"x": x}, {"y": y.reshape(x.shape)}, num=2, coords=4, classes=3)
        self.refuse("Region_TRT", {"x": x}, "[n, 18, 3, 4]: batch, num x (coords + 1 + classes)", num=2, coords=4, classes=4)
        self.refuse("Region_TRT", {"x": x}, "coords 3 is not supported; 4 is", num=2, coords=3, classes=4)

    def test_coordinates(self):
        x = self.random.normal(size=(2, 3, 4, 5)).astype(np.float32)
        rows, columns = np.meshgrid(np.linspace(-1, 1, 4), np.linspace(-1, 1, 5), indexing="ij")
        planes = np.broadcast_to(np.stack([rows, columns]), (2, 2, 4, 5))
        self.expect("CoordConvAC", {"x": x}, {"y": np.concatenate([x, planes], 1).astype(np.float32)})
        planes = np.stack([np.full((1, 5), -1), np.linspace(-1, 1, 5)[None]])[None].repeat(2, 0)  # of one row
        self.expect("CoordConvAC", {"x": x[:, :, :1]}, {"y": np.concatenate([x[:, :, :1], planes], 1).astype(np.float32)})
        self.refuse("CoordConvAC", {"x": x[0]}, "input 0 has 3 dimensions, expected 4: batch, channels, height, width")

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

    def test_ssd_normalization(self):
        x = self.random.normal(size=(2, 5, 3, 4)).astype(np.float32)
        weights = self.random.uniform(0.5, 2, 5).astype(np.float32)
        for across, shared in ((0, 0), (0, 1), (1, 1), (1, 0)):
            scale = weights[:1] if shared else weights[:, None, None]
            root = np.sqrt((x.astype(np.float64) ** 2).sum((1, 2, 3) if across else 1, keepdims=True) + 1e-3)
            y = x / root / scale if across and not shared else x / root * scale
            self.expect("Normalize_TRT", {"x": x}, {"y": y.astype(np.float32)}, weights=weights[:1 if shared else 5].tolist(),
                        acrossSpatial=across, channelShared=shared, nbWeights=1, eps=1e-3)
        self.refuse("Normalize_TRT", {"x": x}, "5 numbers", weights=weights.tolist(), acrossSpatial=0, channelShared=1, eps=1e-3)

    def test_resize_nearest(self):
        x = self.random.normal(size=(2, 3, 5, 4)).astype(np.float32)
        for scale in (2.0, 1.5, 0.6):
            rows, columns = (np.array([int(i / np.float32(scale)) for i in range(int(n * np.float32(scale)))]) for n in x.shape[2:])
            self.expect("ResizeNearest_TRT", {"x": x}, {"y": x[:, :, rows][..., columns]}, scale=scale)
        self.refuse("ResizeNearest_TRT", {"x": x}, "'scale' is -1", scale=-1.0)

    def test_flatten_and_concat(self):
        for axis, shapes in ((1, ((2, 3, 4), (5, 3, 4), (1, 3, 4))), (2, ((1, 3, 4), (1, 2, 4))), (3, ((1, 1, 4), (1, 1, 3)))):
            parts = {f"x{i}": self.random.normal(size=(2, *shape)).astype(np.float32) for i, shape in enumerate(shapes)}
            y = np.concatenate([x.reshape(2, -1) for x in parts.values()], 1)
            shape = [2, 1, 1, 1]
            shape[axis] = -1
            self.expect("FlattenConcat_TRT", parts, {"y": y.reshape(shape)}, axis=axis, ignoreBatch=0)
        x = np.zeros((2, 3, 4, 5), np.float32)
        self.refuse("FlattenConcat_TRT", {"x": x}, "axis 2", "dimension 1 of 3", axis=2, ignoreBatch=0)
        self.refuse("FlattenConcat_TRT", {"x": x}, "ignoreBatch 1", axis=1, ignoreBatch=1)

    def test_topk(self):
        x = self.random.permutation(np.arange(60.0)).reshape(3, 4, 5).astype(np.float32)
        for axis, largest in ((-1, 1), (1, 0), (0, 1)):
            order = np.argsort(-x if largest else x, axis).astype(np.int32)
            index = np.take(order, range(2), axis)
            self.expect("TopkLastDim", {"x": x}, {"y": np.take_along_axis(x, index, axis), "i": index}, type_id=0, k=2, is_largest=largest,
                        fixed={"x"} if axis == 0 else (), **({} if axis == -1 else {"axis": axis}))
        self.refuse("TopkLastDim", {"x": x}, "type_id is 1", "f32", type_id=1, k=2, is_largest=1)

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

    def test_deformable_convolution_of_other_shapes(self):
        op, fields = "ModulatedDeformConv2d", dict(stride=[1, 1], padding=[1, 0], dilation=[1, 1], group=1, deformable_group=1)
        x, offset, mask, w, b = (np.zeros(dims, np.float32) for dims in
                                 ((1, 4, 6, 7), (1, 12, 7, 5), (1, 6, 7, 5), (6, 4, 2, 3), (6,)))
        inputs = {"x": x, "offset": offset, "mask": mask}
        for other, texts in (({"offset": offset[:, :6]}, ("its offset has the shape [n, 6, 7, 5]", "[n, 12, 7, 5]")),
                             ({"offset": offset[:, :, 1:]}, ("its offset has the shape [n, 12, 6, 5]", "[n, 12, 7, 5]")),
                             ({"mask": mask[:, :1]}, ("its mask has the shape [n, 1, 7, 5]", "[n, 6, 7, 5]")),
                             ({"mask": mask[..., :1]}, ("its mask has the shape [n, 6, 7, 1]", "[n, 6, 7, 5]")),
                             ({"x": x[:, :2]}, ("its input has the shape [n, 2, 6, 7]", "[n, 4, 6, 7]"))):
            self.refuse(op, {**inputs, **other}, *texts, constants={"w": w, "b": b}, **fields)
        self.refuse(op, inputs, "its bias has the shape [1]", "must have [6]", constants={"w": w, "b": b[:1]}, **fields)
        for field, number in (("group", 4), ("deformable_group", 3)):
            self.refuse(op, inputs, "groups of offsets", "6 results", constants={"w": w, "b": b}, **{**fields, field: number})

    def test_reorg(self):
        x = self.random.normal(size=(2, 3, 4, 6)).astype(np.float32)
        y = np.zeros((2, 12, 2, 3), np.float32)
        for n, c, i, j in np.ndindex(y.shape):
            block, channel = divmod(c, 3)
            y[n, c, i, j] = x[n, channel, 2 * i + block // 2, 2 * j + block % 2]
        for version in "12":
            self.expect("Reorg_TRT", {"x": x}, {"y": y}, stride=2, plugin_version=version)

    # S258: what is missing is named, with its library and what registers it.
    def test_refusals(self):
        x = np.zeros((1, 4, 4, 4), np.float32)
        self.refuse("GroupNormalizationPlugin", {"x": x}, "eps", constants={"g": np.ones(4, np.float32), "b": np.ones(4, np.float32)},
                    epsilon=0.5)
        self.refuse("LReLU_TRT", {"x": x}, "'negSlope'")
        self.refuse("LReLU_TRT", {"x": x}, "version 7", negSlope=0.5, plugin_version="7")
        self.refuse("LReLU_TRT", {"x": x}, "namespace 'mine'", negSlope=0.5, plugin_namespace="mine")
        self.refuse("EfficientNMS_TRT", {"x": x[0], "scores": x[0]}, "'max_output_boxes' is 0, expected 1 to", **{**self.NMS, "max_output_boxes": 0})
        for op, instead in (("DetectionLayer_TRT", "EfficientNMS_TRT"), ("RPROI_TRT", "ROIAlign_TRT"), ("BatchTilePlugin_TRT", "Expand")):
            self.refuse(op, {"x": x}, f"'{op}' is a plugin", "up to version 1", f"{instead} in its place", "loadLibrary()")
        self.refuse("NoSuch_TRT", {"x": x}, "plugin 'NoSuch_TRT'", "nvinfer_plugin", "initLibNvInferPlugins()")


if __name__ == "__main__":
    unittest.main()
