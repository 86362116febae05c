// SPDX-License-Identifier: Apache-2.0
#include "lowering/normalized_results.h"

#include <algorithm>

#include "lowering/program_builder.h"

namespace lathe {
namespace {

using ir::Node;
using ir::Value;

bool has_rows(const Value& result, const NodeOrder& order, const BackendTraits& traits) {
  const RowCounts counts = traits.rows_normalized_as_written;
  const Shape& dims = result.shape();
  Expr rows = 1;
  for (size_t d = 0; d + 1 < dims.size(); ++d) rows *= dims[d];
  const Range range = rows.range(order.symbols);
  const int64_t most = result.has_single_use() ? counts.most : std::min(counts.most, traits.most_rows_written_beside);
  return range.min >= counts.least && range.max <= most;
}

// Whether the rows are normalised along the last dimension, by constant vectors of their type.
bool normalizes_rows(const ir::Use& use, const Value& rows) {
  const Node& node = *use.node;
  const bool is_layer = node.is(OpKind::layer_normalization);
  if (use.index != 0 || node.num_outputs() != 1 || (!is_layer && !node.is(OpKind::rms_normalization))) return false;
  const auto rank = static_cast<int64_t>(rows.shape().size());
  const int64_t axis = is_layer ? node.attrs<LayerNormalizationAttrs>().axis : node.attrs<RmsNormalizationAttrs>().axis;
  if (axis != -1 && axis != rank - 1) return false;
  const auto is_vector = [&](const Value* v) {
    return v && v->content() && v->dtype() == rows.dtype() && v->shape() == Shape{rows.shape().back()};
  };
  for (size_t i = 1; i < node.num_inputs(); ++i)
    if (!is_vector(node.input(i))) return false;
  return node.output()->dtype() == rows.dtype();
}

// Whether it is a product that may normalise its results.
bool may_normalize(const Region& region, const NodeOrder& order, const BackendTraits& traits) {
  if (region.kind != RegionKind::kernel || !region.root->is(OpKind::matmul) || !region.root->input(1)->content())
    return false;
  if (region.expression.normalization || region.pairs || !region.boxes.empty() || region.moves_elements() ||
      region.outputs.size() != 1)
    return false;
  const Value& result = *region.result();
  const bool is_half = result.dtype() == DType::f16 || result.dtype() == DType::bf16;
  const auto is_factor = [&](size_t i) { return region.root->input(i)->dtype() == result.dtype(); };
  return is_half && is_factor(0) && is_factor(1) && !region.producer_of(1) && result.shape().size() >= 2 &&
         has_rows(result, order, traits);
}

// The product also runs what reads constants beside its result, which is still written where others read it. False =
// its program has no room for the rounding of what is normalised.
bool join(Region& product, const Region& normalization) {
  if (!round_result(product.expression.program, *product.result())) return false;
  const Node* node = normalization.root;
  if (product.result()->has_single_use()) product.outputs.clear();
  product.outputs.push_back(normalization.outputs[0]);
  product.nodes.push_back(normalization.root);
  product.expression.normalization = node;
  for (size_t i = 1; i < node->num_inputs(); ++i) {
    product.expression.operands.push_back(node->input(i));
    product.expression.reads.push_back({{Shape{product.written.index.back()}, {}}, {}});
  }
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
    if (!region.root || !may_normalize(region, order, options.traits)) continue;
    const Value& rows = *region.result();
    const auto joins = [&](const ir::Use& use) {
      return normalizes_rows(use, rows) && alone.contains(use.node) && !refused.stands_alone(*use.node);
    };
    const auto use = std::ranges::find_if(rows.uses(), joins);
    if (use == rows.uses().end()) continue;
    Region& normalization = regions[alone.at(use->node)];
    if (join(region, normalization)) normalization = {};
  }
  std::erase_if(regions, [](const Region& region) { return region.nodes.empty(); });
  return regions;
}

}  // namespace lathe
