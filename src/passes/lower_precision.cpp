// SPDX-License-Identifier: Apache-2.0
// Brings f32 computation down to f16 or bf16 where the context allows it. Kernels accumulate in f32 all the same; what
// is narrowed are the tensors between them. The network's inputs and outputs keep their types. Targets that compute in
// f32 may round factors of products to bf16 if that makes them faster; their tensors stay f32.
//
// What may lie beyond f16's range becomes its largest number, not infinity: a mask of f32's lowest number would else
// turn rows that it hides wholly into NaN where softmax subtracts their largest, and PyTorch's own f16 models mask with
// f16's lowest. A floor that keeps a divisor from 0 does not become 0: 1e-12 of a clip, a maximum or a sum becomes
// f16's least number, or rows of zeros would be divided by 0.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/divide.h"
#include "base/for_each_in_threads.h"
#include "ops/narrowing.h"
#include "passes/match.h"
#include "passes/pins.h"
#include "passes/precision_rules.h"
#include "passes/weights_math.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

// What a layer has beside its computation.
bool is_conversion(const Node& node) {
  return node.is(OpKind::constant) || node.is(OpKind::cast) || node.is(OpKind::dequantize);
}

// Single numbers cost nothing in f32, and shapes may hang on them.
bool is_single(const Value& value) { return volume(value.shape()) == Expr(1); }

// Whether it multiplies sums of 8-bit floats, by their scales. These are as small as the sums are large, and f16 has
// the range of neither.
bool scales_sums(const Node& node) {
  if (!is(&node, ElementwiseOp::mul)) return false;
  return std::ranges::any_of(node.inputs(), [](const Value* input) {
    const Node* product = input->producer();
    return product && product->has_trait(kFloat8) && is_factor_float8(product->input(0)->dtype());
  });
}

bool is_pointwise(const Node& node) {
  return node.is(OpKind::elementwise) || node.is(OpKind::activation) || node.is(OpKind::unary);
}

constexpr int kMostPointwise = 16;  // that are looked through: a step has room for no more, with what levels take

// How many products are among what a value is computed of by pointwise ops: constants and what is dequantised, of
// integers or 8-bit floats. Nothing where there is something else, or a step in between has further readers.
std::optional<int> products_behind(const Value& value, int depth = kMostPointwise) {
  const Node* node = value.producer();
  if (value.content()) return 0;
  if (!node || depth == 0) return std::nullopt;
  if (node->is(OpKind::dequantize)) return node->input(0)->dtype() == DType::i32 ? 1 : 0;
  if (!is_pointwise(*node)) return std::nullopt;
  int products = 0;
  for (const Value* input : node->inputs()) {
    const std::optional<int> more = input ? products_behind(*input, depth - 1) : std::nullopt;
    if (!more || (!input->content() && input->uses().size() != 1)) return std::nullopt;
    products += *more;
  }
  return products;
}

// Whether pointwise ops make levels of levels, and of one product's sums at most: all of it is one step, none of whose
// floats is ever in memory.
bool is_between_levels(const Node& node) {
  const Node* last = &node;
  for (int i = 0; i < kMostPointwise && is_pointwise(*last) && last->output()->uses().size() == 1; ++i) {
    const Node* next = last->output()->uses().front().node;
    if (next->is(OpKind::quantize)) return products_behind(*last->output()).value_or(2) <= 1;
    last = next;
  }
  return false;
}

constexpr float kLargestHalf = 65504;
constexpr float kLeastHalf = 0x1p-24f;  // above 0

bool vanishes(double floor) { return floor > 0 && rounded_to(DType::f16, floor) == 0; }

// Whether any number would become infinite. Infinity and NaN stay what they are.
bool any_beyond_half(std::span<const float> values) {
  return std::ranges::any_of(
      values, [](float value) { return std::isfinite(value) && std::isinf(static_cast<float>(Half(value))); });
}

