// SPDX-License-Identifier: Apache-2.0
// Nodes that move elements and compute none, as strided copies.
#include <algorithm>
#include <cmath>

#include "indexing/access.h"
#include "lowering/region_lowering.h"
#include "ops/rules.h"
#include "plan/limits.h"

namespace lathe {

using ir::Node;
using ir::Value;

namespace {

// A part of an iteration space: from begin to below end along each axis.
struct Box {
  Shape begin, end;
};

// Where the piece of a node is in the node's result, which is all of the space: the bounds lie within it.
Box box_of(const Access& access, const Space& space) {
  Box box{Shape(space.rank(), 0), space.extents()};
  for (const Bound& bound : access.bounds) {
    box.begin[bound.axis] = bound.begin;
    box.end[bound.axis] = bound.end;
  }
  return box;
}

// What is left of the space around a box: before and behind it along each axis, within it along those before.
std::vector<Box> around(const Box& inner, const Space& space) {
  const Shape extents = space.extents();
  std::vector<Box> boxes;
  Box rest{Shape(extents.size(), 0), extents};
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    Box before = rest, behind = rest;
    before.end[axis] = rest.begin[axis] = inner.begin[axis];
    behind.begin[axis] = rest.end[axis] = inner.end[axis];
    if (inner.begin[axis] != Expr(0)) boxes.push_back(std::move(before));
    if (inner.end[axis] != extents[axis]) boxes.push_back(std::move(behind));
  }
  return boxes;
}

// The elements of a tensor that an access reads in the box.
plan::TensorDesc window(plan::TensorDesc tensor, const Access& access, const Box& box) {
  tensor.offset += access.offset;
  tensor.dims.clear();
  for (size_t axis = 0; axis < box.begin.size(); ++axis) {
    tensor.offset += box.begin[axis] * access.strides[axis];
    tensor.dims.push_back(box.end[axis] - box.begin[axis]);
  }
  tensor.strides = access.strides;
  return tensor;
}

bool is_same_memory(const plan::TensorDesc& a, const plan::TensorDesc& b) {
  return a.storage == b.storage && a.index == b.index && a.offset == b.offset && a.strides == b.strides;
}

}  // namespace

// The copies that make result number `output` of the node, by its indexing maps; none where there are no such maps, or
// they are not linear.
std::vector<RegionLowering::Copy> RegionLowering::copies_of(const Node& node, size_t output) {
  const Value* result = node.output(output);
  Space space(graph_.symbol_ranges());
  const Shape index = space.add(result->shape());
  const std::optional<Sources> sources = sources_of(node, output, {index, {}}, space);
  if (!sources || space.rank() > plan::kMaxRank) return {};
  const plan::TensorDesc to = tensors_[tensors_.tensor_of(result)];
  const std::optional<Access> write = access_of({index, {}}, strides_of(to), space);
  std::vector<Copy> copies;
  for (const Piece& piece : sources->pieces) {
    const plan::TensorDesc from = tensors_[tensors_.tensor_of(node.input(piece.input))];
    const std::optional<Access> read = access_of(piece.map, strides_of(from), space);
    if (!read) return {};
    const Box box = box_of(*read, space);
    copies.push_back({piece.input, window(from, *read, box), window(to, *write, box)});
    if (!sources->fill) continue;
    constexpr double kExact = 9007199254740992;  // integers beyond 2^53 are not told apart
    Result<Tensor> number = Tensor::allocate(result->dtype(), {});
    if (!number || (is_integer(result->dtype()) && std::abs(*sources->fill) >= kExact)) return {};
    write_doubles({&*sources->fill, 1}, 0, *number);
    const plan::TensorDesc fill = tensors_[tensors_.constant_of({*number, nullptr}, node.name() + " fill")];
    const Access everywhere{0, Shape(space.rank(), 0), {}};
    for (const Box& rest : around(box, space))
      copies.push_back({piece.input, window(fill, everywhere, rest), window(to, *write, rest)});
  }
  return copies;
}

// Whether the node was done by such copies.
bool RegionLowering::lower_copies(const Node& node, Copies which) {
  const Facts facts(graph_.symbol_ranges());
  const auto goes_backwards = [&](const Expr& stride) {
    return stride != Expr(0) && facts.is_nonnegative(Expr(0) - stride);
  };
  std::vector<std::vector<Copy>> all;
  for (size_t i = 0; i < node.num_outputs(); ++i) {
    all.push_back(copies_of(node, i));
    if (all.back().empty()) return false;
    const Shape& strides = all.back()[0].from.strides;
    const bool is_window = all.back().size() == 1 && std::none_of(strides.begin(), strides.end(), goes_backwards);
    if (which == Copies::windows && !is_window) return false;
  }
  for (const std::vector<Copy>& copies : all)
    for (size_t i = 0; i < copies.size(); ++i) {
      if (is_same_memory(copies[i].from, copies[i].to)) continue;
      const std::string name = copies.size() == 1 ? node.name() : fmt::format("{} part {}", node.name(), i);
      lower_copy(tensors_.add(copies[i].from), tensors_.add(copies[i].to), name, node.origin());
    }
  return true;
}

Result<> RegionLowering::lower_movement(const Region& region) {
  Node& node = *region.root;
  const bool is_done = !introduces_symbols(region, graph_) &&
                       (node.is(OpKind::concat) ? lower_parts(region) : lower_copies(node, Copies::windows));
  return is_done ? Result<>() : lower_single(node);
}

// The parts of a concatenation that are not written in place; false where none can be copied, and link_concat has put
// none in place.
bool RegionLowering::lower_parts(const Region& region) {
  const std::vector<Copy> copies = copies_of(*region.root, 0);
  for (const Copy& copy : copies)
    if (!placement_.is_in_place(region, copy.input))
      lower_copy(tensors_.add(copy.from), tensors_.add(copy.to),
                 fmt::format("{} part {}", region.root->name(), copy.input), region.root->origin());
  return !copies.empty();
}

void RegionLowering::copy_channels_last(const Value* x) {
  if (channels_last_.contains(x)) return;
  const Shape room = problems_.pixel_dims(x);
  plan::TensorDesc copy = tensors_[tensors_.temporary(x->name(), x->dtype(), room)];
  plan_.tensors.pop_back();
  copy.dims = x->shape();
  copy.strides = dense_strides(room, Layout::channels_last);
  channels_last_[x] = tensors_.add(std::move(copy));
  lower_copy(tensors_.tensor_of(x), channels_last_[x], "reformat " + x->name(), {});
}

// Same elements (of a bitcast, the same bits), same order: a copy only when the memory could not be shared.
Result<> RegionLowering::lower_view(const Region& region) {
  const Value* input = region.root->input(0);
  const Value* output = region.result();
  const Location location = placement_.location(output);
  const bool dense = placement_.is_dense_linear(output);
  const std::optional<Shape> strides =
      dense ? Shape() : strides_before(*region.root, location.strides, graph_.symbol_ranges());
  if (introduces_symbols(region, graph_) || volume(input->shape()) != volume(output->shape()) || !strides)
    return lower_single(*region.root);
  plan::TensorId from = tensors_.tensor_of(input);
  if (input->dtype() != output->dtype()) from = tensors_.as_type(from, output->dtype());
  lower_copy(from, tensors_.tensor_at(output, input->shape(), *strides, location), region.root->name(),
             region.root->origin());
  return {};
}

}  // namespace lathe
