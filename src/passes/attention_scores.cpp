// SPDX-License-Identifier: Apache-2.0
#include "passes/attention_scores.h"

#include <algorithm>

#include "passes/lost_attention.h"
#include "passes/match.h"
#include "passes/quantization.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;
using Op = ElementwiseOp;
using Kind = ScoreChange::Kind;

// Reshapes may split and merge leading dimensions: rows stay rows of keys.
bool keeps_rows(const Node& node) {
  if (!node.has_trait(kView)) return false;
  const Shape &from = node.input(0)->shape(), &to = node.output()->shape();
  return from.size() >= 3 && to.size() >= 3 && std::equal(from.end() - 2, from.end(), to.end() - 2);
}

bool is_product(const Node& node) {
  return multiplies_computed(&node) && node.input(0)->rank() >= 2 && node.input(1)->rank() >= 2 &&
         node.output()->rank() >= 3;
}

// Whether scores may come through that input, as far as its kind says.
bool may_pass(const Node& node, size_t input) {
  if (node.is(OpKind::elementwise)) {
    const Op op = node.attrs<ElementwiseAttrs>().op;
    return op == Op::add || op == Op::mul || (input == 0 && (op == Op::sub || op == Op::div));
  }
  if (node.is(OpKind::select)) return input > 0;
  return input == 0 && (node.is(OpKind::cast) || is(&node, ActivationOp::tanh) || keeps_rows(node));
}

// Whether x, which broadcasts to `value`, is all of it, as far as that is known: sizes may be equal that look
// different.
bool may_be_whole(const Value* x, const Value* value) {
  return std::equal(x->shape().begin(), x->shape().end(), value->shape().begin(), value->shape().end(),
                    [](const Expr& a, const Expr& b) { return a == b || (a != Expr(1) && !b.is_constant()); });
}

// Whether the value is made of a product by such nodes, of which attention has few.
bool leads_to_product(const Value* value) {
  constexpr size_t kMostValues = 64;
  std::vector<const Value*> values = {value};
  for (size_t at = 0; at < values.size() && at < kMostValues; ++at) {
    const Node* node = values[at]->producer();
    if (!node) continue;
    if (is_product(*node)) return true;
    for (size_t i = 0; i < node->num_inputs(); ++i)
      if (may_pass(*node, i) && (keeps_rows(*node) || may_be_whole(node->input(i), values[at])) &&
          std::find(values.begin(), values.end(), node->input(i)) == values.end())
        values.push_back(node->input(i));
  }
  return false;
}

// Whether it leaves out the last of each row.
bool drops_last(const Node& node) {
  const Value* x = node.input(0);
  const std::optional<Ints> starts = ints_of(node.input(1));
  const std::optional<Ints> axes = axes_of(node.input(3), starts ? starts->size() : 0, x->rank());
  const bool has_steps = node.input(4) && !all_equal(node.input(4), 1);
  return starts == Ints{0} && axes == Ints{x->rank() - 1} && !has_steps &&
         node.output()->shape().back() + Expr(1) == x->shape().back();
}

// One for all keys of all queries of a head.
bool is_of_heads(const Value* value) {
  const Shape& shape = value->shape();
  return shape.empty() || (shape.back() == Expr(1) && (shape.size() == 1 || shape[shape.size() - 2] == Expr(1)));
}

class Matcher {
 public:
  explicit Matcher(AttentionRefusal& refusal) : refusal_(refusal) {}

  std::optional<AttentionScores> run(const Value* probabilities) {
    at_ = probabilities;
    return match() ? std::optional(std::move(found_)) : std::nullopt;
  }

 private:
  bool match() {
    std::vector<const Value*> probabilities;
    while (!(found_.softmax = made_by(at_, OpKind::softmax))) {
      probabilities.push_back(at_);
      if (!pass_probabilities()) return false;
    }
    if (!found_.zeros_for_nan) probabilities.push_back(at_);
    add_form(at_);
    at_ = found_.softmax->input(0);
    const auto& attrs = found_.softmax->attrs<SoftmaxAttrs>();
    if (attrs.log || (attrs.axis != -1 && attrs.axis != at_->rank() - 1) ||
        (cuts_sinks_ && !pass_sinks(probabilities)) || !leads_to_product(at_))
      return false;  // of something else
    for (const Value* value : probabilities)
      if (!require_single_use(value)) return false;
    while (at_->producer() && !is_product(*at_->producer())) {
      if (!leads_to_product(at_) || !require_single_use(at_) || !pass_scores(*at_->producer())) return false;
      add_form(at_);
    }
    if (!at_->producer() || !require_single_use(at_)) return false;
    found_.product = at_->producer();
    std::reverse(found_.changes.begin(), found_.changes.end());
    return true;
  }

