// SPDX-License-Identifier: Apache-2.0
#include "build/placement.h"

#include <algorithm>

#include "build/readers.h"
#include "indexing/access.h"

namespace lathe {
namespace {

using ir::Value;

bool is_spatial(const Region& region) {
  if (region.kind != RegionKind::kernel || region.arrangement) return false;
  switch (region.root->kind()) {
    case OpKind::convolution:
    case OpKind::deconvolution:
    case OpKind::pooling:
    case OpKind::resize:
      return true;
    default:
      return false;
  }
}

// Whether the result has elements of the operand where they are in it, but not all, or others beside them: each
// dimension moves along an axis of the result's own.
bool is_cut_from(const Region::Arrangement& arrangement, size_t operand, const Value& value) {
  const Region::Read& read = arrangement.operands[operand];
  const auto rank = static_cast<size_t>(value.rank());
  if (rank != arrangement.result.index.size()) return false;
  bool is_cut = read.fill.has_value();
  for (size_t d = 0; d < rank; ++d) {
    if (axes_in(read.map.index[d], arrangement.space) != axes_in(arrangement.result.index[d], arrangement.space))
      return false;
    is_cut |= arrangement.space.current(read.map.index[d]) != arrangement.space.current(arrangement.result.index[d]);
  }
  return is_cut;
}

}  // namespace

bool has_image_rank(const Value* value) { return value->rank() >= 3 && value->rank() <= 5; }

bool introduces_symbols(const Region& region, const ir::Graph& graph) {
  std::vector<SymbolId> known, made;
  for (const ir::Node* node : region.nodes)
    for (const Value* input : node->inputs())
      if (input)
        for (const Expr& dim : input->shape()) dim.collect_symbols(known);
  for (const Value* output : region.outputs)
    for (const Expr& dim : output->shape()) dim.collect_symbols(made);
  return std::any_of(made.begin(), made.end(), [&](SymbolId id) {
    return graph.symbols()[id].source == SymbolSource::computed &&
           std::find(known.begin(), known.end(), id) == known.end();
  });
}

std::optional<Shape> split_dims(const Shape& dims, const Shape& strides, const Shape& wanted) {
  Shape result(wanted.size(), 1);
  size_t next = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    const size_t first = next;
    Expr product = 1;
    while (product != dims[d] && next < wanted.size()) product *= wanted[next++];
    if (product != dims[d]) return std::nullopt;
    Expr stride = strides[d];
    for (size_t i = next; i-- > first;) {
      result[i] = stride;
      stride *= wanted[i];
    }
  }
  for (; next < wanted.size(); ++next)
    if (wanted[next] != Expr(1)) return std::nullopt;
  return result;
}

Placement::Placement(const ir::Graph& graph, const std::vector<Region>& regions, bool plain, int64_t least_pixel,
                     bool movement)
    : graph_(graph), symbols_(graph.symbol_ranges()), plain_(plain), least_pixel_(least_pixel), movement_(movement) {
  for (const Value* input : graph.inputs()) entries_[input];
  for (const auto& node : graph.nodes())
    for (size_t i = 0; i < node->num_outputs(); ++i) entries_[node->output(i)];
  for (const Region& region : regions)
    for (const Value* output : region.outputs) producer_kinds_[output] = region.kind;
  if (!plain_) assign_layouts(regions);
  link_views(regions);
  if (!plain_) link_over_operands(regions);
}

// An image of few channels, such as a network's input in another type, that only a convolution reads.
bool Placement::is_image_for_convolution(const Value* value) const {
  const auto channels = value->shape()[1].as_constant();
  if (!channels || *channels < 2 || *channels >= least_pixel_ || !value->has_single_use()) return false;
  const ir::Use& use = value->uses()[0];
  return use.index == 0 && use.node->is(OpKind::convolution) && use.node->attrs<ConvolutionAttrs>().groups == 1;
}

// As channels-last: kernels read them as they come.
bool Placement::has_wide_pixels(const Value* value) const {
  const auto channels = value->shape()[1].as_constant();
  return channels && *channels >= std::max<int64_t>(least_pixel_, 2);
}

// What the readers of a result want that may be written in any layout: those who copy what lies otherwise decide, where
// they agree.
std::optional<Layout> Placement::layout_for_readers(const Region& region) const {
  const Value* value = region.result();
  if (!movement_) return std::nullopt;
  if (value->is_graph_output()) return value->uses().empty() ? std::optional(Layout::linear) : std::nullopt;
  if (!has_wide_pixels(value)) return std::nullopt;
  const Readers readers = readers_of(*value);
  return readers.channels_last > 0 && readers.row_major == 0 ? std::optional(Layout::channels_last) : std::nullopt;
}

