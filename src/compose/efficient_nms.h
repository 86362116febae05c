// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/builder.h"

namespace lathe {

// TensorRT's EfficientNMS: greedy suppression in each class, then the best boxes of all classes of an image.
struct EfficientNms {
  double score_threshold = 0;   // scores below are no candidates; with `sigmoid`, of probabilities
  double iou_threshold = 0.5;   // boxes that share as much with a better one are dropped
  int64_t max_boxes = 100;      // of an image: K
  int64_t max_per_class = 100;  // of a class
  int64_t background = -1;      // class that is none; -1: there is no such class
  bool sigmoid = false;         // scores are logits
  bool across_classes = false;  // boxes suppress those of other classes, too
  bool centers = false;         // boxes are center and size, else two corners
  int64_t candidates = 0;       // of a class: so many of the best are considered; 0: all
  bool strict = false;          // candidates are above the threshold, and what is dropped shares more
  bool whole_pixels = false;    // the pixel at the upper corner is part of a box
  bool as_given = false;        // resulting boxes have their corners as they came
  bool clip = false;            // resulting boxes to [0, 1]
};

struct Detections {
  ir::Value* count = nullptr;    // i32[B, 1]
  ir::Value* boxes = nullptr;    // [B, K, 4]: lower corner, upper corner, unless as given; type of the inputs
  ir::Value* scores = nullptr;   // [B, K], best first; of equals the one with the lower anchor, then class
  ir::Value* classes = nullptr;  // i32[B, K]
  ir::Value* anchors = nullptr;  // i64[B, K]
  ir::Value* found = nullptr;    // bool[B, K]: false where the others are 0 because there are less boxes
};

// boxes[B, N, 4], [B, N, 1, 4] or [B, N, C, 4]; scores[B, N, C] or [B, N, C, 1]; anchors[B or 1, N, 4] or null, of
// which boxes are then offsets. What an image has less than K boxes of is 0. Overlaps
// are computed in f32.
Detections efficient_nms(ir::GraphBuilder& c, ir::Value* boxes, ir::Value* scores, ir::Value* anchors,
                         const EfficientNms& how);

}  // namespace lathe
