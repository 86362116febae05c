#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nodes that name the standard plugins of TensorRT for PointPillars, against loops that say what
each of them does (in NumPy, one element after the other)."""
import unittest

import numpy as np

from plugin_nodes import PluginNodes

F32 = np.float32


class PillarPlugins(PluginNodes):
    def voxels(self, points, counts, low, high, size, cells, most, each, features):
        """Of cells in their order, and of the points of each in theirs, the first ones."""
        images = len(points)
        found = np.zeros((images, most, each, features))
        coordinates, numbers = np.zeros((images, most, 4), np.int32), np.zeros(images, np.int32)
        dropped = 0
        for n in range(images):
            of_cell = {}
            for point in points[n, :counts[n]]:
                if (point[:3] >= low).all() and (point[:3] < high).all():
                    x, y = (int(np.floor((point[d] - low[d]) / size[d])) for d in range(2))
                    of_cell.setdefault((y, x), []).append(point.astype(np.float64))
            dropped += max(len(of_cell) - most, 0) + sum(max(len(p) - each, 0) for p in of_cell.values())
            numbers[n] = min(len(of_cell), most)
            for v, ((y, x), here) in enumerate(sorted(of_cell.items())[:most]):
                coordinates[n, v] = 0, 0, y, x
                here = np.array(here[:each])
                mean = here[:, :3].mean(0)
                center = np.array([x, y, 0]) * size + size / 2 + low
                parts = np.concatenate([here, here[:, :3] - mean, here[:, :3] - center], 1)
                found[n, v, :len(here)] = parts[:, :features]
        return found.astype(F32), coordinates, numbers, dropped

    def test_voxels(self):
        low, high, size = np.array([-2, -1, -3], F32), np.array([2, 2, 1], F32), np.array([0.5, 0.75, 4], F32)
        dropped = 0
        for channels, more, most, each in ((4, 6, 40, 1), (4, 5, 7, 2), (5, 6, 1, 1), (5, 5, 32, 20)):
            points = self.random.uniform(-2.5, 2.5, (3, 60, channels)).astype(F32)
            points[..., 2] *= 0.5
            counts = np.array([60, 0, 33], np.int32)
            *expected, lost = self.voxels(points, counts, low, high, size, (8, 4), most, each, channels + more)
            dropped += lost > 0
            self.expect("VoxelGeneratorPlugin", {"points": points, "counts": counts}, dict(zip(("voxels", "where", "number"), expected)),
                        max_num_points_per_voxel=each, max_voxels=most, point_cloud_range=[*low.tolist(), *high.tolist()],
                        voxel_feature_num=channels + more, voxel_size=size.tolist())
        self.assertGreaterEqual(dropped, 3)
        fields = dict(max_num_points_per_voxel=2, max_voxels=3, point_cloud_range=[0.0] * 3 + [1.0] * 3, voxel_feature_num=10,
                      voxel_size=[0.5] * 3)
        self.refuse("VoxelGeneratorPlugin", {"points": points, "counts": counts}, "points of 5", "voxel_feature_num 9",
                    **{**fields, "voxel_feature_num": 9})
        inputs = {"points": points, "counts": counts}
        for text, wrong in (("'voxel_size' has 0, expected more than 0", {"voxel_size": [0.0] * 3}),
                            ("'point_cloud_range' has inf, expected a finite number", {"point_cloud_range": [0.0] * 3 + [1.0, np.inf, 1.0]}),
                            ("'point_cloud_range' has nan", {"point_cloud_range": [np.nan] * 3 + [1.0] * 3}),
                            ("'point_cloud_range' has 5 numbers, expected 6", {"point_cloud_range": [0.0] * 5}),
                            ("from 0 to 1 along axis 0, and voxel_size is 1e-30", {"voxel_size": [1e-30] * 3}),
                            ("from 0 to 1e+30 along axis 1", {"point_cloud_range": [0.0] * 3 + [1.0, 1e30, 1.0]}),
                            ("from 0 to -1 along axis 2", {"point_cloud_range": [0.0] * 3 + [1.0, 1.0, -1.0]}),
                            ("numbers of voxels: 1000000 x 100000 x 10 are too many", {"max_voxels": 10**6, "max_num_points_per_voxel": 10**5}),
                            ("'max_voxels' is 0, expected 1 to 1048576", {"max_voxels": 0})):
            self.refuse("VoxelGeneratorPlugin", inputs, text, **{**fields, **wrong})
        self.refuse("VoxelGeneratorPlugin", {"points": points, "counts": counts[:, None]}, "input 1 has 2 dimensions, expected 1", **fields)

    def test_scattered_pillars(self):
        height, width = 4, 5
        counts = np.array([6, 0, 9], np.int32)
        coordinates = np.zeros((3, 9, 4), np.int32)
        y = np.zeros((3, 7, height, width), F32)
        voxels = self.random.normal(size=(3, 9, 7)).astype(F32)
        for n in range(3):
            coordinates[n, :, 2:] = np.array(np.divmod(self.random.permutation(height * width)[:9], width)).T
            for v in range(counts[n]):
                y[n, :, coordinates[n, v, 2], coordinates[n, v, 3]] = voxels[n, v]
        for dtype in (F32, np.float16):
            self.expect("PillarScatterPlugin", {"voxels": voxels.astype(dtype), "where": coordinates, "counts": counts},
                        {"y": y.astype(dtype)}, dense_shape=[height, width])
        self.refuse("PillarScatterPlugin", {"voxels": voxels, "where": coordinates, "counts": counts}, "dense_shape", dense_shape=[4])
        self.refuse("PillarScatterPlugin", {"voxels": voxels, "where": coordinates[..., :3], "counts": counts},
                    "but must have [n, 9, 4]: batch, pillars, 4", dense_shape=[4, 5])
        self.refuse("PillarScatterPlugin", {"voxels": voxels, "where": coordinates, "counts": counts}, "16000 x 16000 are too many",
                    dense_shape=[16000, 16000])

    def test_decoded_boxes(self):
        height, width, classes = 3, 4, 2
        anchors = self.random.uniform(0.5, 2, (classes * 2, 4)).astype(F32)
        bottoms = self.random.normal(size=classes).astype(F32)
        low, high = (-4.0, -3.0, -2.0), (4.0, 6.0, 2.0)
        cls, box, turn = (self.random.normal(size=(2, height, width, 4 * n)).astype(F32) for n in (classes, 7, 2))
        for bins, offset, limit, threshold in ((2, 0.7, 0.0, 0.6), (3, -0.2, 0.5, 0.0), (2, 0.78539, 0.0, 0.999)):
            rows, number = np.zeros((2, height * width * 4, 9)), np.zeros(2, np.int32)
            for n, i, j, a in np.ndindex(2, height, width, 4):
                scores = 1 / (1 + np.exp(-cls[n, i, j, a * classes:(a + 1) * classes]))
                if scores.max() < threshold:
                    continue
                dx, dy, dz, angle = anchors[a].astype(np.float64)
                d, two = box[n, i, j, 7 * a:7 * a + 7].astype(np.float64), turn[n, i, j, 2 * a:2 * a + 2]
                period = 2 * np.pi / bins
                yaw = d[6] + angle - offset
                yaw = yaw - np.floor(yaw / period + limit) * period + offset + period * (two[0] <= two[1])
                x, y = low[0] + j * (high[0] - low[0]) / (width - 1), low[1] + i * (high[1] - low[1]) / (height - 1)
                center = d[:3] * [np.hypot(dx, dy), np.hypot(dx, dy), dz] + [x, y, dz / 2 + bottoms[a // 2]]
                rows[n, number[n]] = [*center, *np.exp(d[3:6]) * [dx, dy, dz], yaw, scores.argmax(), scores.max()]
                number[n] += 1
            self.assertTrue((number.max() > 0) == (threshold < 0.9))
            self.expect("DecodeBbox3DPlugin", {"cls": cls, "box": box, "turn": turn}, {"rows": rows.astype(F32), "number": number},
                        point_cloud_range=[*low, *high], anchors=anchors.ravel().tolist(), anchor_bottom_height=bottoms.tolist(),
                        dir_offset=offset, dir_limit_offset=limit, num_dir_bins=bins, score_thresh=threshold)
        fields = dict(point_cloud_range=[*low, *high], anchors=anchors.ravel().tolist(), anchor_bottom_height=bottoms.tolist())
        self.refuse("DecodeBbox3DPlugin", {"cls": cls, "box": box, "turn": turn}, "'anchors' has 3 numbers, expected 8 for each of 2",
                    **{**fields, "anchors": [1.0] * 3})
        self.refuse("DecodeBbox3DPlugin", {"cls": cls, "box": box[..., :-1], "turn": turn},
                    "but must have [n, 3, 4, 28]: batch, height, width, anchors x 7", **fields)


if __name__ == "__main__":
    unittest.main()
