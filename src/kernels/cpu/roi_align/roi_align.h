// SPDX-License-Identifier: Apache-2.0
// Kernel `roi_align`: regions of images, averaged (or their largest weighted elements) over a grid of bins.
//   program  none
//   params   RoiAlignParams
//   inputs   0: x, f32 or f64 [images, channels, height, width]; the channels or the columns must be contiguous
//            1: regions, of its type [regions, 4]: x1, y1, x2, y2; 2: their images, integers [regions]
//   outputs  0: y, of x's type [regions, channels, bins down, bins across], any strides
// A region whose image is not there gives 0.
//
// An average is separable: the samples of a bin put weights on rows of pixels and on columns, whichever samples they
// are. So a bin is a blend of a few rows and columns, however many samples it takes.
#pragma once

#include "device/params.h"

namespace lathe::cpu {

struct RoiAlignParams {
  static constexpr int64_t kMaxSamples = 65536;
  bool largest = false;
  int64_t samples = 0;  // of a bin along an axis, at most kMaxSamples; 0 = as many as pixels
  double scale = 1;
  bool half_pixel = true;
  static constexpr auto members() {
    return std::tuple(&RoiAlignParams::largest, &RoiAlignParams::samples, &RoiAlignParams::scale,
                      &RoiAlignParams::half_pixel);
  }
};

}  // namespace lathe::cpu