// A network has many weights: they are rounded several at a time, and only where that gives infinity or NaN is each
// looked at.
bool fits_half(const Tensor& constant, int threads) {
  constexpr size_t kBlock = 4096, kOfThread = 1 << 20;
  const std::span values(constant.as<float>(), static_cast<size_t>(constant.volume()));
  std::atomic<bool> fits = true;
  for_each_in_threads(ceil_div(values.size(), kOfThread), threads, [&](size_t i, size_t) {
    alignas(Half) std::array<std::byte, kBlock * sizeof(Half)> rounded;
    const size_t end = std::min((i + 1) * kOfThread, values.size());
    for (size_t at = i * kOfThread; at < end && fits; at += kBlock) {
      const auto block = values.subspan(at, std::min(kBlock, end - at));
      const bool is_large = narrow(block.data(), static_cast<int64_t>(block.size()), DType::f16, rounded.data());
      if (is_large && any_beyond_half(block)) fits = false;
    }
  });
  return fits;
}

class PrecisionLowering {
 public:
  PrecisionLowering(ir::Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  Result<bool> run() {
    std::vector<Node*> nodes;
    for (const auto& node : graph_.nodes()) nodes.push_back(node.get());
    for (Node* node : nodes) {
      if (rounds_factors(*node)) {
        if (factors_of(node->attributes()) == DType::bf16) continue;
        LATHE_TRY(round_factors(graph_, *node, DType::bf16));
        has_rounded_ = true;
        continue;
      }
      const DType type = type_for(*node);
      if (type == DType::f32)
        LATHE_TRY(keep_wide(*node));
      else
        LATHE_TRY(lower(*node, type));
    }
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      Value* value = graph_.outputs()[i].value;
      if (!lowered_.contains(value)) continue;
      LATHE_ASSIGN(Value * wide, cast(value, DType::f32, nullptr));
      graph_.set_output(i, wide);
    }
    return !lowered_.empty() || has_rounded_;
  }

 private:
  // Whether its tensors stay f32, and it rounds them as it multiplies.
  bool rounds_factors(const Node& node) {
    const Arithmetic& arithmetic = context_.arithmetic;
    if (arithmetic.narrow_floats || !arithmetic.bf16_factors) return false;
    const std::optional<DType> factors = factors_of(node.attributes());
    return node.output()->dtype() == DType::f32 && factors && *factors != DType::f8e4m3fn &&
           pinned_precision(node, context_).value_or(context_.precision) == DType::bf16;
  }

  // What the node's f32 results become; f32 when they stay.
  DType type_for(const Node& node) {
    const PrecisionRule rule = precision_rule(node);
    if (node.output()->dtype() != DType::f32) return DType::f32;
    const std::optional<DType> pin = rule == PrecisionRule::follow ? std::nullopt : pinned_precision(node, context_);
    const DType narrow = rule == PrecisionRule::follow ? type_of_moved(node) : pin.value_or(context_.precision);
    if (narrow == DType::f32) return DType::f32;
    const std::string_view obstacle = obstacle_to(node, rule, narrow, pin.has_value());
    if (obstacle.empty()) return rule == PrecisionRule::keep ? DType::f32 : narrow;
    if (pin) note_unmet(node, obstacle, context_);
    return DType::f32;
  }

  std::string_view obstacle_to(const Node& node, PrecisionRule rule, DType narrow, bool pinned) {
    if (rule == PrecisionRule::keep) return is_conversion(node) ? "" : "there is no kernel of that type";
    if (!context_.arithmetic.narrow_floats) return "the target computes in f32";
    if (!pinned && is_single(*node.output())) return "a single number";
    if (!pinned && is_between_levels(node)) return "it is computed between levels";
    if (scales_sums(node)) return "it scales sums of 8-bit floats";
    for (size_t i = 0; i < node.num_inputs(); ++i) {
      const Value* input = node.input(i);
      if (!input || !is_computed_with(node, i) || lowered_.contains(input)) continue;
      if (narrow == DType::f16 && input->content() && exceeds_half(*input)) return "its weights are out of range";
    }
    return "";
  }

  // Of the first operand that became narrow.
  DType type_of_moved(const Node& node) const {
    for (size_t i = 0; i < node.num_inputs(); ++i)
      if (node.input(i) && lowered_.contains(node.input(i))) return node.input(i)->dtype();
    return DType::f32;
  }

