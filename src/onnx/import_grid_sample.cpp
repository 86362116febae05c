// SPDX-License-Identifier: Apache-2.0
#include "compose/grid_sample.h"
#include "onnx/importer.h"

namespace lathe::onnx {

void import_grid_sample(NodeContext& c) {
  GridSample how;
  const std::string mode = c.string("mode", "linear"), padding = c.string("padding_mode", "zeros");
  how.aligns_corners = c.flag("align_corners", false);
  how.mode = mode == "nearest"                      ? GridSample::Mode::nearest
             : mode == "cubic" || mode == "bicubic" ? GridSample::Mode::cubic
                                                    : GridSample::Mode::linear;
  if (how.mode == GridSample::Mode::linear && mode != "linear" && mode != "bilinear")
    return c.invalid("mode '{}' is unknown", mode);
  how.outside = padding == "border"       ? GridSample::Outside::border
                : padding == "reflection" ? GridSample::Outside::reflection
                                          : GridSample::Outside::zeros;
  if (how.outside == GridSample::Outside::zeros && padding != "zeros")
    return c.invalid("padding_mode '{}' is unknown", padding);
  ir::Value *x = c.require(0), *grid = c.require(1);
  if (x->rank() < 3 || grid->rank() != x->rank())
    return c.invalid("input and grid must have the same rank of 3 or more");
  grid = c.require_shape("grid", grid, c.concat({c.shape_of(x, 0, 1), c.shape_of(grid, 1)}, 0));
  ir::Value* y = grid_sample(c, x, grid, how);
  if (!c.failed()) c.set_output(0, y);
}

}  // namespace lathe::onnx
