// SPDX-License-Identifier: Apache-2.0
#include "lowering/producers.h"

#include <algorithm>

#include "lowering/expression_builder.h"
#include "lowering/few_channels.h"
#include "lowering/moved_epilogue.h"
#include "passes/stays_packed.h"
#include "tuning/problem.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

// What may lie in any order: factors of products, and what is reduced, but see keeps_runs(). Of images, layouts are
// chosen (lowering/layouts.cpp).
bool reads_in_any_order(const Node& root, size_t input) {
  if (root.has_trait(kPixels)) return false;
  return is_factor(root.info(), input) || (root.has_trait(kReduction) && input == 0);
}

// Whether neighbours along the last axis are neighbours in memory: kernels that read rows or columns of it read runs. A
// copy moves what lies otherwise by tiles, which is quicker than reading it with strides.
bool keeps_runs(const Region& movement) {
  const Expression& expression = movement.expression;
  const Shape strides = dense_strides(expression.operands[0]->shape(), Layout::linear);
  const std::optional<Access> access = access_of(expression.reads[0].map, strides, expression.space);
  return access && access->strides.back() == Expr(1);
}

// Each tile of columns reads its rows anew, each tile of queries all keys and values, and so does each head that shares
// them. How often that is, is known of few of them.
std::optional<double> times_read_by_tiles(const Node& node, size_t input) {
  constexpr int64_t kFew = 256;
  constexpr double kTiles = 2;
  if (node.is(OpKind::attention)) {
    if (input == 0) return 1;
    const Shape &q = node.input(0)->shape(), &k = node.input(1)->shape();
    const auto queries = q[2].as_constant(), heads = q[1].as_constant(), shared = k[1].as_constant();
    if (!queries || !heads || shared.value_or(0) == 0) return std::nullopt;
    return *queries * (*heads / *shared) <= kFew ? std::optional(kTiles) : std::nullopt;
  }
  if (input != 0 || !node.input(1)->content()) return std::nullopt;
  const Shape& y = node.output()->shape();
  const auto columns = y.empty() ? 1 : y[contiguous_dim(node)].as_constant();
  return columns && *columns <= kFew ? std::optional(kTiles) : std::nullopt;
}

// How often an op reads an element of its input, and computes it where its kernel does; nullopt = that is not known.
std::optional<double> times_read(const Node& node, size_t input, const BackendTraits& traits) {
  constexpr double kTiles = 1.5;  // which overlap
  if (input == 0 && gathers_pixels(node, traits)) return kTiles;
  if (is_factor(node.info(), input)) return times_read_by_tiles(node, input);
  if (input != 0) return std::nullopt;
  if (node.has_trait(kReduction))
    return node.output()->shape() == node.input(0)->shape() ? 2 : 1;  // and for a statistic
  if (!node.is(OpKind::pooling)) return std::nullopt;
  const auto& attrs = node.attrs<PoolingAttrs>();
  double times = 1;  // as often as windows overlap
  for (size_t i = 0; i < attrs.window.size(); ++i) {
    const int64_t stride = attrs.stride.empty() ? 1 : attrs.stride[i];
    if (node.output()->shape()[i + 2] != Expr(1))
      times *= std::max(1.0, static_cast<double>(attrs.window[i]) / static_cast<double>(stride));
  }
  return times;
}

// How much longer an instruction takes than in an expression: it waits between the copies and products of a tile.
double slowness(const Node& reader, const BackendTraits& traits) {
  return reader.has_trait(kContraction) && !gathers_pixels(reader, traits) ? 2 : 1;
}

// Factors are copied to shared memory, and stay in their type; what goes to registers need not.
bool can_be_source(const Value& value, const Node& reader, DType result, const BackendTraits& traits) {
  const DType dtype = value.dtype();
  if (reader.has_trait(kContraction) && dtype != result && !gathers_pixels(reader, traits)) return false;
  const bool small = is_integer(dtype) && size_of(dtype) <= 2;
  return !value.content() && (small || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16);
}

}  // namespace

