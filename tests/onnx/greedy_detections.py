# SPDX-License-Identifier: Apache-2.0
"""Boxes, and which of them suppress which, one candidate after the other: what plugins of detections are compared with."""
import numpy as np


def iou(a, b, pixel=0):
    extent = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]) + pixel
    if (extent <= 0).any():
        return np.float32(0)
    shared = extent[0] * extent[1]
    area = [(box[2] - box[0] + pixel) * (box[3] - box[1] + pixel) for box in (a, b)]
    return np.float32(shared / (area[0] + area[1] - shared))


def sorted_corners(boxes):
    return np.concatenate([np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])], -1)


def detections(boxes, scores, *, score, overlap, most, background=-1, agnostic=False, per_class=None, logits=False,
               candidates=None, strict=False, empty_class=0, rows=None, pixel=0):
    """boxes[B, N, 1 or C, 4] as corners: all candidates of an image in the order of their scores, greedily. Lists what
    is kept in `rows`, (image, class, anchor), and gives the boxes as they are. pixel: 1 where the pixel at the upper corner is part of a box."""
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
            if any((agnostic or other == c) and iou(sorted_corners(box), sorted_corners(theirs), pixel) >= limit for other, theirs in kept):
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
