// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/builder.h"

namespace lathe {

// ONNX's operator GridSample, of two images and more dimensions.
struct GridSample {
  enum class Mode { nearest, linear, cubic };
  enum class Outside { zeros, border, reflection };
  Mode mode = Mode::linear;
  Outside outside = Outside::zeros;  // what is read beyond the image
  bool aligns_corners = false;       // -1 and 1 are the centres of the outermost pixels, not their edges
};

// x[n, c, spatial...] at the points of grid[n, positions..., spatial dims], which lists the last axis first. Both ranks
// are equal and 3 or more. -> [n, c, positions...].
ir::Value* grid_sample(ir::GraphBuilder& c, ir::Value* x, ir::Value* grid, const GridSample& how);

}  // namespace lathe
