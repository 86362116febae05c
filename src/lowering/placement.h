// SPDX-License-Identifier: Apache-2.0
// Where values live: their layout, and which of them share memory with others so that no copy is needed (views, slices,
// the parts of a concatenation).
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "lowering/layouts.h"
#include "tuning/problem.h"

namespace lathe {

// A value's final position: a window into the storage of its root value.
struct Location {
  const ir::Value* root = nullptr;
  Expr offset;    // elements from the root's start
  Shape strides;  // elements
};

// The computed symbols of the region's output dims that its inputs' do not have: running the region binds them.
std::vector<SymbolId> introduced_symbols(const Region& region, const ir::Graph& graph);
bool introduces_symbols(const Region& region, const ir::Graph& graph);

// The strides along the dimensions of a view's input by which its result is written where that lies with these strides;
// nullopt when it takes more of them.
std::optional<Shape> strides_before(const ir::Node& view, const Shape& strides, const std::vector<Range>& symbols);

class Placement {
 public:
  // `plain` keeps everything row-major and apart, for plans without strided kernels. All references must outlive it.
  Placement(const ir::Graph& graph, const std::vector<Region>& regions, bool plain, const BackendTraits& traits,
            const CostModel& costs);

  Layout layout(const ir::Value* value) const;
  const LayoutCosts& layouts() const { return layouts_; }
  Location location(const ir::Value* value) const;
  // The dims that a root's memory has room for.
  Shape room(const ir::Value* root) const;
  // True when the region's result needs no step of its own: its memory is already some other value's.
  bool is_free(const Region& region) const;
  // Input `i` of a concatenation that its producer writes in place.
  bool is_in_place(const Region& concat, size_t i) const { return in_place_.at(concat.result())[i]; }
  bool is_dense_linear(const ir::Value* value) const;
  // Written over an operand that nothing reads afterwards: only for steps that read each element before writing it.
  bool is_over_operand(const ir::Value* value) const { return entry(value).link == Link::over; }

 private:
  // How a value hangs on `base`; over: written in its place.
  enum class Link { none, reshape, moved, slice, part, over };
  struct Entry {
    Layout layout = Layout::linear;
    int64_t pixel = 0;  // channels that pixels have room for when there are fewer
    Link link = Link::none;
    const ir::Value* base = nullptr;
    Shape begin;                   // slice, part: start index in the base, per dimension
    const Region* view = nullptr;  // moved
    bool needs_dense = false;      // some view relies on dense strides: may not be placed in a larger tensor
  };

  void set_layouts(const std::vector<Region>& regions, const CostModel& costs);
  void link_views(const std::vector<Region>& regions);
  void link_reshape(const Region& region);
  bool link_moved(const Region& region);
  void need_dense(const ir::Value* value);
  void link_concat(const Region& region);
  void link_padded(const Region& region);
  bool may_be_part(const ir::Value* value, const ir::Value* whole) const;
  size_t slices_of_one(const std::vector<ir::Value*>& inputs, size_t first, size_t axis) const;
  void link_slices(const Region& region);
  void link_over_operands(const std::vector<Region>& regions);
  bool may_be_overwritten(const ir::Value* operand, const Region& region) const;
  bool lies_elsewhere_in(const ir::Value* value, const ir::Value* operand) const;
  void link(const ir::Value* value, Link how, const ir::Value* base, Shape begin = {});
  Entry& entry(const ir::Value* value) { return entries_[value]; }
  const Entry& entry(const ir::Value* value) const { return entries_.at(value); }

  const ir::Graph& graph_;
  const std::vector<Range> symbols_;
  bool plain_;
  const BackendTraits traits_;
  LayoutCosts layouts_;
  std::unordered_map<const ir::Value*, Entry> entries_;
  std::unordered_map<const ir::Value*, RegionKind> producer_kinds_;
  std::unordered_set<const ir::Value*> copied_views_;                 // results of views that copy
  std::unordered_map<const ir::Value*, std::vector<bool>> in_place_;  // of concatenations, by result: each part
};

}  // namespace lathe
