// SPDX-License-Identifier: Apache-2.0
#include "lowering/placement.h"

#include <algorithm>

#include "indexing/access.h"

namespace lathe {
using ir::Value;

std::vector<SymbolId> introduced_symbols(const Region& region, const ir::Graph& graph) {
  std::vector<SymbolId> known, made;
  for (const ir::Node* node : region.nodes)
    for (const Value* input : node->inputs())
      if (input)
        for (const Expr& dim : input->shape()) dim.collect_symbols(known);
  for (const Value* output : region.outputs)
    for (const Expr& dim : output->shape()) dim.collect_symbols(made);
  std::erase_if(made, [&](SymbolId id) {
    return graph.symbols()[id].source != SymbolSource::computed ||
           std::find(known.begin(), known.end(), id) != known.end();
  });
  return made;
}

bool introduces_symbols(const Region& region, const ir::Graph& graph) {
  return !introduced_symbols(region, graph).empty();
}

std::optional<Shape> strides_before(const ir::Node& view, const Shape& strides, const std::vector<Range>& symbols) {
  Space space(symbols);
  const Shape index = space.add(view.input(0)->shape());
  const std::optional<Shape> result = destination_of(view, index, space);
  const std::optional<Access> access =
      result && !space.is_split() ? access_of({*result, {}}, strides, space) : std::nullopt;
  return access ? std::optional(access->strides) : std::nullopt;
}

Placement::Placement(const ir::Graph& graph, const std::vector<Region>& regions, bool plain,
                     const BackendTraits& traits, const CostModel& costs)
    : graph_(graph), symbols_(graph.symbol_ranges()), plain_(plain), traits_(traits) {
  for (const Value* input : graph.inputs()) entries_[input];
  for (const auto& node : graph.nodes())
    for (size_t i = 0; i < node->num_outputs(); ++i) entries_[node->output(i)];
  for (const Region& region : regions)
    for (const Value* output : region.outputs) producer_kinds_[output] = region.kind;
  if (!plain_) set_layouts(regions, costs);
  link_views(regions);
  if (!plain_) link_over_operands(regions);
}

void Placement::set_layouts(const std::vector<Region>& regions, const CostModel& costs) {
  layouts_ = assign_layouts(graph_, regions, traits_, costs);
  for (auto& [value, mine] : entries_) mine.layout = layouts_.layout(value);
  for (const Region& region : regions) {
    Entry& mine = entry(region.result());
    if (mine.layout == Layout::channels_last && is_widened_image(region, traits_)) mine.pixel = traits_.least_pixel;
  }
}

Shape Placement::room(const Value* root) const {
  Shape dims = root->shape();
  if (entry(root).pixel > 0) dims[1] = entry(root).pixel;
  return dims;
}

Layout Placement::layout(const Value* value) const { return entry(value).layout; }

Location Placement::location(const Value* value) const {
  const Entry& mine = entry(value);
  if (mine.link == Link::none) return {value, 0, dense_strides(room(value), mine.layout)};
  Location base = location(mine.base);
  if (mine.link == Link::over) return base;
  if (mine.link == Link::reshape) return {base.root, base.offset, dense_strides(value->shape(), Layout::linear)};
  if (mine.link == Link::moved) return {base.root, base.offset, *mine.view->permuted_strides(base.strides)};
  for (size_t d = 0; d < mine.begin.size(); ++d) base.offset += mine.begin[d] * base.strides[d];
  return base;
}

bool Placement::is_free(const Region& region) const {
  return std::all_of(region.outputs.begin(), region.outputs.end(), [&](const Value* output) {
    const Link link = entry(output).link;
    return link == Link::reshape || link == Link::moved || link == Link::slice;
  });
}

bool Placement::is_dense_linear(const Value* value) const {
  return is_dense(value->shape(), location(value).strides, Layout::linear);
}

}  // namespace lathe
