// SPDX-License-Identifier: Apache-2.0
// Standard plugins of TensorRT for attention. Names and defaults of fields are theirs.
#include <cmath>

#include "compose/count_up.h"
#include "compose/grid_sample.h"
#include "onnx/plugins.h"

namespace lathe::onnx {
namespace {

// Where the plugin looks for how far a key is from a query: near ones have a place each, those beyond half of the span
// share places, the more of them the further away they are.
ir::Value* places_of_distances(NodeContext& c, ir::Value* length, int64_t span) {
  const int64_t half = span / 2;
  const auto middle = static_cast<double>(half);
  ir::Value* steps = count_up(c, length);
  ir::Value* distance = c.cast(c.minus(c.unsqueeze(steps, {1}), c.unsqueeze(steps, {0})), DType::f32);
  ir::Value* size = c.unary(UnaryOp::abs, distance);
  const double first = std::log(middle);
  // A number that should be whole may come out a little larger, which ceil would take to the next one.
  const double factor = (middle - 1) / (std::log(static_cast<double>(2 * span - 1)) - first) * (1 - 1e-7);
  ir::Value* far = c.unary(UnaryOp::log, c.binary(ElementwiseOp::max, size, middle));
  far = c.binary(ElementwiseOp::mul, c.binary(ElementwiseOp::sub, far, first), factor);
  far = c.binary(ElementwiseOp::add, c.unary(UnaryOp::ceil, far), middle);
  ir::Value* bucket = c.select(c.binary(ElementwiseOp::less_equal, size, middle), size, far);
  bucket = c.mul(bucket, c.unary(UnaryOp::sign, distance));
  ir::Value* place = c.binary(ElementwiseOp::add, bucket, static_cast<double>(span));
  place = c.binary(ElementwiseOp::max, place, 0.0);
  return c.cast(c.binary(ElementwiseOp::min, place, static_cast<double>(2 * span - 1)), DType::i64);
}

// Whether each level, of height and width `sizes`, lies in the pixels, as far as it is known how many there are.
bool levels_are_within(NodeContext& c, const Tensor& sizes, const Tensor& starts, std::optional<int64_t> pixels) {
  const int64_t most = pixels.value_or(INT32_MAX);
  for (int64_t level = 0; level < starts.volume(); ++level) {
    const int64_t height = sizes.at(2 * level), width = sizes.at(2 * level + 1), start = starts.at(level);
    if (height < 1 || width < 1 || height > most || width > most || start < 0 || start > most - height * width)
      return c.invalid("level {} has {} x {} pixels from {} on, expected some of {}", level, height, width, start,
                       most),
             false;
  }
  if (starts.volume() == 0) c.invalid("there are no levels, expected 1 or more");
  return !c.failed();
}

}  // namespace

// DeBERTa's scores: of contents, of contents and positions, and of positions and contents.
void import_disentangled_attention_plugin(NodeContext& c) {
  const int64_t span = c.require_integer("span");  // 4 or more, for less leaves no places for what is further away
  const double factor = c.real("factor", 1);
  PluginDims dims(c);
  dims.set("twice the span", 2 * span);
  ir::Value* scores = dims.require(0, "batch, length, length");
  ir::Value *to_position = dims.require(1, "batch, length, twice the span"),
            *from_position = dims.require(2, "batch, length, twice the span");
  if (c.failed()) return;
  ir::Value* place = places_of_distances(c, c.shape_of(scores, 1, 2), span);
  ir::Value* shape = c.shape_of(scores);
  GatherElementsAttrs along;
  along.axis = 2;
  ir::Value* positions = c.add(along, {to_position, c.expand(place, shape)});
  ir::Value* contents = c.add(along, {from_position, c.expand(c.transpose(place, {1, 0}), shape)});
  ir::Value* sum = c.plus(scores, c.plus(positions, c.transpose(contents, {0, 2, 1})));
  c.set_output(0, c.binary(ElementwiseOp::mul, sum, factor));
}

// For each level of a pyramid: samples of its image, weighted and added up.
void import_deformable_attention_plugin(NodeContext& c) {
  PluginDims dims(c);
  ir::Value *value = dims.require(0, "batch, pixels, heads, size"), *extents = dims.require(1, "levels, 2");
  ir::Value* begins = dims.require(2, "levels");
  ir::Value* points = dims.require(3, "batch, queries, heads, levels, points, 2");
  ir::Value* weights = dims.require(4, "batch, queries, heads, levels, points");
  const std::optional<Tensor> sizes = c.known(extents), starts = c.known(begins);
  if (c.failed()) return;
  if (!sizes || !starts) return c.unsupported("the sizes of its levels or their places are not known while building");
  if (!levels_are_within(c, *sizes, *starts, c.dim(value, 1).as_constant())) return;
  const auto of_heads = [&](ir::Value* x) { return c.reshape(x, c.concat({c.ints({-1}), c.shape_of(x, 2)}, 0)); };
  points = of_heads(c.transpose(points, {0, 2, 1, 3, 4, 5}));  // [N * M, Lq, L, P, 2]
  weights = of_heads(c.transpose(weights, {0, 2, 1, 3, 4}));
  ir::Value* images = c.transpose(value, {0, 2, 3, 1});  // [N, M, D, S]
  ir::Value* heads_first = c.concat({c.shape_of(images, 0, 3), c.ints({-1})}, 0);
  images = of_heads(images);  // [N * M, D, S]
  ir::Value* sum = nullptr;
  for (int64_t level = 0; level < starts->volume(); ++level) {
    const int64_t height = sizes->at(2 * level), width = sizes->at(2 * level + 1), start = starts->at(level);
    ir::Value* image = c.reshape(c.slice(images, 2, start, start + height * width), {0, 0, height, width});
    ir::Value* at = c.squeeze(c.slice(points, 2, level, level + 1), {2});
    at = c.binary(ElementwiseOp::sub, c.binary(ElementwiseOp::mul, at, 2.0), 1.0);
    ir::Value* weight = c.unsqueeze(c.squeeze(c.slice(weights, 2, level, level + 1), {2}), {1});
    ir::Value* part = c.reduce(ReduceOp::sum, c.mul(grid_sample(c, image, at, GridSample{}), weight), {3}, false);
    sum = sum ? c.plus(sum, part) : part;
  }
  c.set_output(0, c.transpose(c.reshape(sum, heads_first), {0, 3, 1, 2}));  // [N, Lq, M, D]
}

}  // namespace lathe::onnx
