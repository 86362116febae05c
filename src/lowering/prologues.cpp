// SPDX-License-Identifier: Apache-2.0
#include "lowering/prologues.h"

#include <algorithm>

#include "lowering/expression_builder.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

// How often the kernel of an op reads an element of its input.
enum class Reads : uint8_t {
  unknown,
  once,
  twice,     // at most: for a statistic and for the result
  by_tiles,  // for each tile of the result that it contributes to
};

bool is_point_convolution(const Node& node) {
  const auto& attrs = node.attrs<ConvolutionAttrs>();
  const Shape &x = node.input(0)->shape(), &w = node.input(1)->shape(), &y = node.output()->shape();
  for (size_t d = 2; d < w.size(); ++d)
    if (w[d] != Expr(1) || x[d] != y[d]) return false;
  return attrs.groups == 1;
}

// Products of few columns: each column tile computes its operand anew.
Reads reads_of_product(const Node& node) {
  constexpr int64_t kFewColumns = 256;
  const Value* weights = node.input(1);
  if (!weights || !weights->constant()) return Reads::unknown;
  const Shape& y = node.output()->shape();
  if (node.is(OpKind::matmul)) {
    const bool rows = node.input(0)->rank() >= 2 && !node.attrs<MatmulAttrs>().transpose_a;
    return rows && y.back().as_constant() <= kFewColumns ? Reads::by_tiles : Reads::unknown;
  }
  return is_point_convolution(node) && y[1].as_constant() <= kFewColumns ? Reads::by_tiles : Reads::unknown;
}

// Pooling by one window over everything reads as a reduction does.
Reads reads_of_pooling(const Node& node) {
  const auto& attrs = node.attrs<PoolingAttrs>();
  const Shape &x = node.input(0)->shape(), &y = node.output()->shape();
  const size_t lead = x.size() - attrs.window.size();
  for (size_t i = 0; i < attrs.window.size(); ++i)
    if (x[lead + i] != Expr(attrs.window[i]) || y[lead + i] != Expr(1)) return Reads::unknown;
  return Reads::once;
}

// Each tile of queries reads all keys and values, and so does each head that shares them.
Reads reads_of_attention(const Node& node, size_t input) {
  constexpr int64_t kFewQueries = 256;
  if (input > 2) return Reads::unknown;
  if (input == 0) return Reads::once;
  const Shape &q = node.input(0)->shape(), &k = node.input(1)->shape();
  const auto queries = q[2].as_constant(), heads = q[1].as_constant(), shared = k[1].as_constant();
  if (!queries || !heads || !shared || *shared == 0) return Reads::unknown;
  return *queries * (*heads / *shared) <= kFewQueries ? Reads::by_tiles : Reads::unknown;
}

Reads reads_of(const Node& node, size_t input) {
  if (node.is(OpKind::attention)) return reads_of_attention(node, input);
  if (input != 0) return Reads::unknown;
  switch (node.kind()) {
    case OpKind::matmul:
    case OpKind::convolution:
      return reads_of_product(node);
    case OpKind::pooling:
      return reads_of_pooling(node);
    case OpKind::softmax:
    case OpKind::lp_normalization:
    case OpKind::instance_normalization:
    case OpKind::layer_normalization:
    case OpKind::group_normalization:
    case OpKind::rms_normalization:
      return Reads::twice;
    case OpKind::arg_reduce:
      return Reads::once;
    case OpKind::reduce:
      return !node.input(1) || node.input(1)->constant() ? Reads::once : Reads::unknown;
    default:
      return Reads::unknown;
  }
}

bool copies_to_shared_memory(const Node& reader) {
  return reader.is(OpKind::matmul) || reader.is(OpKind::convolution) || reader.is(OpKind::attention);
}

// How often an element is read, and computed where the kernel computes it. Tiles of few columns or queries are two.
double times_read(Reads reads) { return reads == Reads::once ? 1 : 2; }

// How much longer an instruction takes than in an expression: it waits between the copies and products of a tile.
double slowness(const Node& reader) { return copies_to_shared_memory(reader) ? 2 : 1; }

// What is copied to shared memory stays in its type; what goes to registers need not.
bool can_be_source(const Value& value, const Node& reader, DType result) {
  const DType dtype = value.dtype();
  if (copies_to_shared_memory(reader) && dtype != result) return false;
  const bool small = is_integer(dtype) && size_of(dtype) <= 2;
  return !value.constant() && (small || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16);
}

}  // namespace

bool pays_to_recompute(const Region& region, CostModel& costs) {
  const Value* result = region.result();
  const double bytes = costs.bytes_of(result), elements = bytes / static_cast<double>(size_of(result->dtype()));
  const double instructions = elements * static_cast<double>(region.expression.program.code.size());
  double operands = 0;  // what is repeated stays in the cache
  for (const Value* operand : region.expression.operands)
    if (operand->shape() == result->shape()) operands += costs.bytes_of(operand);
  Work stored{operands + bytes, instructions}, recomputed;
  for (const ir::Use& use : result->uses()) {
    const double times = times_read(reads_of(*use.node, use.index));
    stored.bytes += times * bytes;
    recomputed.bytes += times * operands;
    recomputed.instructions += times * instructions * slowness(*use.node);
  }
  return costs.pays(result, {"computed by each reader as it reads", recomputed}, {"stored", stored});
}

std::optional<Expression> prologue_for(const Region& region, const Node& reader, size_t input) {
  const Value* result = region.result();
  if (reads_of(reader, input) == Reads::unknown || !is_floating(result->dtype())) return std::nullopt;
  Value* source = nullptr;
  size_t tensors = 0;
  for (Value* operand : region.expression.operands) {
    if (operand->shape() != result->shape()) continue;
    ++tensors;
    if (!source && can_be_source(*operand, reader, result->dtype())) source = operand;
  }
  constexpr size_t kMostOperands = 8;
  if (!source || region.expression.operands.size() > kMostOperands || (tensors > 1 && copies_to_shared_memory(reader)))
    return std::nullopt;
  const Shape index = region.expression.space.indices();
  IndexedProgram program(source);
  for (const Node* node : region.nodes)
    if (!program.add(*node, index)) return std::nullopt;
  std::optional<Expression> producer = program.finish(result, region.expression.space);
  if (!producer) return std::nullopt;
  producer->operands.insert(producer->operands.begin(), source);
  producer->reads.insert(producer->reads.begin(), Read{{index, {}}, {}});
  return producer;
}

}  // namespace lathe