  bool refuse(std::string reason) {
    refusal_ = {found_.softmax, std::move(reason)};
    return false;
  }

  // Scores and probabilities will not be in memory for others to read.
  bool require_single_use(const Value* value) {
    return value->has_single_use() || (value == shifted_ && value->uses().size() == 2) ||
           refuse(fmt::format("'{}' is read by others, too", value->name()));
  }

  void add_form(const Value* value) {
    if (found_.forms.empty() || !same_shape(found_.forms.back(), value)) found_.forms.push_back(value);
  }

  bool refuse_rounding(const Node& node, std::string reason) {
    const Value* value = node.input(0);
    for (const Node* made = value->producer(); made && !made->is(OpKind::softmax); made = value->producer()) {
      const size_t side = made->is(OpKind::select) ? 2 : 0;  // where it is a number
      if (!may_pass(*made, side)) break;
      value = made->input(side);
    }
    refusal_ = {made_by(value, OpKind::softmax), std::move(reason)};
    return false;
  }

  // Probabilities that are rounded to 8-bit floats: levels, what is dequantised of them, or what targets without such
  // levels compute. The largest number must reach 1, or nearly, so that no more is cut off than is rounded off.
  bool pass_rounding(const Node& node, double scale) {
    constexpr double kLargest = 448, kRounding = 1.0 / 16;
    if (found_.rounds_to_float8 || !(scale > 0)) return refuse_rounding(node, "its probabilities are rounded twice");
    if (kLargest * scale < 1 - kRounding)
      return refuse_rounding(node, fmt::format("its probabilities are cut off at {:.3g}", kLargest * scale));
    found_.rounds_to_float8 = true;
    found_.factor /= scale;
    return true;
  }
  bool pass_levels(const Node& node) {
    const auto& attrs = node.attrs<QuantizeAttrs>();
    const std::optional<double> scale = scalar_of(node.input(1));
    if (is_byte_integer(attrs.to)) return refuse_rounding(node, std::string(kIntegerProbabilities));
    if (attrs.to != DType::f8e4m3fn || !attrs.saturate || node.input(2) || !scale)
      return refuse_rounding(node, fmt::format("its probabilities are quantised to {}, or not by one known scale",
                                               name_of(node.output()->dtype())));
    at_ = node.input(0);
    return pass_rounding(node, *scale);
  }
  bool pass_rounded(const Node& node) {
    const std::optional<WithScalar> scaled = match_scaled(node.input(0));
    if (!scaled) return false;
    at_ = scaled->x;
    return pass_rounding(node, 1 / scaled->c);
  }
  bool pass_factor(const Value* x, double factor) {
    found_.factor *= factor;
    at_ = x;
    return true;
  }

  // From the matmul's left operand to the softmax: casts, other leading dimensions, rounding, and zeros where it is not
  // a number.
  bool pass_probabilities() {
    const Node* node = at_->producer();
    if (!node) return false;
    add_form(at_);
    if (node->is(OpKind::quantize)) return pass_levels(*node);
    if (is(node, UnaryOp::round_e4m3)) return pass_rounded(*node);
    if (const auto numbers = dequantized(at_); numbers && numbers->is_uniform())
      return pass_factor(numbers->integers, numbers->scale->at_double(0));
    if (const auto scaled = match_scaled(at_); scaled && scaled->c != 0) return pass_factor(scaled->x, scaled->c);
    if (node->is(OpKind::cast) || keeps_rows(*node)) {
      at_ = node->input(0);
      return is_floating(at_->dtype());
    }
    if (node->is(OpKind::slice)) {
      if (cuts_sinks_ || !drops_last(*node)) return false;
      cuts_sinks_ = true;
      at_ = node->input(0);
      return true;
    }
    if (!node->is(OpKind::select)) return false;
    const Node* is_nan = made_by(node->input(0), UnaryOp::is_nan);
    const Value* softmax = node->input(2);
    if (!is_nan || is_nan->input(0) != softmax || softmax->uses().size() != 2 || splat_of(node->input(1)) != 0.0)
      return false;
    found_.zeros_for_nan = true;
    at_ = softmax;
    return true;
  }

