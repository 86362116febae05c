// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts as ONNX Runtime has them: MoE, and QMoE, whose matrices are of 4 or 8 bits.
#include <cmath>
#include <functional>

#include "compose/mixture_of_experts.h"
#include "onnx/packed_levels.h"

namespace lathe::onnx {
namespace {

// Every second element of the last dimension.
ir::Value* every_second(NodeContext& c, ir::Value* x, int64_t first) {
  return c.add(SliceAttrs{}, {x, c.ints({first}), c.ints({INT64_MAX}), c.ints({-1}), c.ints({2})});
}

struct Swiglu {
  double alpha, beta, limit;

  ir::Value* of(NodeContext& c, ir::Value* gate, ir::Value* linear) const {
    if (limit < HUGE_VAL) {
      gate = c.binary(ElementwiseOp::min, gate, limit);
      linear = c.activation(ActivationOp::clip, linear, -limit, limit);
    }
    if (beta != 0) linear = c.binary(ElementwiseOp::add, linear, beta);
    return c.mul(c.activation(ActivationOp::swish, gate, alpha), linear);
  }
};

// What becomes of the first product, and of the third where there is one.
using Combine = std::function<ir::Value*(ir::Value* first, ir::Value* third)>;

// The first product may be both: in turns, or one behind the other.
enum Fusion : int64_t { kApart, kInTurns, kOneBehindTheOther };

Combine swiglu(NodeContext& c, int64_t fusion, bool has_third) {
  const Swiglu unit{c.real("activation_alpha", 1), c.real("activation_beta", 0), c.real("swiglu_limit", HUGE_VAL)};
  if (fusion < kApart || fusion > kOneBehindTheOther)
    c.invalid("swiglu_fusion is {}, expected 0, 1 or 2", fusion);
  else if (fusion == kApart && !has_third)
    c.invalid("swiglu of two products needs fc3_experts_weights");
  else if (fusion != kApart && has_third)
    c.invalid("fc3_experts_weights are given, but swiglu_fusion says that they are part of the first product's");
  return [&c, unit, fusion](ir::Value* first, ir::Value* third) {
    if (fusion == kApart) return unit.of(c, first, third);
    if (fusion == kInTurns) return unit.of(c, every_second(c, first, 0), every_second(c, first, 1));
    const int64_t size = c.dim(first, first->rank() - 1).as_constant().value_or(-1);
    if (size < 0 || size % 2 != 0)
      c.unsupported("swiglu_fusion 2 cuts the first product in two halves, but it has {} columns",
                    c.dim(first, first->rank() - 1).to_string());
    return unit.of(c, c.slice(first, -1, 0, size / 2), c.slice(first, -1, size / 2, size));
  };
}

Combine activation(NodeContext& c, bool has_third) {
  const std::string name = c.string("activation_type", "relu");
  const int64_t fusion = c.integer("swiglu_fusion", kApart);
  if (name == "swiglu") return swiglu(c, fusion, has_third);
  c.ignore({"activation_alpha", "activation_beta", "swiglu_limit"});
  ActivationOp op = ActivationOp::relu;
  if (name == "gelu")
    op = ActivationOp::gelu_erf;
  else if (name == "silu")
    op = ActivationOp::silu;
  else if (name != "relu" && name != "identity")
    c.unsupported("activation_type '{}' is not supported; give relu, gelu, silu, swiglu or identity", name);
  return [&c, op, is_identity = name == "identity"](ir::Value* first, ir::Value* third) {
    ir::Value* made = is_identity ? first : c.activation(op, first);
    return third ? c.mul(made, third) : made;
  };
}

// The experts that have the highest scores, and what they weigh: their shares, or what `weights` has of them.
struct Routing {
  ir::Value *chosen, *shares;
};
Routing route(NodeContext& c, ir::Value* scores, ir::Value* weights) {
  const int64_t count = c.integer("k", 1);
  const bool normalizes = c.flag("normalize_routing_weights", false);
  if (c.flag("use_sparse_mixer", false)) c.unsupported("use_sparse_mixer is not supported; leave it 0");
  const std::vector<ir::Value*> best = c.add_all(TopkAttrs{}, {c.softmax(scores, -1), c.ints({count})}, 2);
  ir::Value* shares = best[0];
  if (weights) {
    GatherElementsAttrs along_experts;
    along_experts.axis = -1;
    shares = c.add(along_experts, {weights, best[1]});
  }
  if (normalizes) shares = c.divide(shares, c.reduce(ReduceOp::sum, shares, {-1}));
  return {best[1], shares};
}

// Sets the node's result for tokens of 2 or 3 dimensions.
void set_mixture(NodeContext& c, Experts experts, const Combine& combine, const Routing& routing) {
  ir::Value* x = c.require(0);
  if (!c.failed() && x->rank() != 2 && x->rank() != 3)
    return c.invalid("the tokens have {} dimensions, expected 2 or 3", x->rank());
  if (c.failed()) return;
  experts.transposed = true;
  experts.combine = [&](ir::Value* first, ir::Value* third, ir::Value*) { return combine(first, third); };
  ir::Value* rows = x->rank() == 2 ? x : c.reshape(x, c.concat({c.ints({-1}), c.shape_of(x, -1)}, 0));
  ir::Value* y = mixture_of_experts(c, rows, routing.chosen, routing.shares, experts);
  c.set_output(0, x->rank() == 2 ? y : c.reshape(y, c.shape_of(x), true));
}

// One product of QMoE: the places of its inputs, and what errors call it.
struct QuantizedProduct {
  std::string_view name;
  size_t weights, scales, bias, zeros;
};
constexpr QuantizedProduct kProducts[] = {{"fc1", 2, 3, 4, 11}, {"fc2", 5, 6, 7, 12}, {"fc3", 8, 9, 10, 13}};

// [experts, n, k] of levels, rows of k of which share scales and zero points by blocks.
ir::Value* dequantized(NodeContext& c, const QuantizedProduct& product, int64_t block, DType type) {
  const int64_t bits =
      c.integer(fmt::format("{}_expert_weight_bits", product.name), c.integer("expert_weight_bits", 4));
  if (bits != 2 && bits != 4 && bits != 8)
    c.unsupported("{} has weights of {} bits; give 2, 4 or 8", product.name, bits);
  ir::Value *bytes = c.require(product.weights), *scales = c.require(product.scales);
  const std::optional<Dims> dims = as_constant(bytes->shape());
  if (!c.failed() && (!dims || dims->size() != 3))
    c.invalid("the weights of {} are {}, expected 3 known dimensions", product.name, to_string(bytes->shape()));
  if (c.failed()) return bytes;
  const int64_t experts = (*dims)[0], n = (*dims)[1], k = (*dims)[2] * 8 / bits;
  if (block > 0 && k % block != 0)
    c.invalid("{} has rows of {} weights, no multiple of block_size {}", product.name, k, block);
  const int64_t blocks = block > 0 ? k / block : 1;
  const auto what = [&](std::string_view part) { return fmt::format("the {} of {}", part, product.name); };
  const Ints wanted = {experts, n, k}, by_blocks = {experts, n, blocks};
  std::vector<ir::Value*> operands = {
      c.reshape(unpacked_levels(c, product.weights, what("weights"), {bits, experts * n, k}), wanted),
      c.reshape(scales, by_blocks)};
  if (!c.has(product.zeros))
    operands.push_back(c.filled(1 << (bits - 1), level_type(bits), by_blocks));
  else
    operands.push_back(
        c.reshape(unpacked_levels(c, product.zeros, what("zero points"),
                                  block > 0 ? LevelRows{bits, experts * n, blocks} : LevelRows{bits, experts, n}),
                  by_blocks));
  DequantizeAttrs attributes;
  attributes.to = type;
  attributes.blocks = {1, 1, block > 0 ? block : 0};
  return c.add(attributes, std::move(operands));
}

}  // namespace

void import_mixture_of_experts(NodeContext& c) {
  const Combine combine = activation(c, c.has(6));
  const Experts experts{c.require(2), c.input(6), c.require(4), c.input(3), c.input(7), c.input(5)};
  set_mixture(c, experts, combine, route(c, c.require(1), nullptr));
}

void import_quantized_mixture_of_experts(NodeContext& c) {
  constexpr size_t kRouterWeights = 14, kScalesOfFloats = 15;
  const auto& [first, second, third] = kProducts;
  // The least that products may be computed in, which is never more than what they are; the bits of a part of fc1.
  c.ignore({"accuracy_level", "fc3_expert_weight_bits"});
  if (const std::string type = c.string("quant_type", "int"); type != "int")
    c.unsupported("quant_type '{}' is not supported; give int", type);
  if (c.integer("weights_prepacked", -1) == 1) c.unsupported("weights_prepacked is 1; give weights in rows");
  for (size_t i = kScalesOfFloats; i < c.num_inputs(); ++i)
    if (c.has(i)) c.unsupported("input {} is of floats of 4 and 8 bits, which are not supported", i);
  const int64_t block = c.integer("block_size", 0);
  if (block < 0) c.invalid("block_size is {}", block);
  const Combine combine = activation(c, c.has(third.weights));
  const DType type = c.require(0)->dtype();
  const auto weights = [&](const QuantizedProduct& product) { return dequantized(c, product, block, type); };
  const Experts experts{weights(first),      c.has(third.weights) ? weights(third) : nullptr,
                        weights(second),     c.input(first.bias),
                        c.input(third.bias), c.input(second.bias)};
  set_mixture(c, experts, combine, route(c, c.require(1), c.input(kRouterWeights)));
}

}  // namespace lathe::onnx
