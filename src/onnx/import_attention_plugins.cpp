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
  // Rounding must not take a number that should be whole to the next one.
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

}  // namespace

// DeBERTa's scores: of contents, of contents and positions, and of positions and contents.
void import_disentangled_attention_plugin(NodeContext& c) {
  const int64_t span = c.require_integer("span");
  if (!c.has_attribute("factor")) return c.invalid("the plugin needs field 'factor'");
  const double factor = c.real("factor", 1);
  ir::Value *scores = c.require(0), *to_position = c.require(1), *from_position = c.require(2);
  if (c.failed()) return;
  for (const ir::Value* x : {scores, to_position, from_position})
    if (x->rank() != 3) return c.invalid("an input has {} dimensions, expected 3", x->rank());
  if (span < 4) return c.invalid("span {} leaves no places for what is further away; expected 4 or more", span);
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
  ir::Value *value = c.require(0), *points = c.require(3), *weights = c.require(4);
  const std::optional<Tensor> sizes = c.known(c.require(1)), starts = c.known(c.require(2));
  if (c.failed()) return;
  if (value->rank() != 4 || points->rank() != 6 || weights->rank() != 5)
    return c.invalid("value, locations and weights have {}, {} and {} dimensions, expected 4, 6 and 5", value->rank(),
                     points->rank(), weights->rank());
  if (!sizes || !starts) return c.unsupported("the sizes of its levels or their places are not known while building");
  if (sizes->dims() != Dims{starts->volume(), 2})
    return c.invalid("{} levels begin somewhere, but their sizes are {} numbers", starts->volume(), sizes->volume());
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
