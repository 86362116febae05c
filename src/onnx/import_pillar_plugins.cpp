// SPDX-License-Identifier: Apache-2.0
// Standard plugins of TensorRT for PointPillars. Names and defaults of fields are theirs. TensorRT lists pillars,
// points and boxes in an order that differs from run to run; here it is that of cells, of points and of places.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "compose/count_up.h"
#include "compose/rows_at.h"
#include "onnx/plugins.h"

namespace lathe::onnx {
namespace {

using Op = ElementwiseOp;

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

struct VoxelGrid {
  int64_t points = 0, voxels = 0, features = 0;  // of a voxel, of an image, of a point of a voxel
  std::array<double, 3> low{}, high{}, size{};   // x, y, z
  std::array<int64_t, 2> cells{};                // along x and y

  int64_t num_cells() const { return cells[0] * cells[1]; }
};

constexpr int64_t kMostCells = 1 << 20;    // along an axis
constexpr int64_t kMostNumbers = 1 << 28;  // of all voxels of an image

VoxelGrid read_grid(NodeContext& c) {
  VoxelGrid grid;
  grid.points = c.require_integer("max_num_points_per_voxel");
  grid.voxels = c.require_integer("max_voxels");
  grid.features = c.require_integer("voxel_feature_num");
  const std::vector<double> range = c.reals("point_cloud_range"), size = c.reals("voxel_size");
  if (range.size() != 6 || size.size() != 3) return grid;  // fields of another kind, which has been told
  for (size_t d = 0; d < 3; ++d) {
    grid.low[d] = range[d], grid.high[d] = range[d + 3], grid.size[d] = size[d];
    const double cells = (grid.high[d] - grid.low[d]) / grid.size[d];
    if (!(cells > 0) || (d < 2 && cells > static_cast<double>(kMostCells)))
      return c.invalid(
                 "point_cloud_range goes from {} to {} along axis {}, and voxel_size is {}; expected a range that goes "
                 "up, of {} voxels or less along axes 0 and 1",
                 static_cast<float>(range[d]), static_cast<float>(range[d + 3]), d, static_cast<float>(size[d]),
                 kMostCells),
             grid;
    if (d < 2) grid.cells[d] = std::max<int64_t>(1, std::llrint(cells));
  }
  require_product(c, "numbers of voxels", {grid.voxels, grid.points, grid.features}, kMostNumbers);
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

// Points in the order of their cells, and where they go: pillars are numbered as their cells lie, from 0 on in each
// image. All i64[N, M].
struct SortedPoints {
  ir::Value *cell, *index;     // of each point: its cell, and which point of the cloud it is
  ir::Value *begins, *pillar;  // whether a pillar begins there (bool), and of which one it is
  ir::Value* is_inside;        // whether it lies in a cell at all (bool)
};

SortedPoints sorted_by_cell(NodeContext& c, const VoxelGrid& grid, ir::Value* cells) {
  TopkAttrs ascending;  // points of a cell follow each other, in their order
  ascending.axis = 1;
  ascending.largest = false;
  ir::Value* length = c.shape_of(cells, 1, 2);
  const std::vector<ir::Value*> sorted = c.add_all(ascending, {cells, length}, 2);
  SortedPoints p{};
  p.cell = sorted[0], p.index = sorted[1];
  ir::Value* none = c.expand(c.integer_scalar(-1), c.concat({c.shape_of(p.cell, 0, 1), c.ints({1})}, 0));
  ir::Value* before = c.add(SliceAttrs{}, {c.concat({none, p.cell}, 1), c.ints({0}), length, c.ints({1})});
  p.is_inside = c.binary(Op::less, p.cell, c.integer_scalar(grid.num_cells()));
  p.begins = c.binary(Op::logical_and, c.unary(UnaryOp::logical_not, c.binary(Op::equal, p.cell, before)), p.is_inside);
  p.pillar = c.binary(Op::max, c.minus(sums_along(c, p.begins), c.integer_scalar(1)), c.integer_scalar(0));
  return p;
}

// What the plugin takes of the sorted points, laid out for each image.
struct Voxels {
  ir::Value *numbers, *filled;  // f32[N, V, P, C], and which points there are, f32[N, V, P, 1]
  ir::Value* cell;              // of each voxel, i64[N, V]
};

Voxels voxels_of(NodeContext& c, const VoxelGrid& grid, ir::Value* points, const SortedPoints& sorted) {
  ir::Value* beyond = c.integer_scalar(grid.voxels);
  ir::Value* first_places = c.select(sorted.begins, sorted.pillar, beyond);
  const auto of_pillars = [&](ir::Value* x) { return laid_out(c, x, first_places, grid.voxels); };
  ir::Value* order = c.expand(count_up(c, c.shape_of(sorted.cell, 1, 2)), c.shape_of(sorted.cell));
  ir::Value* kept_pillar = c.binary(Op::min, sorted.pillar, c.integer_scalar(grid.voxels - 1));
  ir::Value* rank = c.minus(order, rows_at(c, of_pillars(order), kept_pillar));  // among the points of its pillar
  ir::Value* taken = c.binary(Op::logical_and, c.binary(Op::less, rank, c.integer_scalar(grid.points)),
                              c.binary(Op::less, sorted.pillar, beyond));
  taken = c.binary(Op::logical_and, taken, sorted.is_inside);
  const int64_t room = grid.voxels * grid.points;
  ir::Value* place = c.plus(c.mul(sorted.pillar, c.integer_scalar(grid.points)), rank);
  place = c.select(taken, place, c.integer_scalar(room));
  const auto of_points = [&](ir::Value* x) {
    return c.reshape(laid_out(c, x, place, room),
                     c.concat({c.ints({0, grid.voxels, grid.points}), c.shape_of(x, 2)}, 0));
  };
  return {of_points(rows_at(c, points, sorted.index)), of_points(c.cast(c.unsqueeze(taken, {2}), DType::f32)),
          of_pillars(sorted.cell)};
}

}  // namespace

// Points of a cloud by the cells of a grid that they lie in. Of cells and of the points of each, the first ones are
// taken.
void import_voxel_generator_plugin(NodeContext& c) {
  const VoxelGrid grid = read_grid(c);
  PluginDims dims(c);
  ir::Value *points = dims.require(0, "batch, points, numbers"), *counts = dims.require(1, "batch");
  if (c.failed()) return;
  const int64_t numbers = c.dim(points, 2).as_constant().value_or(0);
  if ((numbers != 4 && numbers != 5) || (grid.features != numbers + 5 && grid.features != numbers + 6))
    return c.invalid("points of {} numbers and voxel_feature_num {}; expected 4 or 5, and 5 or 6 more", numbers,
                     grid.features);
  const SortedPoints sorted = sorted_by_cell(c, grid, cells_of(c, grid, points, c.cast(counts, DType::i64)));
  const Voxels voxels = voxels_of(c, grid, points, sorted);
  ir::Value* x = c.binary(Op::mod, voxels.cell, c.integer_scalar(grid.cells[0]));
  ir::Value* y = c.divide(voxels.cell, c.integer_scalar(grid.cells[0]));
  std::vector<ir::Value*> features = features_of(c, grid, voxels.numbers, voxels.filled, {x, y});
  if (grid.features == numbers + 5) features.pop_back();  // without z
  c.set_output(0, c.mul(c.concat(std::move(features), 3), voxels.filled));
  const auto column = [&](ir::Value* value) { return c.unsqueeze(c.cast(value, counts->dtype()), {2}); };
  ir::Value* zero = column(c.binary(Op::mul, x, 0.0));
  c.set_output(1, c.concat({zero, zero, column(y), column(x)}, 2));
  ir::Value* number = c.reduce(ReduceOp::sum, c.cast(sorted.begins, DType::i64), {1}, false);
  c.set_output(2, c.cast(c.binary(Op::min, number, c.integer_scalar(grid.voxels)), counts->dtype()));
}

// The first pillars of each image, put where they are on a map.
void import_pillar_scatter_plugin(NodeContext& c) {
  const Ints size = c.integers("dense_shape");
  PluginDims dims(c);
  ir::Value *voxels = dims.require(0, "batch, pillars, features"), *coordinates = dims.require(1, "batch, pillars, 4"),
            *counts = dims.require(2, "batch");
  if (c.failed() || !require_product(c, "dense_shape", {size[0], size[1]}, kMostCells << 4)) return;
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
  ir::Value* scaled = c.mul(part(0, 3), f32_constant(c, diagonals, {count, 3}));
  const auto along = [&](int64_t i, ir::Value* from) { return c.plus(c.slice(scaled, 4, i, i + 1), from); };
  ir::Value* center =
      c.concat({along(0, places(2, 0)), along(1, places(1, 1)), along(2, f32_constant(c, heights, {count, 1}))}, 4);
  ir::Value* size = c.mul(c.unary(UnaryOp::exp, part(3, 6)), f32_constant(c, extents, {count, 3}));
  return {center, size, c.plus(part(6, 7), f32_constant(c, angles, {count, 1}))};
}

// The angle within a period, of which a turn has `bins`; a period further where the first direction is not the likelier
// one.
ir::Value* yaw_of(NodeContext& c, ir::Value* angle, ir::Value* is_first, int64_t bins) {
  const double offset = c.real("dir_offset", 0.78539), limit = c.real("dir_limit_offset", 0);
  const double period = 2 * std::numbers::pi / static_cast<double>(bins);
  ir::Value* turned = c.binary(Op::sub, angle, offset);
  ir::Value* periods = c.unary(UnaryOp::floor, c.binary(Op::add, c.binary(Op::div, turned, period), limit));
  turned = c.minus(turned, c.binary(Op::mul, periods, period));
  ir::Value* further = c.select(is_first, c.scalar(0, DType::f32), c.scalar(period, DType::f32));
  return c.plus(c.binary(Op::add, turned, offset), further);
}

}  // namespace

// Boxes (x, y, z, extents, angle, class, score) whose score reaches the threshold, those of an image behind each other.
void import_decode_boxes_plugin(NodeContext& c) {
  const std::vector<double> range = c.reals("point_cloud_range"), anchors = c.reals("anchors");
  const std::vector<double> bottoms = c.reals("anchor_bottom_height");
  const double threshold = c.real("score_thresh", 0);
  const int64_t bins = c.integer("num_dir_bins", 2), classes = static_cast<int64_t>(bottoms.size()),
                count = 2 * classes;
  if (c.failed()) return;
  if (anchors.size() != bottoms.size() * 8)
    return c.invalid("field 'anchors' has {} numbers, expected 8 for each of {} in anchor_bottom_height",
                     anchors.size(), classes);
  PluginDims dims(c);
  dims.set("anchors x classes", count * classes);
  dims.set("anchors x 7", count * 7);
  dims.set("anchors x 2", count * 2);
  ir::Value* scores = dims.require(0, "batch, height, width, anchors x classes");
  ir::Value* offsets = dims.require(1, "batch, height, width, anchors x 7");
  ir::Value* directions = dims.require(2, "batch, height, width, anchors x 2");
  if (c.failed()) return;
  const auto split = [&](ir::Value* x, int64_t size) {
    return c.reshape(x, c.concat({c.shape_of(x, 0, 3), c.ints({count, size})}, 0));
  };
  const auto [center, size, angle] = boxes_of(c, split(offsets, 7), anchors, bottoms, range);
  const std::vector<ir::Value*> best =
      c.add_all(TopkAttrs{}, {c.activation(ActivationOp::sigmoid, split(scores, classes)), c.ints({1})}, 2);
  ir::Value* two = split(directions, 2);
  ir::Value* is_first = c.binary(Op::greater, c.slice(two, 4, 0, 1), c.slice(two, 4, 1, 2));
  ir::Value* yaw = yaw_of(c, angle, is_first, bins);
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
