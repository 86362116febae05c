// SPDX-License-Identifier: Apache-2.0
#include "lowering/normalized_results.h"

#include "lowering/program_builder.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

bool has_rows(const Shape& dims, const NodeOrder& order, const RowCounts& counts) {
  Expr rows = 1;
  for (size_t d = 0; d + 1 < dims.size(); ++d) rows *= dims[d];
  const Range range = rows.range(order.symbols);
  return range.min >= counts.least && range.max <= counts.most;
}

// Of rows along the last dimension, by constant vectors of their type; nullptr = it normalises otherwise.
const Node* row_normalization(const Value& rows) {
  const Node* node = rows.has_single_use() ? rows.uses()[0].node : nullptr;
  if (!node || rows.uses()[0].index != 0 || node->num_outputs() != 1) return nullptr;
  const bool is_layer = node->is(OpKind::layer_normalization);
  if (!is_layer && !node->is(OpKind::rms_normalization)) return nullptr;
  const auto rank = static_cast<int64_t>(rows.shape().size());
  const int64_t axis =
      is_layer ? node->attrs<LayerNormalizationAttrs>().axis : node->attrs<RmsNormalizationAttrs>().axis;
  if (axis != -1 && axis != rank - 1) return nullptr;
  const auto is_vector = [&](const Value* v) {
    return v && v->content() && v->dtype() == rows.dtype() && v->shape() == Shape{rows.shape().back()};
  };
  for (size_t i = 1; i < node->num_inputs(); ++i)
    if (!is_vector(node->input(i))) return nullptr;
  return node->output()->dtype() == rows.dtype() ? node : nullptr;
}

// What normalises the result of a product that may do so itself.
const Node* normalization_behind(const Region& region, const NodeOrder& order, const RowCounts& counts) {
  if (region.kind != RegionKind::kernel || !region.root->is(OpKind::matmul) || !region.root->input(1)->content())
    return nullptr;
  if (region.expression.normalization || region.pairs || !region.boxes.empty() || region.moves_elements() ||
      region.outputs.size() != 1)
    return nullptr;
  const Value& result = *region.result();
  const bool is_half = result.dtype() == DType::f16 || result.dtype() == DType::bf16;
  const auto is_factor = [&](size_t i) { return region.root->input(i)->dtype() == result.dtype(); };
  if (!is_half || !is_factor(0) || !is_factor(1) || region.producer_of(1) || result.shape().size() < 2) return nullptr;
  return has_rows(result.shape(), order, counts) ? row_normalization(result) : nullptr;
}

bool join(const Region& product, Region& normalization) {
  Region joined = product;
  if (!round_result(joined.expression.program, *product.result())) return false;
  const Node* node = normalization.root;
  joined.nodes.push_back(normalization.root);
  joined.outputs = normalization.outputs;
  joined.expression.normalization = node;
  for (size_t i = 1; i < node->num_inputs(); ++i) {
    joined.expression.operands.push_back(node->input(i));
    joined.expression.reads.push_back({{Shape{product.written.index.back()}, {}}, {}});
  }
  normalization = std::move(joined);
  return true;
}

}  // namespace

std::vector<Region> with_normalized_results(std::vector<Region> regions, const NodeOrder& order,
                                            const GroupingOptions& options, const RefusedFusions& refused) {
  if (!options.fuse || options.traits.rows_normalized_as_written.most == 0) return regions;
  std::unordered_map<const Node*, size_t> alone;  // regions by their only nodes
  for (size_t i = 0; i < regions.size(); ++i)
    if (regions[i].nodes.size() == 1) alone.emplace(regions[i].root, i);
  for (Region& region : regions) {
    if (!region.root) continue;
    const Node* node = normalization_behind(region, order, options.traits.rows_normalized_as_written);
    const auto found = node && !refused.stands_alone(*node) ? alone.find(node) : alone.end();
    if (found != alone.end() && join(region, regions[found->second])) region = {};
  }
  std::erase_if(regions, [](const Region& region) { return region.nodes.empty(); });
  return regions;
}

}  // namespace lathe
