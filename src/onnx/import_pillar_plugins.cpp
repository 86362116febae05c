// SPDX-License-Identifier: Apache-2.0
// Standard plugins of TensorRT for PointPillars. Names and defaults of fields are theirs. TensorRT lists pillars,
// points and boxes in an order that differs from run to run; here it is that of cells, of points and of places.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "compose/count_up.h"
#include "onnx/plugins.h"
#include "ops/rules.h"

namespace lathe::onnx {
namespace {

using Op = ElementwiseOp;

ir::Value* field_constant(NodeContext& c, const std::vector<double>& values, const Dims& dims) {
  Result<Tensor> tensor = Tensor::allocate(DType::f32, dims);
  if (tensor) from_doubles(values, *tensor);
  return c.constant(std::move(tensor));
}

// Rows of a table for each image: rows[N, K, ...] lie where places[N, K], i64, say; those of `size` or more are left
// out, and what nobody takes is 0. [N, size, ...].
ir::Value* laid_out(NodeContext& c, ir::Value* rows, ir::Value* places, int64_t size) {
  ir::Value* images = c.unsqueeze(count_up(c, c.shape_of(places, 0, 1)), {1});
  const auto index = [&](ir::Value* x) { return c.unsqueeze(c.expand(x, c.shape_of(places)), {2}); };
  ir::Value* kept = c.binary(Op::min, places, c.integer_scalar(size));
  ir::Value* shape = c.concat({c.shape_of(rows, 0, 1), c.ints({size + 1}), c.shape_of(rows, 2)}, 0);
  ir::Value* none = c.expand(c.scalar_like(0, rows), shape);
  return c.slice(c.add(ScatterNdAttrs{}, {none, c.concat({index(images), index(kept)}, 2), rows}), 1, 0, size);
}

ir::Value* sums_along(NodeContext& c, ir::Value* x) {  // x[N, K]: of the first ones up to each
  return c.add(CumulativeAttrs{}, {c.cast(x, DType::i64), c.integer_scalar(1)});
}

// The numbers at places[N, K] of x[N, ...].
ir::Value* rows_at(NodeContext& c, ir::Value* x, ir::Value* places) {
  GatherElementsAttrs attributes;
  attributes.axis = 1;
  if (x->rank() == 3) places = c.expand(c.unsqueeze(places, {2}), c.concat({c.ints({1, 1}), c.shape_of(x, 2)}, 0));
  return c.add(attributes, {x, places});
}

struct VoxelGrid {
  int64_t points = 0, voxels = 0, features = 0;  // of a voxel, of an image, of a point of a voxel
  std::array<double, 3> low{}, high{}, size{};   // x, y, z
  std::array<int64_t, 2> cells{};                // along x and y