  Result<> lower(Node& node, DType narrow) {
    if (narrow == DType::f16 && is(&node, ActivationOp::clip)) LATHE_TRY(keep_lower_bound(node));
    const bool has_floor = narrow == DType::f16 && (is(&node, ElementwiseOp::max) || is(&node, ElementwiseOp::add));
    std::vector<Value*> inputs = node.inputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i] || (inputs[i]->dtype() != DType::f32 && !lowered_.contains(inputs[i]))) continue;
      if (has_floor) {
        LATHE_ASSIGN(inputs[i], keep_floor(inputs[i], node));
      }
      LATHE_ASSIGN(inputs[i], cast(inputs[i], is_computed_with(node, i) ? narrow : DType::f32, &node));
    }
    LATHE_TRY(graph_.set_inputs(&node, std::move(inputs)));
    for (size_t i = 0; i < node.num_outputs(); ++i)
      if (node.output(i)->dtype() == narrow) lowered_.insert(node.output(i));
    return {};
  }

  Result<> keep_lower_bound(Node& clip) {
    auto attrs = clip.attrs<ActivationAttrs>();
    if (!vanishes(attrs.alpha) || attrs.beta < kLeastHalf) return {};
    attrs.alpha = kLeastHalf;
    return graph_.set_attributes(&clip, attrs);
  }

  // What an operand of a maximum or a sum becomes.
  Result<Value*> keep_floor(Value* operand, Node& before) {
    if (!vanishes(scalar_of(operand).value_or(0))) return operand;
    LATHE_ASSIGN(Tensor least, Tensor::allocate(DType::f32, operand->content()->dims()));
    *least.mutable_as<float>() = kLeastHalf;
    return graph_.add_constant(std::move(least), operand->name() + "_floor", &before);
  }

  // Constants are looked through once, whoever reads them.
  bool exceeds_half(const Value& value) {
    const auto [known, is_new] = beyond_half_.try_emplace(&value, false);
    if (is_new && value.dtype() == DType::f32 && value.content())
      known->second = !fits_half(*value.content(), context_.threads);
    return known->second;
  }

  Result<> keep_wide(Node& node) {
    std::vector<Value*> inputs = node.inputs();
    bool changed = false;
    for (Value*& input : inputs) {
      if (!input) continue;
      if (exceeds_half(*input))
        for (size_t i = 0; i < node.num_outputs(); ++i) beyond_half_[node.output(i)] = true;
      if (!lowered_.contains(input)) continue;
      LATHE_ASSIGN(input, cast(input, DType::f32, &node));
      changed = true;
    }
    return changed ? graph_.set_inputs(&node, std::move(inputs)) : Result<>();
  }

  // One cast of each value serves all readers that come later.
  Result<Value*> cast(Value* value, DType to, Node* before) {
    if (value->dtype() == to) return value;
    Value*& made = casts_[{value, to}];
    if (made) return made;
    Value* source = value;
    if (to == DType::f16 && exceeds_half(*value)) {
      ActivationAttrs attrs;
      attrs.op = ActivationOp::clip;
      attrs.alpha = -kLargestHalf;
      attrs.beta = kLargestHalf;
      LATHE_ASSIGN(source,
                   graph_.add_value(attrs, {value}, {fmt::format("{}_clipped", value->name()), {}, {}}, before));
    }
    LATHE_ASSIGN(made, add_named_cast(graph_, source, to, {}, before));
    return made;
  }

  ir::Graph& graph_;
  PassContext& context_;
  bool has_rounded_ = false;
  std::unordered_set<const Value*> lowered_;            // f32 before
  std::unordered_map<const Value*, bool> beyond_half_;  // of f32: whether it may exceed f16's largest number
  std::map<std::pair<const Value*, DType>, Value*> casts_;
};

}  // namespace

Result<bool> lower_precision(ir::Graph& graph, PassContext& context) {
  if (context.precision == DType::f32 && context.pins.empty()) return false;
  return PrecisionLowering(graph, context).run();
}

}  // namespace lathe
