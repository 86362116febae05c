// SPDX-License-Identifier: Apache-2.0
// Which values share memory.
#include <algorithm>

#include "indexing/access.h"
#include "lowering/placement.h"
#include "passes/padding.h"

namespace lathe {

using ir::Value;

void Placement::link(const Value* value, Link how, const Value* base, Shape begin) {
  Entry& mine = entry(value);
  mine.link = how;
  mine.base = base;
  mine.begin = std::move(begin);
}

void Placement::link_views(const std::vector<Region>& regions) {
  for (const Region& region : regions) {
    if (introduces_symbols(region, graph_)) continue;  // they are bound by its evaluation
    if (region.kind == RegionKind::view) {
      if (entry(region.result()).layout == Layout::linear || !link_moved(region)) link_reshape(region);
    } else if (region.kind == RegionKind::movement && !plain_) {
      if (region.root->is(OpKind::concat)) link_concat(region);
      if (region.root->has_trait(kCuts)) link_slices(region);
      if (region.root->is(OpKind::transpose)) link_moved(region);
    } else if (region.kind == RegionKind::pointwise && !plain_) {
      link_moved(region);
    } else if (region.kind == RegionKind::single && !plain_ && is_padded_by_copies(*region.root)) {
      link_padded(region);
    }
  }
}

void Placement::link_reshape(const Region& region) {
  Value* input = region.root->input(0);
  const Value* output = region.result();
  entry(output).layout = Layout::linear;
  if (input->content() || volume(input->shape()) != volume(output->shape())) return;
  if (!is_dense_linear(input)) {
    copied_views_.insert(output);
    return;
  }
  link(output, Link::reshape, input);
  need_dense(input);
}

// The result of a region that only moves elements may share their memory, where that holds it in the layout.
bool Placement::link_moved(const Region& region) {
  Entry& mine = entry(region.result());
  if (!traits_.fuses_movement || !region.only_permutes()) return false;
  const Value* base = region.expression.operands[0];
  if (base->content() || mine.pixel > 0 || entry(base).pixel > 0) return false;
  const std::optional<Shape> strides = region.permuted_strides(dense_strides(base->shape(), entry(base).layout));
  if (!strides || !is_dense(region.result()->shape(), *strides, mine.layout)) return false;
  if (!region.permuted_strides(location(base).strides)) return false;  // it lies in a larger tensor
  link(region.result(), Link::moved, base);
  mine.view = &region;
  if (std::ranges::any_of(region.written.index,
                          [&](const Expr& e) { return axes_in(e, region.expression.space).size() > 1; }))
    need_dense(base);
  return true;
}

// What is linked from here on must not come to lie in a larger tensor.
void Placement::need_dense(const Value* value) {
  for (; value; value = entry(value).base) entry(value).needs_dense = true;
}

// A part is written in place when it is a whole tensor of its own that a kernel with strided output makes.
bool Placement::may_be_part(const Value* value, const Value* whole) const {
  const Entry& mine = entry(value);
  if (mine.link != Link::none || mine.needs_dense || value->is_graph_output() || mine.layout != entry(whole).layout ||
      !has_image_rank(value))
    return false;
  if (copied_views_.contains(value))
    return strides_before(*value->producer(), dense_strides(value->shape(), Layout::linear), symbols_).has_value();
  const auto kind = producer_kinds_.find(value);
  return kind != producer_kinds_.end() &&
         (kind->second == RegionKind::kernel || kind->second == RegionKind::pointwise ||
          kind->second == RegionKind::movement);
}

// How many inputs from `first` on are, one after the other, all of one value's slices; 0 when they are not.
size_t Placement::slices_of_one(const std::vector<Value*>& inputs, size_t first, size_t axis) const {
  const Value* base = entry(inputs[first]).base;
  Expr covered = 0;
  for (size_t i = first; i < inputs.size(); ++i) {
    const Entry& mine = entry(inputs[i]);
    if (mine.link != Link::slice || mine.base != base) return 0;
    for (size_t d = 0; d < mine.begin.size(); ++d)
      if (mine.begin[d] != (d == axis ? covered : Expr(0)) || (d != axis && inputs[i]->shape()[d] != base->shape()[d]))
        return 0;
    covered += inputs[i]->shape()[axis];
    if (covered == base->shape()[axis]) return i + 1 - first;
  }
  return 0;
}

void Placement::link_concat(const Region& region) {
  const Value* result = region.result();
  const auto axis = static_cast<size_t>(region.root->attrs<ConcatAttrs>().axis +
                                        (region.root->attrs<ConcatAttrs>().axis < 0 ? result->rank() : 0));
  const std::vector<Value*>& inputs = region.root->inputs();
  std::vector<bool>& in_place = in_place_[result];
  in_place.resize(inputs.size());
  // Where a part begins, and how much memory there must be, may be told by what runs after the part's kernel.
  if (depends_on_data(result->shape(), graph_.symbols())) return;
  // Which part has the only element is no bound of an axis: the concatenation is evaluated
  // (RegionLowering::lower_parts).
  if (result->shape()[axis] == Expr(1)) return;
  Expr position = 0;
  for (size_t i = 0; i < inputs.size();) {
    const bool once = std::count(inputs.begin(), inputs.end(), inputs[i]) == 1;
    size_t count = once ? slices_of_one(inputs, i, axis) : 0;
    const Value* whole = count > 0 ? entry(inputs[i]).base : inputs[i];
    if (once && may_be_part(whole, result)) {
      Shape begin(result->shape().size(), 0);
      begin[axis] = position;
      link(whole, Link::part, result, std::move(begin));
      std::fill_n(in_place.begin() + static_cast<std::ptrdiff_t>(i), std::max<size_t>(count, 1), true);
    } else {
      count = 1;
    }
    for (count = std::max<size_t>(count, 1); count > 0; --count) position += inputs[i++]->shape()[axis];
  }
}

// What is padded lies where its copy would be, and copies fill what is around it.
void Placement::link_padded(const Region& region) {
  const Value* x = region.root->input(0);
  const std::optional<ConstantPadding> padding = constant_padding_of(region.root);
  if (!padding || !x->has_single_use() || depends_on_data(region.result()->shape(), graph_.symbols()) ||
      !may_be_part(x, region.result()))
    return;
  link(x, Link::part, region.result(), Shape(padding->begin.begin(), padding->begin.end()));
}

// Slices with step 1, and the parts of a split, are windows into their input when nothing demands them dense.
void Placement::link_slices(const Region& region) {
  const Value* input = region.root->input(0);
  for (size_t i = 0; i < region.outputs.size() && !input->content(); ++i) {
    Space space(symbols_);
    const Shape index = space.add(region.outputs[i]->shape());
    const std::optional<Sources> sources = sources_of(*region.root, i, {index, {}}, space);
    if (!sources) return;
    Shape begin;
    for (size_t d = 0; d < index.size(); ++d) {
      begin.push_back(sources->pieces[0].map.index[d] - index[d]);
      std::vector<SymbolId> used;
      begin[d].collect_symbols(used);
      const bool has_steps = !used.empty() && used.back() >= symbols_.size();  // it moves along an axis
      if (!begin[d].is_valid() || has_steps) return;
    }
    link(region.outputs[i], Link::slice, input, std::move(begin));
  }
}

// Another operand of a region, whose elements may be read after others were written over this one's.
bool Placement::lies_elsewhere_in(const Value* value, const Value* operand) const {
  if (value == operand || value->content()) return false;
  const Location one = location(value), other = location(operand);
  return one.root == other.root &&
         (value->shape() != operand->shape() || one.offset != other.offset || one.strides != other.strides);
}

bool Placement::may_be_overwritten(const Value* operand, const Region& region) const {
  const Value* result = region.result();
  const Entry& theirs = entry(operand);
  if (operand->content() || !operand->producer() || operand->is_graph_output() ||
      (theirs.link != Link::none && theirs.link != Link::over) || theirs.layout != entry(result).layout ||
      operand->dtype() != result->dtype() || operand->shape() != result->shape())
    return false;
  if (std::any_of(region.expression.operands.begin(), region.expression.operands.end(),
                  [&](const Value* value) { return lies_elsewhere_in(value, operand); }))
    return false;
  if (region.kind == RegionKind::pointwise) return true;
  // Kernels of other roots run the epilogue over results that they have written. What the root itself reads must stay:
  // it reads whole neighbourhoods.
  if (!region.root->has_trait(kInPlaceEpilogue)) return false;
  std::vector<Value*> read;
  for (const auto& [input, producer] : region.producers)
    read.insert(read.end(), producer.operands.begin(), producer.operands.end());
  for (size_t i = 0; i < region.root->num_inputs(); ++i) read.push_back(region.input(i));
  return std::none_of(read.begin(), read.end(),
                      [&](const Value* value) { return value && location(value).root == location(operand).root; });
}

// The last region that reads any value in a root's memory may write its result over it, element by element.
void Placement::link_over_operands(const std::vector<Region>& regions) {
  std::unordered_map<const ir::Node*, size_t> region_of;
  for (size_t i = 0; i < regions.size(); ++i)
    for (const ir::Node* node : regions[i].nodes) region_of[node] = i;
  std::unordered_map<const Value*, size_t> last_reader;
  std::unordered_map<const Value*, bool> leaves;  // some value in this memory is a graph output
  for (const auto& [value, mine] : entries_) {
    const Value* root = location(value).root;
    size_t& last = last_reader[root];
    for (const ir::Use& use : value->uses()) last = std::max(last, region_of.at(use.node));
    leaves[root] = leaves[root] || value->is_graph_output();
  }
  for (size_t i = 0; i < regions.size(); ++i) {
    const Region& region = regions[i];
    if (region.kind != RegionKind::pointwise && region.kind != RegionKind::kernel) continue;
    if (region.moves_elements()) continue;  // it reads elements that lie elsewhere than the one it writes
    const Value* result = region.result();
    if (entry(result).link != Link::none || result->is_graph_output() || introduces_symbols(region, graph_)) continue;
    for (const Value* operand : region.expression.operands) {
      if (!may_be_overwritten(operand, region)) continue;
      const Value* root = location(operand).root;
      if (last_reader[root] != i || leaves[root] || leaves[result]) continue;
      link(result, Link::over, operand);
      last_reader[root] = std::max(i, last_reader[result]);
      break;
    }
  }
}

}  // namespace lathe
