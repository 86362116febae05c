// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "api/network/imported_kinds.h"
#include "api/network/layers_slice.h"

namespace lathe::api {
namespace {

// What a slice layer takes, along some axes of x.
struct Bounds {
  Ints axes, starts, sizes, strides;
  nv::SampleMode mode = nv::SampleMode::kSTRICT_BOUNDS;

  void add(int64_t axis, int64_t start, int64_t size, int64_t stride) {
    axes.push_back(axis), starts.push_back(start), sizes.push_back(size), strides.push_back(stride);
  }
};

std::optional<int64_t> extent_of(const ir::Value& value, int64_t axis) {
  return value.shape()[static_cast<size_t>(axis)].as_constant();
}

std::optional<Ints> axes_of(const ir::Value& x, const ir::Value* given, size_t count) {
  std::optional<Ints> axes = Ints();
  if (given) axes = known_ints(given);
  for (size_t i = 0; axes && !given && i < count; ++i) axes->push_back(static_cast<int64_t>(i));
  for (size_t i = 0; axes && i < axes->size(); ++i)
    if ((*axes)[i] < 0) (*axes)[i] += x.rank();
  return axes;
}

// x, starts, ends, axes?, steps?: the ends show in the result.
std::optional<Bounds> bounds_of_slice(const ir::Node& node) {
  const ir::Value& x = *node.input(0);
  const std::optional<Ints> starts = known_ints(node.input(1));
  if (!starts) return std::nullopt;
  const std::optional<Ints> axes = axes_of(x, node.input(3), starts->size());
  const std::optional<Ints> steps = node.input(4) ? known_ints(node.input(4)) : Ints(starts->size(), 1);
  if (!axes || !steps) return std::nullopt;
  Bounds bounds;
  for (size_t i = 0; i < starts->size(); ++i) {
    const int64_t axis = (*axes)[i], step = (*steps)[i];
    const std::optional<int64_t> extent = extent_of(x, axis), size = extent_of(*node.output(), axis);
    int64_t start = (*starts)[i];
    if (!size || (!extent && (start < 0 || step < 0 || *size == 0))) return std::nullopt;
    if (extent) start = std::clamp<int64_t>(start < 0 ? start + *extent : start, 0, step < 0 ? *extent - 1 : *extent);
    bounds.add(axis, start, *size, step);
  }
  return bounds;
}

std::optional<nv::SampleMode> mode_of(PadMode mode) {
  switch (mode) {
    case PadMode::constant:
      return nv::SampleMode::kFILL;
    case PadMode::reflect:
      return nv::SampleMode::kREFLECT;
    case PadMode::edge:
      return nv::SampleMode::kCLAMP;
    case PadMode::wrap:
      return nv::SampleMode::kWRAP;
  }
  return std::nullopt;
}

// x, pads, value?, axes?
std::optional<Bounds> bounds_of_pad(const ir::Node& node) {
  const ir::Value& x = *node.input(0);
  const std::optional<Ints> pads = known_ints(node.input(1));
  const std::optional<nv::SampleMode> mode = mode_of(node.attrs<PadAttrs>().mode);
  if (!pads || !mode) return std::nullopt;
  const ir::Value* value = node.input(2);
  if (value && *mode == nv::SampleMode::kFILL && (value->rank() != 0 || value->dtype() != x.dtype()))
    return std::nullopt;
  const size_t count = pads->size() / 2;
  const std::optional<Ints> axes = axes_of(x, node.input(3), count);
  if (!axes) return std::nullopt;
  Bounds bounds;
  bounds.mode = *mode;
  for (size_t i = 0; i < count; ++i) {
    const int64_t axis = (*axes)[i], begin = (*pads)[i], end = (*pads)[count + i];
    if (begin == 0 && end == 0) continue;
    const std::optional<int64_t> size = extent_of(*node.output(), axis);
    if (!size || begin < 0 || end < 0) return std::nullopt;
    bounds.add(axis, -begin, *size, 1);
  }
  return bounds;
}

// Dimensions of extent 1 that are repeated: stride 0.
std::optional<Bounds> bounds_of_expansion(const ir::Node& node) {
  const ir::Value &x = *node.input(0), &y = *node.output();
  if (x.rank() != y.rank()) return std::nullopt;
  Bounds bounds;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (x.shape()[static_cast<size_t>(d)] == y.shape()[static_cast<size_t>(d)]) continue;
    const std::optional<int64_t> size = extent_of(y, d);
    if (extent_of(x, d) != 1 || !size) return std::nullopt;
    bounds.add(d, 0, *size, 0);
  }
  return bounds;
}

std::optional<Bounds> bounds_of_tile(const ir::Node& node) {
  const std::optional<Ints> repeats = known_ints(node.input(1));
  Bounds bounds;
  bounds.mode = nv::SampleMode::kWRAP;
  for (size_t d = 0; repeats && d < repeats->size(); ++d) {
    if ((*repeats)[d] == 1) continue;
    const auto axis = static_cast<int64_t>(d);
    const std::optional<int64_t> size = extent_of(*node.output(), axis);
    if (!size || *size == 0) return std::nullopt;
    bounds.add(axis, 0, *size, 1);
  }
  return repeats ? std::optional(bounds) : std::nullopt;
}

std::optional<Bounds> bounds_of(const ir::Node& node) {
  switch (node.kind()) {
    case OpKind::slice:
      return bounds_of_slice(node);
    case OpKind::pad:
      return bounds_of_pad(node);
    case OpKind::expand:
      return bounds_of_expansion(node);
    case OpKind::tile:
      return bounds_of_tile(node);
    default:
      return std::nullopt;
  }
}

// Of all dimensions where they are known, so that tools need not look at the axes.
Bounds of_all_dims(const ir::Value& x, const Bounds& bounds) {
  Bounds all;
  all.mode = bounds.mode;
  for (int64_t d = 0; d < x.rank(); ++d) {
    const std::optional<int64_t> extent = extent_of(x, d);
    if (!extent) return bounds;
    const auto at = std::find(bounds.axes.begin(), bounds.axes.end(), d);
    const auto i = static_cast<size_t>(at - bounds.axes.begin());
    if (at == bounds.axes.end())
      all.add(d, 0, *extent, 1);
    else
      all.add(d, bounds.starts[i], bounds.sizes[i], bounds.strides[i]);
  }
  return all;
}

}  // namespace

std::unique_ptr<Layer> make_slice(NetworkDefinition& network, ir::Node* node) {
  std::optional<Bounds> bounds = bounds_of(*node);
  const ir::Value* x = node->input(0);
  if (!bounds || bounds->axes.empty() || x->rank() > nv::Dims::MAX_DIMS) return nullptr;
  *bounds = of_all_dims(*x, *bounds);
  auto layer = std::make_unique<SliceLayer>(network, std::vector<TensorView*>(), dims_of(bounds->starts),
                                            dims_of(bounds->sizes), dims_of(bounds->strides));
  const bool has_all = bounds->axes.size() == static_cast<size_t>(x->rank());
  layer->set_sampling(bounds->mode, has_all ? invalid_dims() : dims_of(bounds->axes));
  std::vector<const ir::Value*> inputs = {x};
  if (node->is(OpKind::pad) && bounds->mode == nv::SampleMode::kFILL && node->input(2))
    inputs = {x, nullptr, nullptr, nullptr, node->input(2)};
  layer->adopt(node, inputs);
  return layer;
}

}  // namespace lathe::api
