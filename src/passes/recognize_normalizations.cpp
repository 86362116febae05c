// SPDX-License-Identifier: Apache-2.0
// Normalisations written out as arithmetic become layer, RMS and group normalisation nodes: first bare, with ones for a
// scale, then taking in the scale and the bias that follow.
#include <algorithm>
#include <numeric>

#include "ops/rules.h"
#include "passes/linear.h"
#include "passes/match.h"
#include "passes/pins.h"
#include "passes/rewrite.h"

namespace lathe {
namespace {

using Op = ElementwiseOp;

// The first axis of a mean over the last axes that keeps dims; the tensor it averages.
struct RowMean {
  ir::Value* x;
  int64_t axis;
};
std::optional<RowMean> row_mean_of(const ir::Value* value) {
  const ir::Node* reduce = made_by(value, OpKind::reduce);
  if (!reduce || reduce->num_inputs() > 1) return std::nullopt;
  const auto& attrs = reduce->attrs<ReduceAttrs>();
  const int64_t rank = value->rank();
  if (attrs.op != ReduceOp::mean || !attrs.keepdims || attrs.axes.empty()) return std::nullopt;
  const Result<Ints> axes = normalize_axes(attrs.axes, rank);
  if (!axes || axes->back() != rank - 1 || axes->front() != rank - static_cast<int64_t>(axes->size()))
    return std::nullopt;
  return RowMean{reduce->input(0), axes->front()};
}

// y in y / sqrt(mean(y * y) + eps), in any of its spellings, by that root.
struct Normalized {
  ir::Value* y;
  int64_t axis;
  double epsilon;
};
std::optional<Normalized> normalized_by(const ir::Value* root) {
  const ir::Node* sqrt = made_by(root, UnaryOp::sqrt);
  if (!sqrt) return std::nullopt;
  // An exporter leaves out a number that is as good as 0.
  const WithScalar shifted = match_shifted(sqrt->input(0)).value_or(WithScalar{sqrt->input(0), 0});
  const auto mean = shifted.c >= 0 ? row_mean_of(shifted.x) : std::nullopt;
  if (!mean || !mean->x->producer()) return std::nullopt;
  const ir::Node* square = mean->x->producer();
  const bool squares = (is(square, Op::mul) && square->input(0) == square->input(1)) ||
                       (is(square, Op::pow) && scalar_of(square->input(1)) == 2);
  return squares ? std::optional(Normalized{square->input(0), mean->axis, shifted.c}) : std::nullopt;
}

// The same by its reciprocal, which others may multiply.
std::optional<Normalized> normalized_with(const ir::Value* recip) {
  const ir::Node* node = made_by(recip, UnaryOp::recip);
  return node ? normalized_by(node->input(0)) : std::nullopt;
}

std::optional<Normalized> normalized_of(const ir::Node* node) {
  std::optional<Normalized> found;
  if (is(node, Op::div)) found = normalized_by(node->input(1));
  if (found && found->y == node->input(0)) return found;
  if (!is(node, Op::mul)) return std::nullopt;
  for (size_t i : {0, 1}) {
    found = normalized_with(node->input(1 - i));
    if (found && found->y == node->input(i)) return found;
  }
  return std::nullopt;
}

// The x that a normalised row y is made of by y = x - mean(x), over the same axes; null where it is not.
ir::Value* centred_by_mean(const Normalized& found) {
  const ir::Node* centred = made_by(found.y, Op::sub);
  const auto mean = centred ? row_mean_of(centred->input(1)) : std::nullopt;
  return mean && mean->x == centred->input(0) && mean->axis == found.axis ? mean->x : nullptr;
}

// The number of channels, rows... in dims [axis, rank), when they are all numbers.
std::optional<Dims> row_dims(const ir::Value* x, int64_t axis) {
  return as_constant(Shape(x->shape().begin() + axis, x->shape().end()));
}

// An operand of the shape of a normalised row: as it is, or a constant without its leading ones; null when it is not.
ir::Value* row_operand(Rewrite& r, ir::Value* operand, const ir::Value* x, int64_t axis) {
  const Shape row(x->shape().begin() + axis, x->shape().end());
  if (operand->dtype() != x->dtype()) return nullptr;
  if (operand->shape() == row) return operand;
  const Tensor* constant = operand->constant();
  const std::optional<Dims> dims = as_constant(row);
  if (!constant || !dims || constant->rank() > x->rank()) return nullptr;
  if (constant->volume() == 1) return r.filled(constant->at_double(0), x->dtype(), *dims);
  Dims tail = constant->dims();
  while (tail.size() > dims->size() && tail.front() == 1) tail.erase(tail.begin());
  return tail == *dims ? r.constant(constant->reshaped(*dims)) : nullptr;
}

// The normalisation itself: without its mean a row's is a layer normalisation, as it stands an RMS normalisation. Scale
// and bias may be null. Null where the rows' dims are not known, or the scale is not one of rows.
ir::Value* normalized(Rewrite& r, const Normalized& found, ir::Value* scale = nullptr, ir::Value* bias = nullptr) {
  ir::Value* centred = centred_by_mean(found);
  ir::Value* x = centred ? centred : found.y;
  const std::optional<Dims> dims = row_dims(x, found.axis);
  if (!dims || !is_floating(x->dtype())) return nullptr;
  scale = scale ? row_operand(r, scale, x, found.axis) : r.filled(1, x->dtype(), *dims);
  if (!scale) return nullptr;
  if (!centred) {
    RmsNormalizationAttrs attrs;
    attrs.axis = found.axis - x->rank();
    attrs.epsilon = found.epsilon;
    ir::Value* y = r.add(attrs, {x, scale});
    return bias ? r.plus(y, bias) : y;
  }
  LayerNormalizationAttrs attrs;
  attrs.axis = found.axis - x->rank();
  attrs.epsilon = found.epsilon;
  ir::Value* row = bias ? row_operand(r, bias, x, found.axis) : nullptr;
  ir::Value* y = row ? r.add(attrs, {x, scale, row}) : r.add(attrs, {x, scale});
  return bias && !row ? r.plus(y, bias) : y;
}

Result<bool> to_bare_norm(Rewrite& r) {
  const std::optional<Normalized> found = normalized_of(r.node);
  ir::Value* y = found ? normalized(r, *found) : nullptr;
  return y && same_shape(y, r.output()) ? r.finish(y) : false;
}

// -mean * factor, which a bias may have been added to, or what it is taken from.
struct ScaledMean {
  const ir::Value* mean;
  ir::Value* bias = nullptr;
};
std::optional<ScaledMean> scaled_mean_of(const ir::Value* value, const ir::Value* factor) {
  for (size_t i : {0, 1}) {
    if (const ir::Node* product = made_by(value, Op::mul); product && product->input(i) == factor)
      if (const ir::Node* negative = made_by(product->input(1 - i), UnaryOp::neg))
        return ScaledMean{negative->input(0)};
    if (const ir::Node* sum = made_by(value, Op::add))
      if (const auto inner = scaled_mean_of(sum->input(i), factor); inner && !inner->bias)
        return ScaledMean{inner->mean, sum->input(1 - i)};
    const ir::Node* difference = made_by(value, Op::sub);
    const ir::Node* product = difference ? made_by(difference->input(1), Op::mul) : nullptr;
    if (product && product->input(i) == factor) return ScaledMean{product->input(1 - i), difference->input(0)};
  }
  return std::nullopt;
}

// As tf.nn.batch_normalization has it, of which Keras makes its layer normalisation.
Result<bool> with_mean_behind(Rewrite& r) {
  if (!is(r.node, Op::add)) return false;
  for (size_t i : {0, 1})
    for (size_t j : {0, 1}) {
      const ir::Node* product = made_by(r.input(i), Op::mul);
      if (!product) break;
      ir::Value *x = product->input(1 - j), *factor = product->input(j);
      const auto mean = scaled_mean_of(r.input(1 - i), factor);
      if (!mean) continue;
      const ir::Node* scaled = made_by(factor, Op::mul);
      for (size_t k : {0, 1}) {
        ir::Value* recip = scaled ? scaled->input(k) : factor;
        const std::optional<Normalized> found = normalized_with(recip);
        if (!found || centred_by_mean(*found) != x || made_by(found->y, Op::sub)->input(1) != mean->mean) continue;
        ir::Value* y = normalized(r, *found, scaled ? scaled->input(1 - k) : nullptr, mean->bias);
        if (!y) continue;
        r.absorb(product);
        return r.finish(y);
      }
    }
  return false;
}

// What is multiplied before it is normalised is as well multiplied behind.
Result<bool> with_scale_before(Rewrite& r) {
  if (!is(r.node, Op::mul)) return false;
  for (size_t i : {0, 1}) {
    const ir::Node* scaled = made_by(r.input(i), Op::mul);
    const std::optional<Normalized> found = scaled ? normalized_with(r.input(1 - i)) : std::nullopt;
    if (!found || !r.input(i)->has_single_use()) continue;
    for (size_t k : {0, 1}) {
      if (scaled->input(k) != found->y || !scaled->input(1 - k)->content()) continue;
      ir::Value* y = normalized(r, *found, scaled->input(1 - k));
      if (!y) continue;
      r.absorb(scaled);
      return r.finish(y);
    }
  }
  return false;
}

int64_t axis_of(const ir::Node* norm) {
  const int64_t axis = norm->is(OpKind::layer_normalization) ? norm->attrs<LayerNormalizationAttrs>().axis
                                                             : norm->attrs<RmsNormalizationAttrs>().axis;
  return axis < 0 ? axis + norm->output()->rank() : axis;
}

// The row normalisation that makes an operand of this node for this node alone, and the other operand.
struct Follower {
  const ir::Node* norm = nullptr;
  ir::Value* operand = nullptr;
};
Follower follower_of(const Rewrite& r, std::initializer_list<OpKind> kinds) {
  for (size_t i : {0, 1})
    for (OpKind kind : kinds)
      if (const ir::Node* norm = made_by(r.input(i), kind);
          norm && r.input(i)->has_single_use() && norm->num_outputs() == 1)
        return {norm, r.input(1 - i)};
  return {};
}

Result<bool> scale_into_norm(Rewrite& r) {
  if (!is(r.node, Op::mul)) return false;
  const auto [norm, operand] = follower_of(r, {OpKind::layer_normalization, OpKind::rms_normalization});
  if (!norm || norm->input(2) || !all_equal(norm->input(1), 1)) return false;
  ir::Value* scale = row_operand(r, operand, norm->output(), axis_of(norm));
  if (!scale) return false;
  r.absorb(norm);
  return r.finish(r.add(norm->attributes(), {norm->input(0), scale}));
}

Result<bool> bias_into_norm(Rewrite& r) {
  if (!is(r.node, Op::add)) return false;
  const auto [norm, operand] = follower_of(r, {OpKind::layer_normalization});
  if (!norm || norm->input(2)) return false;
  ir::Value* bias = row_operand(r, operand, norm->output(), axis_of(norm));
  if (!bias) return false;
  r.absorb(norm);
  return r.finish(r.add(norm->attributes(), {norm->input(0), norm->input(1), bias}));
}

// Rows are summed in f32 or better whatever the type, so casts around a norm only cost time.
Result<bool> casts_around_norm(Rewrite& r) {
  if (!r.context.fast_math || !r.input(0)->has_single_use()) return false;
  const ir::Node* norm = r.input(0)->producer();
  if (!norm || (!norm->is(OpKind::layer_normalization) && !norm->is(OpKind::rms_normalization)) ||
      norm->num_outputs() > 1)
    return false;
  const ir::Node* cast = made_by(norm->input(0), OpKind::cast);
  if (!cast || cast->input(0)->dtype() != r.output()->dtype() || size_of(norm->input(0)->dtype()) < 4) return false;
  if (keeps_floats(*norm, r.context)) return false;  // f32 is meant
  std::vector<ir::Value*> inputs = {cast->input(0)};
  for (size_t i = 1; i < norm->num_inputs(); ++i) {
    if (!norm->input(i)->content()) return false;
    inputs.push_back(r.add(r.node->attributes(), {norm->input(i)}));
  }
  r.absorb(cast);
  r.absorb(norm);
  return r.finish(r.add(norm->attributes(), std::move(inputs)));
}

// Group normalisation as exported: instance normalisation of x seen as [n, groups, rest].
Result<bool> to_group_norm(Rewrite& r) {
  const ir::Node* norm = made_by(r.input(0), OpKind::instance_normalization);
  const ir::Node* inner = norm ? made_by(norm->input(0), OpKind::reshape) : nullptr;
  if (!inner || !all_equal(norm->input(1), 1) || !all_equal(norm->input(2), 0)) return false;
  ir::Value* x = inner->input(0);
  if (!same_shape(x, r.output()) || x->rank() < 3 || norm->output()->rank() < 3 ||
      !(norm->output()->shape()[0] == x->shape()[0]))
    return false;
  const std::optional<int64_t> groups = norm->output()->shape()[1].as_constant(),
                               channels = x->shape()[1].as_constant();
  if (!groups || !channels || *groups < 1 || *channels % *groups != 0) return false;
  ir::Value* scale = r.filled(1, x->dtype(), {*channels});
  ir::Value* bias = r.filled(0, x->dtype(), {*channels});
  GroupNormalizationAttrs attrs;
  attrs.groups = *groups;
  attrs.epsilon = norm->attrs<InstanceNormalizationAttrs>().epsilon;
  r.absorb(norm);
  return r.finish(r.add(attrs, {x, scale, bias}));
}

// Per-channel factors and addends after group or instance normalisation.
Result<bool> affine_into_group_norm(Rewrite& r) {
  const bool product = is(r.node, Op::mul);
  if (!product && !is(r.node, Op::add)) return false;
  const auto [norm, operand] = follower_of(r, {OpKind::group_normalization, OpKind::instance_normalization});
  if (!norm || !norm->input(1)->constant() || !norm->input(2)->constant() || !same_shape(norm->output(), r.output()))
    return false;
  const auto values = along_axis(operand, r.output(), 1);
  if (!values) return false;
  std::vector<double> scale = to_doubles(*norm->input(1)->constant()), bias = to_doubles(*norm->input(2)->constant());
  for (size_t c = 0; c < scale.size(); ++c) {
    scale[c] *= product ? (*values)[c] : 1;
    bias[c] = product ? bias[c] * (*values)[c] : bias[c] + (*values)[c];
  }
  ir::Value* factor = r.constant(channel_tensor(norm->input(1)->dtype(), scale, 1, 0));
  ir::Value* addend = r.constant(channel_tensor(norm->input(2)->dtype(), bias, 1, 0));
  r.absorb(norm);
  return r.finish(r.add(norm->attributes(), {norm->input(0), factor, addend}));
}

Result<bool> to_softmax(Rewrite& r) {
  if (!is(r.node, Op::div) && !is(r.node, Op::mul)) return false;
  for (size_t i : {0, 1}) {
    const ir::Value *sum = r.input(1 - i), *exp = r.input(i);
    if (is(r.node, Op::mul)) {
      const ir::Node* recip = made_by(sum, UnaryOp::recip);
      sum = recip ? recip->input(0) : nullptr;
    }
    const std::optional<int64_t> axis = reduced_axis(sum, ReduceOp::sum, exp);
    const ir::Node* node = made_by(exp, UnaryOp::exp);
    const ir::Node* shifted =
        node && exp->uses().size() == 2 && !exp->is_graph_output() ? made_by(node->input(0), Op::sub) : nullptr;
    if (axis && shifted && reduced_axis(shifted->input(1), ReduceOp::max, shifted->input(0)) == axis) {
      r.absorb(node);
      return r.finish(r.softmax(shifted->input(0), *axis));
    }
    if (is(r.node, Op::div)) break;
  }
  return false;
}

}  // namespace

Result<bool> recognize_normalizations(ir::Graph& graph, PassContext& context) {
  static constexpr Rule rules[] = {
      {"x * f + (b - mean(x) * f) = layer_norm(x, s, b) where f = s / sqrt(mean((x - mean(x))^2) + eps)",
       OpKind::elementwise, with_mean_behind},
      {"(x * s) * (1 / sqrt(mean(x^2) + eps)) = rms_norm(x, s)", OpKind::elementwise, with_scale_before},
      {"(x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) = layer_norm(x); x / sqrt(mean(x^2) + eps) = rms_norm(x)",
       OpKind::elementwise, to_bare_norm},
      {"exp(x - max(x)) / sum(exp(x - max(x))) = softmax(x)", OpKind::elementwise, to_softmax},
      {"layer_norm(x, 1) * s = layer_norm(x, s); rms_norm(x, 1) * s = rms_norm(x, s)", OpKind::elementwise,
       scale_into_norm},
      {"layer_norm(x, s) + b = layer_norm(x, s, b)", OpKind::elementwise, bias_into_norm},
      {"cast{f16}(norm(cast{f32}(x), s, b)) = norm(x, cast(s), cast(b))", OpKind::cast, casts_around_norm},
      {"reshape(instance_norm(reshape(x, [n, g, -1]), 1, 0)) = group_norm{g}(x)", OpKind::reshape, to_group_norm},
      {"group_norm(x, s, b) * f = group_norm(x, s * f, b * f); group_norm(x, s, b) + t = group_norm(x, s, b + t)",
       OpKind::elementwise, affine_into_group_norm},
  };
  return apply_rules(graph, context, rules);
}

}  // namespace lathe
