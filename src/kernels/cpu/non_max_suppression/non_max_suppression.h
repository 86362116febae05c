// SPDX-License-Identifier: Apache-2.0
// Kernel `non_max_suppression`: in two steps, for its result's size is only known between them.
//   program  none
//   params   NonMaxSuppressionParams
// The first step finds the boxes that are kept.
//   inputs   0: boxes, f32 [images, boxes, 4]; 1: scores, f32 [images, classes, boxes]; then, each may be omitted, one
//            number: 2: most boxes of a class, i64 or i32 (0); 3: IoU threshold, f32 (0); 4: score threshold, f32
//   outputs  0: found, i64: a list of boxes for each class of each image, all of one length; where each list begins
//            among all; how many boxes there are
// The second one writes them.
//   inputs   0: scores, of which the dimensions count; 1: found
//   outputs  0: image, class and box of each, i64 [boxes that are kept, 3]
#pragma once

#include "device/params.h"

namespace lathe::cpu {

struct NonMaxSuppressionParams {
  bool writes = false;    // whether it is the second step
  bool centered = false;  // boxes are given by their centre
  static constexpr auto members() {
    return std::tuple(&NonMaxSuppressionParams::writes, &NonMaxSuppressionParams::centered);
  }
};

}  // namespace lathe::cpu