std::optional<Region> movement_before(const Node& root, size_t input, const NodeOrder& order, const MayJoin& may_join) {
  if (!reads_in_any_order(root, input) || !root.input(input)->has_single_use()) return std::nullopt;
  Node* last = root.input(input)->producer();
  const auto joins = [&](const Node& node) { return permutes_elements(node) && may_join(node); };
  if (!last || !joins(*last)) return std::nullopt;
  ExpressionBuilder expression(last, order);
  expression.grow(joins);
  const std::vector<Node*>& nodes = expression.nodes();
  const bool reorders = std::ranges::any_of(nodes, [](Node* node) { return reorders_elements(*node); });
  const bool copies = root.has_trait(kReduction) && takes_a_copy(*last);  // columns of a product, as heads
  if ((!reorders && !copies) || !expression.is_known()) return std::nullopt;
  std::optional<Region> region = expression.region();
  if (!region) return std::nullopt;
  const Value* source = region->expression.operands[0];
  const Node* producer = source->producer();
  const bool is_written_so =
      producer && source->has_single_use() && !permutes_elements(*producer) && may_join(*producer);
  if (source->content() || is_written_so || (root.has_trait(kReduction) && !keeps_runs(*region))) return std::nullopt;
  return region;
}

std::optional<Region> update_before(const Node& root, const NodeOrder& order, const MayJoin& may_join) {
  const Value* update = root.input(1);
  Node* last = update->producer();
  if (!last || !update->has_single_use() || !may_join(*last)) return std::nullopt;
  ExpressionBuilder expression(last, order);
  expression.join_computed_parts();
  if (!expression.is_known()) return std::nullopt;
  expression.grow(may_join, kMaxProgramCode / 2);
  std::optional<Region> region = expression.region();
  for (; !region && expression.size() > 1; region = expression.region()) expression.drop_last();
  if (!region || region->expression.operands[0]->content()) return std::nullopt;
  const Expression& joined = region->expression;
  const bool is_whole =
      joined.moves_elements(update->shape()) || joined.operands[0]->shape() == update->shape();  // Problems::produced()
  return joined.reads[0].fill || !is_whole ? std::nullopt : region;
}

Expression packed_weights(const Node& dequantize, const NodeOrder& order) {
  Expression expression;
  Space space(order.symbols);
  const Shape index = space.add(dequantize.output()->shape());
  expression.space = std::move(space);
  expression.operands = {dequantize.input(0)};
  expression.reads.push_back({{index, {}}, {}});
  for (size_t i = 1; i < dequantize.num_inputs(); ++i) {
    if (!dequantize.input(i)) continue;
    const Dims blocks = blocks_of(dequantize, i);
    const size_t rank = dequantize.input(i)->shape().size();
    Shape own;
    for (size_t d = index.size() - rank; d < index.size(); ++d) own.push_back(floordiv(index[d], blocks[d]));
    expression.operands.push_back(dequantize.input(i));
    expression.reads.push_back({{std::move(own), {}}, {}});
  }
  const auto inputs = static_cast<uint16_t>(expression.operands.size());
  Program& program = expression.program;
  program.num_inputs = inputs;
  if (inputs == 3) program.code.push_back({Opcode::sub, {0, 2}, {}});
  program.code.push_back({Opcode::mul, {static_cast<uint16_t>(inputs == 3 ? 3 : 0), 1}, {}});
  program.outputs = {static_cast<uint16_t>(inputs + program.code.size() - 1)};
  return expression;
}

