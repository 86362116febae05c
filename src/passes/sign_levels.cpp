// SPDX-License-Identifier: Apache-2.0
// For targets without products of u8 and any zero point: u8 levels that only dequantize reads, at once or behind what
// moves them, are counted from -128 rather than from 0; where u8 is multiplied, those alone that have no zero point then.
#include "ops/centred_bytes.h"
#include "passes/match.h"
#include "passes/quantization.h"

namespace lathe {
namespace {

// Who reads levels, until they are dequantised.
struct LevelReaders {
  std::vector<ir::Node*> moves, dequantizes;  // each behind those it reads
};

// False where something else does, too.
bool find_readers(const ir::Value* levels, const ir::Value* zero_point, LevelReaders& readers) {
  if (levels->is_graph_output()) return false;
  for (const ir::Use& use : levels->uses()) {
    if (use.index != 0) return false;
    if (use.node->is(OpKind::dequantize)) {
      const bool counts_alike =
          use.node->attrs<DequantizeAttrs>().blocks.empty() && same_contents(zero_point, use.node->input(2));
      if (!counts_alike) return false;
      readers.dequantizes.push_back(use.node);
    } else {
      if (!gives_elements(*use.node) || use.node->is(OpKind::pad)) return false;
      readers.moves.push_back(use.node);
      if (!find_readers(use.node->output(), zero_point, readers)) return false;
    }
  }
  return true;
}

Result<bool> sign(ir::Graph& graph, ir::Node* node, bool keeps_unsigned) {
  const ir::Value *unsigned_levels = node->output(), *zero = node->input(2);
  if (unsigned_levels->dtype() != DType::u8 || !node->attrs<QuantizeAttrs>().blocks.empty() ||
      (zero && !zero->constant()))
    return false;
  if (keeps_unsigned && !all_equal(zero, 128)) return false;
  LevelReaders readers;
  if (!find_readers(unsigned_levels, zero, readers) || readers.dequantizes.empty()) return false;
  const Tensor counted_from = zero ? *zero->constant() : Tensor::of<uint8_t>({}, {0});
  LATHE_ASSIGN(std::optional<Tensor> shifted, centred_bytes(counted_from, Tensor::of<uint8_t>({}, {128})));
  ir::GraphBuilder b(graph, {unsigned_levels->name(), node->origin(), {}}, node);
  QuantizeAttrs attrs = node->attrs<QuantizeAttrs>();
  attrs.to = DType::i8;
  ir::Value* zero_point = b.constant(*std::move(shifted));
  ir::Value* levels = b.add(attrs, {node->input(0), node->input(1), zero_point});
  if (b.failed()) return fail(*b.error());
  const auto source_of = [&](const ir::Node* reader) {
    return reader->input(0) == unsigned_levels ? levels : reader->input(0);
  };
  for (ir::Node* move : readers.moves) LATHE_TRY(graph.set_input(move, 0, source_of(move)));
  for (ir::Node* reader : readers.dequantizes)
    LATHE_TRY(graph.set_inputs(reader, {source_of(reader), reader->input(1), zero_point}));
  return true;
}

}  // namespace

Result<bool> sign_levels(ir::Graph& graph, PassContext& context) {
  if (!context.arithmetic.integer_products || context.arithmetic.weighted_products) return false;
  std::vector<ir::Node*> nodes;
  for (const auto& node : graph.nodes())
    if (node->is(OpKind::quantize)) nodes.push_back(node.get());
  bool changed = false;
  for (ir::Node* node : nodes) {
    LATHE_ASSIGN(const bool signed_now, sign(graph, node, context.arithmetic.unsigned_products));
    changed |= signed_now;
  }
  return changed;
}

}  // namespace lathe