  int64_t num_cells() const { return cells[0] * cells[1]; }
};

VoxelGrid read_grid(NodeContext& c) {
  VoxelGrid grid;
  grid.points = c.require_integer("max_num_points_per_voxel");
  grid.voxels = c.require_integer("max_voxels");
  grid.features = c.require_integer("voxel_feature_num");
  const std::vector<double> range = c.reals("point_cloud_range"), size = c.reals("voxel_size");
  const auto wrong = [&] {
    c.invalid(
        "{} points of each of {} voxels, {} numbers in point_cloud_range and {} in voxel_size; expected 1 or more, 6 "
        "of which the last three are larger, and 3 above 0",
        grid.points, grid.voxels, range.size(), size.size());
    return grid;
  };
  if (grid.points < 1 || grid.voxels < 1 || range.size() != 6 || size.size() != 3) return wrong();
  for (size_t d = 0; d < 3; ++d) {
    grid.low[d] = range[d], grid.high[d] = range[d + 3], grid.size[d] = size[d];
    if (!(size[d] > 0) || !(grid.high[d] > grid.low[d])) return wrong();
    if (d < 2) grid.cells[d] = std::max<int64_t>(1, std::llrint((grid.high[d] - grid.low[d]) / grid.size[d]));
  }
  return grid;
}

// The cell of each point, y before x, i64[N, M]; behind all cells where it does not count.
ir::Value* cells_of(NodeContext& c, const VoxelGrid& grid, ir::Value* points, ir::Value* counts) {
  ir::Value* inside = c.binary(Op::less, count_up(c, c.shape_of(points, 1, 2)), c.unsqueeze(counts, {1}));
  ir::Value* cell = nullptr;
  for (const size_t d : {2, 1, 0}) {
    const auto at = static_cast<int64_t>(d);
    ir::Value* x = c.squeeze(c.slice(points, 2, at, at + 1), {2});
    inside = c.binary(
        Op::logical_and, inside,
        c.binary(Op::logical_and, c.binary(Op::greater_equal, x, grid.low[d]), c.binary(Op::less, x, grid.high[d])));
    if (d == 2) continue;
    x = c.unary(UnaryOp::floor, c.binary(Op::div, c.binary(Op::sub, x, grid.low[d]), grid.size[d]));
    x = c.cast(c.activation(ActivationOp::clip, x, 0, static_cast<double>(grid.cells[d] - 1)), DType::i64);
    cell = cell ? c.plus(c.mul(cell, c.integer_scalar(grid.cells[0])), x) : x;
  }
  return c.select(inside, cell, c.integer_scalar(grid.num_cells()));
}

// What a point of a voxel is to the others and to the voxel's centre, [N, V, P, 3 or 2]: voxels[N, V, P, C], of which
// `filled`, [N, V, P, 1], says which points there are, in cells x[N, V] and y[N, V].
std::vector<ir::Value*> features_of(NodeContext& c, const VoxelGrid& grid, ir::Value* voxels, ir::Value* filled,
                                    const std::array<ir::Value*, 2>& cell) {
  ir::Value* places = c.slice(voxels, 3, 0, 3);
  ir::Value* count = c.binary(Op::max, c.reduce(ReduceOp::sum, filled, {2}), 1.0);
  std::vector<ir::Value*> found = {voxels, c.minus(places, c.divide(c.reduce(ReduceOp::sum, places, {2}), count))};
  for (size_t d = 0; d < 3; ++d) {
    ir::Value* center = c.scalar(grid.size[d] / 2 + grid.low[d], DType::f32);
    if (d < 2)
      center = c.plus(c.unsqueeze(c.binary(Op::mul, c.cast(cell[d], DType::f32), grid.size[d]), {2, 3}), center);
    const auto at = static_cast<int64_t>(d);
    found.push_back(c.minus(c.slice(places, 3, at, at + 1), center));
  }
  return found;
}

}  // namespace

// Points of a cloud by the cells of a grid that they lie in. Of cells and of the points of each, the first ones are
// taken.
void import_voxel_generator_plugin(NodeContext& c) {
  const VoxelGrid grid = read_grid(c);
  ir::Value *points = c.require(0), *counts = c.require(1);
  require_rank(c, "input 0", points, 3);
  require_rank(c, "input 1", counts, 1);
  if (c.failed()) return;
  const int64_t numbers = c.dim(points, 2).as_constant().value_or(0);
  if ((numbers != 4 && numbers != 5) || (grid.features != numbers + 5 && grid.features != numbers + 6))
    return c.invalid("points of {} numbers and voxel_feature_num {}; expected 4 or 5, and 5 or 6 more", numbers,
                     grid.features);
  ir::Value* cells = cells_of(c, grid, points, c.cast(counts, DType::i64));
  // Points of a cell follow each other, in their order.
  TopkAttrs ascending;
  ascending.axis = 1;
  ascending.largest = false;
  ir::Value* length = c.shape_of(points, 1, 2);
  const std::vector<ir::Value*> sorted = c.add_all(ascending, {cells, length}, 2);
  ir::Value* cell = sorted[0];
  ir::Value* before =
      c.concat({c.expand(c.integer_scalar(-1), c.concat({c.shape_of(cell, 0, 1), c.ints({1})}, 0)), cell}, 1);
  before = c.add(SliceAttrs{}, {before, c.ints({0}), length, c.ints({1})});
  const auto counts_as = [&](ir::Value* x) {
    return c.binary(Op::logical_and, x, c.binary(Op::less, cell, c.integer_scalar(grid.num_cells())));
  };
  ir::Value* begins = counts_as(c.unary(UnaryOp::logical_not, c.binary(Op::equal, cell, before)));
  ir::Value* pillar = c.binary(Op::max, c.minus(sums_along(c, begins), c.integer_scalar(1)), c.integer_scalar(0));
  ir::Value* beyond = c.integer_scalar(grid.voxels);
  ir::Value* first_places = c.select(begins, pillar, beyond);
  const auto of_pillars = [&](ir::Value* x) { return laid_out(c, x, first_places, grid.voxels); };
  ir::Value* order = c.expand(count_up(c, length), c.shape_of(cell));
  ir::Value* kept_pillar = c.binary(Op::min, pillar, c.integer_scalar(grid.voxels - 1));
  ir::Value* rank = c.minus(order, rows_at(c, of_pillars(order), kept_pillar));
  ir::Value* taken = counts_as(c.binary(Op::logical_and, c.binary(Op::less, rank, c.integer_scalar(grid.points)),
                                        c.binary(Op::less, pillar, beyond)));
  ir::Value* place = c.plus(c.mul(pillar, c.integer_scalar(grid.points)), rank);
  place = c.select(taken, place, c.integer_scalar(grid.voxels * grid.points));
  const auto of_points = [&](ir::Value* x, int64_t size) {
    return c.reshape(laid_out(c, x, place, grid.voxels * grid.points), Ints{0, grid.voxels, grid.points, size});
  };
  ir::Value* voxels = of_points(rows_at(c, points, sorted[1]), numbers);
  ir::Value* filled = of_points(c.cast(c.unsqueeze(taken, {2}), DType::f32), 1);
  ir::Value* cell_of_pillar = of_pillars(cell);
  ir::Value* x = c.binary(Op::mod, cell_of_pillar, c.integer_scalar(grid.cells[0]));
  ir::Value* y = c.divide(cell_of_pillar, c.integer_scalar(grid.cells[0]));
  std::vector<ir::Value*> features = features_of(c, grid, voxels, filled, {x, y});
  if (grid.features == numbers + 5) features.pop_back();  // without z
  c.set_output(0, c.mul(c.concat(std::move(features), 3), filled));
  const auto column = [&](ir::Value* value) { return c.unsqueeze(c.cast(value, counts->dtype()), {2}); };
  ir::Value* zero = column(c.binary(Op::mul, x, 0.0));
  c.set_output(1, c.concat({zero, zero, column(y), column(x)}, 2));
  ir::Value* number = c.reduce(ReduceOp::sum, c.cast(begins, DType::i64), {1}, false);
  c.set_output(2, c.cast(c.binary(Op::min, number, beyond), counts->dtype()));
}

// The first pillars of each image, put where they are on a map.
void import_pillar_scatter_plugin(NodeContext& c) {
  const Ints size = c.integers("dense_shape");
  ir::Value *voxels = c.require(0), *coordinates = c.require(1), *counts = c.require(2);
  require_rank(c, "input 0", voxels, 3);
  require_rank(c, "input 1", coordinates, 3);
  require_rank(c, "input 2", counts, 1);
  if (c.failed()) return;
  if (size.size() != 2 || size[0] < 1 || size[1] < 1)
    return c.invalid("dense_shape has {} numbers, expected height and width, above 0", size.size());
  const auto column = [&](int64_t i) { return c.cast(c.squeeze(c.slice(coordinates, 2, i, i + 1), {2}), DType::i64); };
  ir::Value* place = c.plus(c.mul(column(2), c.integer_scalar(size[1])), column(3));
  ir::Value* is_there =
      c.binary(Op::less, count_up(c, c.shape_of(voxels, 1, 2)), c.unsqueeze(c.cast(counts, DType::i64), {1}));
  ir::Value* map =
      laid_out(c, voxels, c.select(is_there, place, c.integer_scalar(size[0] * size[1])), size[0] * size[1]);
  ir::Value* shape = c.concat({c.shape_of(voxels, 0, 1), c.shape_of(voxels, 2, 3), c.ints(size)}, 0);
  c.set_output(0, c.reshape(c.transpose(map, {0, 2, 1}), shape));
}

namespace {

// What anchors and their offsets [N, H, W, A, 7] make, each [N, H, W, A, n]: centre, extents, and the angle.
std::array<ir::Value*, 3> boxes_of(NodeContext& c, ir::Value* offsets, const std::vector<double>& anchors,
                                   const std::vector<double>& bottoms, const std::vector<double>& range) {
  const auto count = static_cast<int64_t>(anchors.size() / 4);
  std::vector<double> diagonals, heights, extents, angles;
  for (size_t a = 0; a < anchors.size() / 4; ++a) {
    const double dx = anchors[4 * a], dy = anchors[4 * a + 1], dz = anchors[4 * a + 2];
    diagonals.insert(diagonals.end(), {std::hypot(dx, dy), std::hypot(dx, dy), dz});
    extents.insert(extents.end(), {dx, dy, dz});
    heights.push_back(dz / 2 + bottoms[a / 2]);
    angles.push_back(anchors[4 * a + 3]);
  }
  const auto places = [&](int64_t axis, size_t d) {  // of the map, from one end of the range to the other
    ir::Value* extent = c.shape_of(offsets, axis, axis + 1);
    ir::Value* at = c.binary(Op::mul, c.cast(count_up(c, extent), DType::f32), range[d + 3] - range[d]);
    at = c.divide(at, c.cast(c.minus(extent, c.ints({1})), DType::f32));
    return c.reshape(c.binary(Op::add, at, range[d]), axis == 2 ? Ints{-1, 1, 1} : Ints{-1, 1, 1, 1});
  };
  const auto part = [&](int64_t begin, int64_t end) { return c.slice(offsets, 4, begin, end); };
  ir::Value* scaled = c.mul(part(0, 3), field_constant(c, diagonals, {count, 3}));
  const auto along = [&](int64_t i, ir::Value* from) { return c.plus(c.slice(scaled, 4, i, i + 1), from); };
  ir::Value* center =
      c.concat({along(0, places(2, 0)), along(1, places(1, 1)), along(2, field_constant(c, heights, {count, 1}))}, 4);
  ir::Value* size = c.mul(c.unary(UnaryOp::exp, part(3, 6)), field_constant(c, extents, {count, 3}));
  return {center, size, c.plus(part(6, 7), field_constant(c, angles, {count, 1}))};
}

}  // namespace

// Boxes (x, y, z, extents, angle, class, score) whose score reaches the threshold, those of an image behind each other.
void import_decode_boxes_plugin(NodeContext& c) {
  const std::vector<double> range = c.reals("point_cloud_range"), anchors = c.reals("anchors");
  const std::vector<double> bottoms = c.reals("anchor_bottom_height");
  const double offset = c.real("dir_offset", 0.78539), limit = c.real("dir_limit_offset", 0);
  const double threshold = c.real("score_thresh", 0);
  const int64_t bins = c.integer("num_dir_bins", 2), classes = static_cast<int64_t>(bottoms.size()),
                count = 2 * classes;
  ir::Value *scores = c.require(0), *offsets = c.require(1), *directions = c.require(2);
  for (size_t i = 0; i < 3; ++i) require_rank(c, fmt::format("input {}", i), c.require(i), 4);
  if (c.failed()) return;
  if (range.size() != 6 || classes < 1 || anchors.size() != bottoms.size() * 8 || bins < 1)
    return c.invalid(
        "{} numbers in point_cloud_range, {} in anchors for {} in anchor_bottom_height and num_dir_bins {}; "
        "expected 6, 8 for each of one or more, and 1 or more",
        range.size(), anchors.size(), classes, bins);
  const auto split = [&](ir::Value* x, int64_t size) {
    return c.reshape(x, c.concat({c.shape_of(x, 0, 3), c.ints({count, size})}, 0));
  };
  const auto [center, size, angle] = boxes_of(c, split(offsets, 7), anchors, bottoms, range);
  const std::vector<ir::Value*> best =
      c.add_all(TopkAttrs{}, {c.activation(ActivationOp::sigmoid, split(scores, classes)), c.ints({1})}, 2);
  ir::Value* two = split(directions, 2);
  ir::Value* is_first = c.binary(Op::greater, c.slice(two, 4, 0, 1), c.slice(two, 4, 1, 2));
  const double period = 2 * std::numbers::pi / static_cast<double>(bins);
  ir::Value* turned = c.binary(Op::sub, angle, offset);
  ir::Value* periods = c.unary(UnaryOp::floor, c.binary(Op::add, c.binary(Op::div, turned, period), limit));
  turned = c.minus(turned, c.binary(Op::mul, periods, period));
  ir::Value* half = c.select(is_first, c.scalar(0, DType::f32), c.scalar(period, DType::f32));
  ir::Value* yaw = c.plus(c.binary(Op::add, turned, offset), half);
  ir::Value* rows = c.concat({center, size, yaw, c.cast(best[1], DType::f32), best[0]}, 4);
  ir::Value* row_shape = c.concat({c.shape_of(rows, 0, 1), c.ints({-1, 9})}, 0);
  const std::optional<int64_t> height = c.dim(scores, 1).as_constant(), width = c.dim(scores, 2).as_constant();
  if (!height || !width) return c.unsupported("the height and width of its inputs are not known while building");
  ir::Value* counted = c.reshape(c.binary(Op::greater_equal, best[0], threshold), Ints{0, -1});
  ir::Value* place = c.minus(sums_along(c, counted), c.integer_scalar(1));
  const int64_t all = *height * *width * count;
  c.set_output(0, laid_out(c, c.reshape(rows, row_shape), c.select(counted, place, c.integer_scalar(all)), all));
  c.set_output(1, c.cast(c.reduce(ReduceOp::sum, c.cast(counted, DType::i64), {1}, false), DType::i32));
}

}  // namespace lathe::onnx