// Products write their columns side by side wherever those lie, unless each row's are several runs: best where they are
// the pixels' channels.
Layout Placement::layout_of_arranged(const Region& region) const {
  const Region::Arrangement& arrangement = *region.arrangement;
  if (!region.root->is(OpKind::matmul) || arrangement.space.parts().back() > 1) return Layout::linear;
  if (const std::optional<Layout> wanted = layout_for_readers(region)) return *wanted;
  const std::vector<size_t> channels = axes_in(arrangement.result.index[1], arrangement.space);
  const bool columns_are_channels = !channels.empty() && channels.back() + 1 == arrangement.space.rank();
  const Readers readers = readers_of(*region.result());
  const bool any_order = readers.row_major == 0 && readers.pointwise == 0;
  return columns_are_channels && any_order && has_wide_pixels(region.result()) ? Layout::channels_last : Layout::linear;
}

// Of a region that only moves elements, where the result may share their memory.
std::optional<MovedView> Placement::view_of_base(const Region& region) const {
  std::optional<MovedView> view = movement_ ? moved_view(region, symbols_) : std::nullopt;
  if (!view || view->base->constant() || entry(view->base).pixel > 0 || entry(region.result()).pixel > 0)
    return std::nullopt;
  return view;
}

// Whether that memory holds the result in the layout.
bool Placement::lies_in_base(const Region& region, const MovedView& view, Layout layout) const {
  const std::optional<Shape> strides = view.strides(dense_strides(view.base->shape(), entry(view.base).layout));
  return strides && is_dense(region.result()->shape(), *strides, layout);
}

// That layout where no more copies follow than the one that is saved.
std::optional<Layout> Placement::layout_in_base(const Region& region) const {
  const Value* result = region.result();
  const std::optional<MovedView> view = view_of_base(region);
  if (!view) return std::nullopt;
  if (lies_in_base(region, *view, Layout::linear)) return Layout::linear;
  if (!has_wide_pixels(result) || !lies_in_base(region, *view, Layout::channels_last)) return std::nullopt;
  const Readers readers = readers_of(*result);
  const bool is_wanted =
      readers.channels_last > 0 ? readers.row_major <= 1 : readers.row_major == 0 && readers.other > 0;
  return is_wanted ? std::optional(Layout::channels_last) : std::nullopt;
}

// An operand of the result's shape, or one of which that is a part.
bool Placement::reads_channels_last(const Region& region) const {
  const Value* result = region.result();
  for (size_t i = 0; i < region.operands.size(); ++i) {
    const Value* value = region.operands[i];
    const bool is_cut = region.arrangement && is_cut_from(*region.arrangement, i, *value);
    if (value->rank() == result->rank() && entry(value).layout == Layout::channels_last &&
        (is_cut || value->shape() == result->shape()))
      return true;
  }
  return false;
}

// Convolutions and their kin write channels-last; pointwise, normalisation, slicing and concatenation keep what they
// read; the rest is row-major.
void Placement::assign_layouts(const std::vector<Region>& regions) {
  for (const Region& region : regions) {
    for (const Region& part : region.apart)
      if (is_spatial(part) && has_image_rank(part.result())) entry(part.result()).layout = Layout::channels_last;
    const Value* result = region.result();
    if (!has_image_rank(result)) continue;
    bool last = false, widen_pixels = false;
    const bool is_arranged_image = region.arrangement && region.arrangement->is_image;
    if (is_spatial(region)) {
      last = true;
    } else if (const std::optional<Layout> in_base = layout_in_base(region)) {
      last = *in_base == Layout::channels_last;
    } else if (region.kind == RegionKind::pointwise || is_arranged_image) {
      const std::optional<Layout> wanted = layout_for_readers(region);
      last = wanted ? *wanted == Layout::channels_last
                    : (is_arranged_image && has_wide_pixels(result)) || reads_channels_last(region);
      widen_pixels = !last;
    } else if (region.arrangement) {
      last = layout_of_arranged(region) == Layout::channels_last;
    } else if (region.kind == RegionKind::movement && region.root->is(OpKind::transpose)) {
      last = layout_for_readers(region) == Layout::channels_last;
      widen_pixels = movement_ && !last;
    } else if (region.kind == RegionKind::kernel) {
      // A softmax or a normalisation gives back the shape it reads.
      const Value* x = region.input(0);
      last = region.root->has_trait(kReduction) && x->shape() == result->shape() &&
             entry(x).layout == Layout::channels_last;
    } else if (region.kind == RegionKind::movement && !region.root->is(OpKind::expand)) {
      for (const Value* input : region.root->inputs())
        last |= input && input->rank() == result->rank() && entry(input).layout == Layout::channels_last;
    }
    if (widen_pixels && is_image_for_convolution(result)) {
      last = true;
      entry(result).pixel = least_pixel_;
    }
    if (last)
      for (const Value* output : region.outputs) entry(output).layout = Layout::channels_last;
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
  if (mine.link == Link::moved) return {base.root, base.offset, *mine.view->strides(base.strides)};
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
