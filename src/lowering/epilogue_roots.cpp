// SPDX-License-Identifier: Apache-2.0
#include "lowering/epilogue_roots.h"

namespace lathe {
namespace {

// A gather of rows of weights, as an embedding's, of which something is computed.
bool looks_up(const ir::Node& node) {
  const ir::Value& rows = *node.output();
  return node.is(OpKind::gather) && node.input(0)->content() && rows.has_single_use() && !rows.is_graph_output() &&
         rows.uses()[0].node->has_trait(kPointwise);
}

}  // namespace

bool is_heavy(const ir::Node& node) { return node.has_trait(kHeavy | kReduction | kPixels); }

ir::Value* bias_of(const ir::Node& node) { return is_convolution(node.info()) ? node.input(2) : nullptr; }

bool takes_epilogue(const ir::Node& node, const BackendTraits& traits) {
  if ((!is_heavy(node) && !(traits.fuses_gathers && looks_up(node))) || node.num_outputs() != 1) return false;
  const DType from = node.input(0)->dtype(), to = node.output()->dtype();
  if (to == DType::f32) return from == to || (traits.fuses_narrow_types && is_factor_float8(from));
  const bool sums = node.has_trait(kContraction);  // of 8-bit integers: i32
  const bool weighted = traits.arithmetic.weighted_products;
  if (weighted && sums && to == DType::i32 && is_byte_integer(from)) return true;
  if (weighted && node.is(OpKind::pooling) && to == from && is_byte_integer(from)) return true;
  if (!traits.fuses_narrow_types) return false;
  if (size_of(from) == 1) return is_integer(from) && (to == from || (sums && to == DType::i32));
  return from == to && (to == DType::f16 || to == DType::bf16);
}

}  // namespace lathe
