#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nodes that name standard plugins of TensorRT for boxes and what lies in them, against loops that
say what each of them does (in NumPy, one element after the other)."""
import unittest

import numpy as np

from plugin_nodes import PluginNodes


class BoxPlugins(PluginNodes):
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

    PYRAMID = dict(pooled_size=2, image_size=[80, 96], fpn_scale=32)

    def pyramid(self, maps, regions, *, ratio, transform, threshold=32 * 32 / (96 * 80) / 4, plus=(0, 0), size=2):
        """Of regions x0, y0, x1, y1 in parts of the image."""
        y, levels = np.zeros((*regions.shape[:2], 3, size, size), np.float32), set()
        for n, r in np.ndindex(*regions.shape[:2]):
            x0, x1 = np.clip(sorted(regions[n, r, ::2]), 0, 1)
            y0, y1 = np.clip(sorted(regions[n, r, 1::2]), 0, 1)
            level = sum((y1 - y0 + plus[0]) * (x1 - x0 + plus[1]) > threshold * 4**i for i in range(3))
            levels.add(level)
            image = maps[f"p{level}"][n]
            less, bins, middle = (1, size - 1, 0) if transform == -1 else (0, size, 0.5 if transform else 0)
            offset = 0.5 if transform == 2 else 0
            u0, u1, v0, v1 = (e * (image.shape[d] - less) - offset for e, d in ((x0, 2), (x1, 2), (y0, 1), (y1, 1)))
            columns, rows = (ratio or max(1, int(np.ceil(d / size))) for d in (u1 - u0, v1 - v0))
            du, dv = (u1 - u0) / bins, (v1 - v0) / bins
            for c, i, j, a, b in np.ndindex(3, size, size, rows, columns):
                v = np.clip(v0 + dv * (i + (a + middle) / rows), 0, image.shape[1] - 1)
                u = np.clip(u0 + du * (j + (b + middle) / columns), 0, image.shape[2] - 1)
                y[n, r, c, i, j] += self.bilinear(image[c], v, u) / rows / columns
        self.assertEqual(levels, {0, 1, 2, 3})
        return y

    def test_pyramid_roi_align(self):
        op = "PyramidROIAlign_TRT"
        maps = {f"p{i}": self.random.normal(size=(2, 3, n, n + 1)).astype(np.float32) for i, n in enumerate((12, 8, 5, 3))}
        regions = np.array([[[2, 3, 12, 9], [0, 0, 60, 50], [30, 8, 5, 40]], [[1, 1, 100, 80], [9, 9, 9, 9], [-5, 70, 30, 200]]], np.float32)
        parts = regions / np.array([96, 80, 96, 80], np.float32)
        for ratio, transform in ((2, 2), (0, 2), (0, 1), (0, 0), (3, 0), (1, 0), (1, -1)):
            y = self.pyramid(maps, parts, ratio=ratio, transform=transform)
            self.expect(op, {"r": regions, **maps}, {"y": y}, tolerance=1e-3, sampling_ratio=ratio, roi_coords_transform=transform,
                        **self.PYRAMID)
        swapped = np.ascontiguousarray(parts[..., [1, 0, 3, 2]])
        y = self.pyramid(maps, parts, ratio=2, transform=0, plus=(1 / 80, 1 / 96))
        self.expect(op, {"r": swapped, **maps}, {"y": y}, tolerance=1e-3, sampling_ratio=2, roi_coords_transform=0, roi_coords_swap=1,
                    roi_coords_plusone=1, roi_coords_absolute=0, **self.PYRAMID)
        # Regions whose bins are whole pixels have as many samples; one more would be another mean.
        whole = np.array([[[0.25, 0.25, 0.75, 0.75]] * 4] * 2, np.float32)
        whole[:, 1:, 2:] = 0.25 + np.array([[1 / 12], [1 / 6], [1 / 4]])
        maps = {f"p{i}": self.random.normal(size=(2, 3, n, n)).astype(np.float32) for i, n in enumerate((48, 24, 16, 8))}
        y = self.pyramid(maps, whole, ratio=0, transform=2, threshold=1 / 100)
        self.expect(op, {"r": whole, **maps}, {"y": y}, tolerance=1e-3, roi_coords_absolute=0, pooled_size=2, image_size=[100, 100],
                    fpn_scale=20)

    def test_pyramid_roi_align_in_half_precision(self):
        """Places are worked out in f32: on wide maps, those of 16 bits are pixels apart."""
        maps = {f"p{i}": self.random.normal(size=(1, 3, 4, n)).astype(np.float16) for i, n in enumerate((1500, 900, 40, 20))}
        parts = np.array([[[0.9, 0.25, 0.901, 0.5], [0.7, 0.2, 0.72, 0.9], [0.5, 0, 0.75, 1], [0.2, 0.2, 0.25, 0.25]]], np.float16)
        fields = dict(roi_coords_absolute=0, pooled_size=2, image_size=[1000, 1000], fpn_scale=64, sampling_ratio=2)
        y = self.pyramid({name: x.astype(np.float32) for name, x in maps.items()}, parts.astype(np.float32), ratio=2, transform=2,
                         threshold=64 * 64 / 1e6 / 4)
        self.expect("PyramidROIAlign_TRT", {"r": parts, **maps}, {"y": y.astype(np.float16)}, tolerance=4e-3, **fields)
        self.refuse("PyramidROIAlign_TRT", {"r": parts, **maps, "p2": maps["p2"].astype(np.float32)}, "input 3 has type f32, expected f16",
                    **fields)
        self.refuse("PyramidROIAlign_TRT", {"r": parts[..., :3], **maps}, "but must have [n, 4, 4]: batch, regions, 4", **fields)
        self.refuse("PyramidROIAlign_TRT", {"r": parts, **maps, "p2": maps["p2"][:, :2]}, "input 3", "batch, channels", **fields)
        self.refuse("PyramidROIAlign_TRT", {"r": parts, **maps}, "'image_size' has 1 numbers, expected 2", **{**fields, "image_size": [9]})

    def test_pyramid_roi_align_of_regions_without_extent(self):
        """They are sampled where they are, however far that is from the map's edge."""
        maps = {f"p{i}": self.random.normal(size=(1, 3, 2, n)).astype(np.float32) for i, n in enumerate((3000, 20, 20, 20))}
        y = np.zeros((1, 3, 3, 2, 2), np.float32)
        regions = np.zeros((1, 3, 4), np.float32)
        for r, at in enumerate((5.25, 1500.5, 2900.75)):
            regions[0, r] = [at / 3000, 0.5, at / 3000, 0.5]
            for c in range(3):
                y[0, r, c] = self.bilinear(maps["p0"][0, c], 0.5, at - 0.5)
        for ratio in (0, 2):
            self.expect("PyramidROIAlign_TRT", {"r": regions, **maps}, {"y": y}, tolerance=3e-3, roi_coords_absolute=0, pooled_size=2,
                        sampling_ratio=ratio)

    def test_pyramid_roi_align_of_old_models(self):
        """Field legacy goes before the others, but for the size."""
        maps = {f"p{i}": self.random.normal(size=(2, 3, n, n + 2)).astype(np.float32) for i, n in enumerate((16, 8, 6, 3))}
        parts = self.random.uniform(0, 1, (2, 9, 4)).astype(np.float32) ** 3
        y = self.pyramid(maps, parts, ratio=1, transform=-1, threshold=224 * 224 * 2 / 1024**2 / 16, size=3)
        swapped = np.ascontiguousarray(parts[..., [1, 0, 3, 2]])
        for fields in ({}, {"roi_coords_transform": 2, "roi_coords_plusone": 1, "sampling_ratio": 4, "fpn_scale": 300}):
            self.expect("PyramidROIAlign_TRT", {"r": swapped, **maps}, {"y": y}, tolerance=1e-3, legacy=1, pooled_size=3, **fields)
        for texts, fields in ((("'roi_coords_transform' is 3, expected -1 to 2",), {"roi_coords_transform": 3}),
                              (("roi_coords_transform -1", "sampling_ratio 0", "and 1 are"), {"roi_coords_transform": -1}),
                              (("pooled_size 1", "2 or more"), {"legacy": 1, "pooled_size": 1}),
                              (("'sampling_ratio' is -1, expected 0 to",), {"sampling_ratio": -1})):
            self.refuse("PyramidROIAlign_TRT", {"r": swapped, **maps}, *texts, **fields)

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
        self.refuse("Proposal", inputs, "'nms_iou_threshold' is 0, expected more than 0", **{**fields, "nms_iou_threshold": 0.0})
        self.refuse("Proposal", inputs, "'anchor_sizes' has -1", **{**fields, "anchor_sizes": [16.0, -1.0]})
        self.refuse("Proposal", inputs, "'anchor_ratios' has no numbers", **{**fields, "anchor_ratios": []})
        self.refuse("Proposal", inputs, "100 x 100 are too many, expected 4096 or less",
                    **{**fields, "anchor_sizes": [16.0] * 100, "anchor_ratios": [1.0] * 100})
        self.refuse("ProposalDynamic", inputs, "input 0", "but must have [n, 3, 3, 4]: batch, anchor_sizes x anchor_ratios",
                    **{**fields, "anchor_sizes": [16.0]})

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
            for op in ("CropAndResizeDynamic", "CropAndResize"):
                self.expect(op, {"x": x, "r": regions}, {"y": y}, crop_height=height, crop_width=width)
        for texts, r, fields in ((("input 1", "but must have [n, 2, 4, 1]: batch, regions, 4, 1"), regions[:, :, [0, 1, 2, 3, 3]], {}),
                                 (("input 1 has 3 dimensions, expected 4",), regions[..., 0], {}),
                                 (("'crop_height' is 0, expected 1 to 16384",), regions, {"crop_height": 0}),
                                 (("16000 x 16000 are too many",), regions, {"crop_height": 16000, "crop_width": 16000})):
            self.refuse("CropAndResize", {"x": x, "r": r}, *texts, **{"crop_height": 2, "crop_width": 2, **fields})

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
        inputs, fields = {"feature": feature, "image": image}, dict(minSize=[10.0, 30.0], variance=variance)
        self.refuse("PriorBox_TRT", inputs, "needs field 'minSize'", variance=variance)
        for text, wrong in (("'minSize' has no numbers", {"minSize": []}), ("'minSize' has 0, expected more than 0", {"minSize": [0.0]}),
                            ("'maxSize' has 1 numbers, expected none or 2", {"maxSize": [20.0]}),
                            ("'aspectRatios' has nan", {"aspectRatios": [np.nan]}), ("'imgH' is -3", {"imgH": -3}),
                            ("'variance' has 3 numbers, expected 4", {"variance": [0.1] * 3}),
                            ("'stepH' is inf, expected 0 or more", {"stepH": np.inf}),
                            ("2 x 3000 are too many", {"aspectRatios": [float(i + 2) for i in range(3000)]})):
            self.refuse("PriorBox_TRT", inputs, text, **{**fields, **wrong})
        wide = {"feature": np.broadcast_to(np.float32(0), (1, 1, 1000, 1000)), "image": image[:1]}
        self.refuse("PriorBox_TRT", wide, "boxes of a map: 1000 x 1000 x 2 are too many, expected 1048576 or less", **fields)
        self.refuse("PriorBox_TRT", {**inputs, "image": image[..., 0]}, "input 1 has 3 dimensions, expected 4", **fields)
        # A map without places has no boxes.
        self.expect("PriorBox_TRT", {"feature": feature[:, :, :0], "image": image}, {"y": np.zeros((2, 2, 0, 1), np.float32)}, **fields)

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
        self.refuse("GridAnchor_TRT", {"x": feature}, "'featureMapShapes' has 2 numbers, expected 3 for 3 maps", featureMapShapes=[2, 3],
                    **fields)
        fields["featureMapShapes"] = [2, 2, 1]
        for text, wrong in (("'aspectRatios' has no numbers", {"aspectRatios": []}),
                            ("'aspectRatios' has 2 numbers, expected 3 or more", {"aspectRatios": [1.0, 2.0]}),
                            ("'numLayers' is 1, expected 2 to 64", {"numLayers": 1}), ("'numLayers' is 65", {"numLayers": 65}),
                            ("'featureMapShapes' has 0, expected 1 to 2048", {"featureMapShapes": [2, 2, 0]}),
                            ("boxes of a map: 2048 x 2048 x 3 are too many", {"featureMapShapes": [2048, 2, 1]}),
                            ("'variance' has 0 numbers, expected 4", {"variance": []})):
            self.refuse("GridAnchor_TRT", {"x": feature}, text, **{**fields, **wrong})


if __name__ == "__main__":
    unittest.main()