std::optional<Region> normalization_before(const Node& root, const NodeOrder& order, int64_t most,
                                           const Arithmetic& arithmetic, CostModel& costs) {
  constexpr double kColumns = 16;      // of a tile of few rows
  constexpr double kInstructions = 3;  // for an element: of its row's statistic, and two that scale it
  if (!root.is(OpKind::matmul) || root.attrs<MatmulAttrs>().transpose_a) return std::nullopt;
  const Node* weights = root.input(1)->producer();
  if (!root.input(1)->constant() && !(weights && stays_packed(*weights, arithmetic))) return std::nullopt;
  Value* rows = root.input(0);
  Node* node = rows->producer();
  if (!node || !rows->has_single_use() || node->num_outputs() != 1 || size_of(rows->dtype()) != 2) return std::nullopt;
  const bool is_layer = node->is(OpKind::layer_normalization);
  if (!is_layer && !node->is(OpKind::rms_normalization)) return std::nullopt;
  const auto rank = static_cast<int64_t>(rows->shape().size());
  const int64_t axis =
      is_layer ? node->attrs<LayerNormalizationAttrs>().axis : node->attrs<RmsNormalizationAttrs>().axis;
  const std::optional<int64_t> length = rank > 0 ? rows->shape().back().as_constant() : std::nullopt;
  if ((axis != -1 && axis != rank - 1) || length.value_or(0) == 0) return std::nullopt;
  Region region;
  region.root = node;
  region.nodes = {node};
  region.outputs = {rows};
  Space space(order.symbols);
  const Shape index = space.add(rows->shape());
  region.written.index = index;
  region.expression.space = std::move(space);
  region.expression.program = {1, {}, {0}};
  region.expression.normalization = node;
  for (size_t i = 0; i < node->num_inputs(); ++i) {
    Value* operand = node->input(i);
    if (!operand) continue;
    if (operand->dtype() != rows->dtype() || (i > 0 && (!operand->content() || operand->shape() != Shape{*length})))
      return std::nullopt;
    region.expression.operands.push_back(operand);
    region.expression.reads.push_back({{i == 0 ? index : Shape{index.back()}, {}}, {}});
  }
  const double bytes = costs.bytes_of(rows), elements = bytes / 2;
  if (elements > static_cast<double>(most * *length)) return std::nullopt;
  const double columns = costs.bytes_of(root.output()) / static_cast<double>(size_of(root.output()->dtype())) /
                         (elements / static_cast<double>(*length));
  Work again;
  again.instructions = kInstructions * elements * std::max(columns / kColumns, 1.0);
  const bool pays = costs.pays(rows, {"normalised by each tile of the product as it reads them", again},
                               {"stored", {2 * bytes, kInstructions * elements, 1}});
  return pays ? std::optional(std::move(region)) : std::nullopt;
}

bool pays_to_recompute(const Region& region, const BackendTraits& traits, CostModel& costs) {
  const Value* result = region.result();
  const double bytes = costs.bytes_of(result), elements = bytes / static_cast<double>(size_of(result->dtype()));
  const double instructions = elements * static_cast<double>(region.expression.program.code.size());
  double operands = 0;  // what is repeated stays in the cache
  for (const Value* operand : region.expression.operands)
    if (operand->shape() == result->shape()) operands += costs.bytes_of(operand);
  Work stored{operands + bytes, instructions, 1}, recomputed;
  for (const ir::Use& use : result->uses()) {
    const double times = *times_read(*use.node, use.index, traits);
    stored.bytes += times * bytes;
    recomputed.bytes += times * operands;
    recomputed.instructions += times * instructions * slowness(*use.node, traits);
  }
  return costs.pays(result, {"computed by each reader as it reads", recomputed}, {"stored", stored});
}

std::optional<Expression> prologue_for(const Region& region, const Node& reader, size_t input,
                                       const BackendTraits& traits) {
  Value* result = region.outputs[0];
  if (!times_read(reader, input, traits)) return std::nullopt;
  if (!is_floating(result->dtype()) && !gathers_pixels(reader, traits)) return std::nullopt;
  const std::vector<Value*>& operands = region.expression.operands;
  const auto found = std::ranges::find_if(operands, [&](const Value* operand) {
    return operand->shape() == result->shape() && can_be_source(*operand, reader, result->dtype(), traits);
  });
  if (found == operands.end()) return std::nullopt;
  Value* source = *found;
  const Shape index = region.expression.space.indices();
  ProgramBuilder program(source);
  for (const Node* node : region.nodes)
    if (!program.add(*node, index)) return std::nullopt;
  program.round(result);
  std::optional<Expression> producer = program.finish(result, region.expression.space);
  if (!producer) return std::nullopt;
  producer->operands.insert(producer->operands.begin(), source);
  producer->reads.insert(producer->reads.begin(), Read{{index, {}}, {}});
  return producer;
}

}  // namespace lathe