  // From the softmax to what of it is of keys; `values` that nobody else may read are added.
  bool pass_sinks(std::vector<const Value*>& values) {
    for (const Node* cast = nullptr; (cast = made_by(at_, OpKind::cast)); at_ = cast->input(0)) values.push_back(at_);
    const Node* concat = made_by(at_, OpKind::concat);
    if (!concat || concat->num_inputs() != 2 || concat->input(1)->shape().back() != Expr(1)) return false;
    const int64_t axis = concat->attrs<ConcatAttrs>().axis;
    if (axis != -1 && axis != at_->rank() - 1) return false;
    values.push_back(at_);
    found_.sinks = concat->input(1);
    at_ = concat->input(0);
    return true;
  }

  bool pass_scores(const Node& node) {
    if (node.is(OpKind::cast) || keeps_rows(node)) {
      at_ = node.input(0);
      return is_floating(at_->dtype()) || refuse("its scores are integers");
    }
    if (node.is(OpKind::activation)) return pass_cap(node);
    if (node.is(OpKind::select)) return pass_selection(node);
    return pass_arithmetic(node);
  }

  bool pass_cap(const Node& node) {
    if (found_.softcap != 0 || has_multiplication()) return refuse("its scores are multiplied or capped behind a cap");
    found_.softcap = found_.scale;
    at_ = node.input(0);
    return true;
  }

  // The input through which the scores come.
  size_t side_of(const Node& node, size_t first) const {
    for (size_t i = first; i < node.num_inputs(); ++i)
      if (may_pass(node, i) && may_be_whole(node.input(i), at_) && leads_to_product(node.input(i))) return i;
    return first;
  }

  bool has_multiplication() const {
    return std::any_of(found_.changes.begin(), found_.changes.end(),
                       [](const ScoreChange& change) { return change.kind == Kind::multiply; });
  }

  // Masks come last.
  bool require_no_change_behind() {
    return (found_.softcap == 0 && !has_multiplication()) ||
           refuse("masks come before its scores are capped, or multiplied by a value of each head");
  }

  bool pass_selection(const Node& node) {
    const size_t side = side_of(node, 1);
    const std::optional<double> hidden = splat_of(node.input(3 - side));
    if (!hidden) return refuse("what stands for hidden scores is not one number");
    if (!require_no_change_behind()) return false;
    const Kind kind = side == 1 ? Kind::hide_where_false : Kind::hide_where_true;
    found_.changes.push_back({kind, node.input(0), at_, 1, *hidden * found_.scale});
    at_ = node.input(side);
    return true;
  }

  // Of each query: what is the same for all of its keys, the softmax takes off itself. Networks that multiply scores in
  // 16 bits do so before, where the product would not fit; attention's scores are f32.
  bool takes_off_largest(const Node& node) const {
    const Value* x = node.input(0);
    return found_.softcap == 0 && reduced_axis(node.input(1), ReduceOp::max, x) == x->rank() - 1;
  }

  bool pass_arithmetic(const Node& node) {
    const Op op = node.attrs<ElementwiseAttrs>().op;
    const size_t side = side_of(node, 0);
    Value* other = node.input(1 - side);
    if (op == Op::sub && takes_off_largest(node)) {
      at_ = shifted_ = node.input(0);
      return true;
    }
    if (op == Op::mul || op == Op::div) {
      if (const std::optional<double> number = splat_of(other); number && *number != 0) {
        found_.scale *= op == Op::mul ? *number : 1 / *number;
      } else if (op == Op::mul && is_of_heads(other)) {
        found_.changes.push_back({Kind::multiply, other, at_});
      } else {
        return refuse("its scores are multiplied by values of each query or key");
      }
    } else {
      if (!require_no_change_behind()) return false;
      found_.changes.push_back({Kind::add, other, at_, op == Op::add ? found_.scale : -found_.scale});
    }
    at_ = node.input(side);
    return true;
  }

  AttentionRefusal& refusal_;
  const Value* at_ = nullptr;
  const Value* shifted_ = nullptr;  // of which the largest is taken off
  bool cuts_sinks_ = false;
  AttentionScores found_;
};

}  // namespace

std::optional<AttentionScores> attention_scores(const Value* probabilities, AttentionRefusal& refusal) {
  return Matcher(refusal).run(probabilities);
}

}  // namespace lathe
