// SPDX-License-Identifier: Apache-2.0
#include "api/network/layers_slice.h"

#include <algorithm>

#include "api/network/network_add.h"

namespace lathe::api {
namespace {

// Element i of a vector, without dimensions.
ir::Value* element(LayerLowering& lowering, ir::Value* vector, size_t i) {
  return lowering.gather(vector, lowering.integer_scalar(static_cast<int64_t>(i)), 0);
}

bool all_one(const ir::Value* strides) {
  if (!strides->constant()) return false;
  for (int64_t i = 0; i < strides->constant()->volume(); ++i)
    if (strides->constant()->at(i) != 1) return false;
  return true;
}

// Where a slice takes all of x and more, what is added at the begin and at the end of each axis, where that is known
// and no mirror image is longer than x is.
std::optional<Ints> pads_of(const ir::Value* x, const Ints& axes, const ir::Value* starts, const ir::Value* sizes,
                            nv::SampleMode mode) {
  if (!starts->constant() || !sizes->constant()) return std::nullopt;
  const size_t count = axes.size();
  const int64_t mirrored = mode == nv::SampleMode::kREFLECT ? 1 : 0;
  Ints pads(2 * count);
  for (size_t i = 0; i < count; ++i) {
    const std::optional<int64_t> extent = x->shape()[static_cast<size_t>(axes[i])].as_constant();
    const int64_t start = starts->constant()->at(static_cast<int64_t>(i));
    const int64_t size = sizes->constant()->at(static_cast<int64_t>(i));
    constexpr int64_t kFar = int64_t{1} << 31;
    if (!extent || start > 0 || start < -kFar || size < 0 || size > kFar || start + size < *extent) return std::nullopt;
    pads[i] = -start, pads[count + i] = start + size - *extent;
    const bool repeats = mode == nv::SampleMode::kREFLECT || mode == nv::SampleMode::kWRAP;
    if (repeats && std::max(pads[i], pads[count + i]) > *extent - mirrored) return std::nullopt;
  }
  return pads;
}

}  // namespace

Result<ir::Value*> SliceLayer::operand(LayerLowering& lowering, size_t input, const nv::Dims& dims,
                                       size_t count) const {
  if (has(input)) return lowering.cast(in(input), DType::i64);
  LATHE_ASSIGN(const Dims values, to_dims(dims));
  if (values.size() != count)
    return fail(ErrorCode::invalid_argument, "start, size or stride has {} entries; {} are needed", values.size(),
                count);
  return lowering.ints(values);
}

// All dimensions unless axes are set.
Result<Ints> SliceLayer::axes_of(LayerLowering& lowering) const {
  const int rank = in(0)->rank();
  Ints axes;
  if (has(5)) {
    const std::vector<Expr>* given = in(5)->elements();
    for (size_t i = 0; given && i < given->size(); ++i)
      if (const std::optional<int64_t> axis = (*given)[i].as_constant()) axes.push_back(*axis);
    if (!given || axes.size() != given->size())
      return fail(ErrorCode::shape_unknown, "the axes, input 5, must be known while building");
  } else {
    for (int i = 0; i < (axes_.nbDims < 0 ? rank : axes_.nbDims); ++i)
      axes.push_back(axes_.nbDims < 0 ? i : axes_.d[i]);
  }
  for (int64_t& axis : axes) {
    if (axis < -rank || axis >= rank || std::count(axes.begin(), axes.end(), axis) > 1)
      return fail(ErrorCode::invalid_argument, "axis {} is not one of the {} dimensions, or listed twice", axis, rank);
    if (axis < 0) axis += rank;
  }
  return axes;
}

Result<SliceLayer::Box> SliceLayer::box_of(LayerLowering& lowering) const {
  Box box;
  LATHE_ASSIGN(box.axes, axes_of(lowering));
  LATHE_ASSIGN(box.starts, operand(lowering, 1, start_, box.axes.size()));
  LATHE_ASSIGN(box.sizes, operand(lowering, 2, size_, box.axes.size()));
  LATHE_ASSIGN(box.strides, operand(lowering, 3, stride_, box.axes.size()));
  for (const ir::Value* value : {box.starts, box.sizes, box.strides})
    if (value->rank() != 1 || value->shape()[0] != Expr(static_cast<int64_t>(box.axes.size())))
      return fail(ErrorCode::shape_mismatch, "start, size and stride have {} entries each, but '{}' is {}",
                  box.axes.size(), value->name(), to_string(value->shape()));
  return box;
}

// All bounds are known here: whether they are inside of x, as far as its extents are known.
Result<> SliceLayer::check_inside(const Box& box) const {
  const Tensor &starts = *box.starts->constant(), &sizes = *box.sizes->constant(), &strides = *box.strides->constant();
  for (int64_t i = 0; i < starts.volume(); ++i) {
    const int64_t count = sizes.at(i), step = strides.at(i), first = starts.at(i);
    const Expr& extent = in(0)->shape()[static_cast<size_t>(box.axes[static_cast<size_t>(i)])];
    const int64_t most = extent.as_constant().value_or(INT64_MAX) - 1;
    int64_t last = 0;
    const bool far = __builtin_mul_overflow(count - 1, step, &last) || __builtin_add_overflow(first, last, &last);
    if (far || (count > 0 && (std::min(first, last) < 0 || std::max(first, last) > most)))
      return fail(ErrorCode::invalid_argument, "{} elements from {} on, {} apart, are not all inside of x", count,
                  first, step);
  }
  return {};
}

// As a strict slice, up to start + size * stride; nothing where that cannot say it: strides that are not known yet, or
// negative ones that meet bounds which are not. An axis of stride 0 gives its one element, which is repeated then.
Result<ir::Value*> SliceLayer::slice_inside(LayerLowering& lowering, const Box& box) const {
  const Tensor* strides = box.strides->constant();
  if (!strides) return nullptr;
  const bool known = box.starts->constant() && box.sizes->constant();
  if (known) LATHE_TRY(check_inside(box));
  Ints steps, moves, repeats;
  for (int64_t i = 0; i < strides->volume(); ++i) {
    const int64_t step = strides->at(i);
    if (step < 0 && !known) return nullptr;
    steps.push_back(step == 0 ? 1 : step), moves.push_back(step != 0), repeats.push_back(step == 0);
  }
  ir::Value* counts = lowering.plus(lowering.mul(box.sizes, lowering.ints(moves)), lowering.ints(repeats));
  ir::Value* ends = lowering.plus(box.starts, lowering.mul(counts, lowering.ints(steps)));
  if (known) {  // a negative end would count from the other side
    Ints bounds;
    for (size_t i = 0; i < steps.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const int64_t count = repeats[i] ? 1 : box.sizes->constant()->at(at);
      const int64_t end = box.starts->constant()->at(at) + count * steps[i];
      bounds.push_back(end < 0 ? INT64_MIN + 1 : end);
    }
    ends = lowering.ints(bounds);
  }
  SliceAttrs strict;
  strict.strict = true;
  ir::Value* y = lowering.add(strict, {in(0), box.starts, ends, lowering.ints(box.axes), lowering.ints(steps)});
  if (std::ranges::count(repeats, 1) == 0) return y;
  std::vector<ir::Value*> dims(static_cast<size_t>(in(0)->rank()), lowering.ints({1}));
  for (size_t i = 0; i < repeats.size(); ++i)
    if (repeats[i]) dims[static_cast<size_t>(box.axes[i])] = lowering.reshape(element(lowering, box.sizes, i), Ints{1});
  return lowering.expand(y, lowering.concat(std::move(dims), 0));
}

ir::Value* SliceLayer::fill_value(LayerLowering& lowering) const {
  return has(4) ? in(4) : lowering.scalar_like(0, in(0));
}

// x with elements added at its edges: pads are those of op `pad`.
ir::Value* SliceLayer::pad(LayerLowering& lowering, const Box& box, const Ints& pads) const {
  PadAttrs attributes;
  attributes.mode = mode_ == nv::SampleMode::kFILL      ? PadMode::constant
                    : mode_ == nv::SampleMode::kCLAMP   ? PadMode::edge
                    : mode_ == nv::SampleMode::kREFLECT ? PadMode::reflect
                                                        : PadMode::wrap;
  ir::Value* value = mode_ == nv::SampleMode::kFILL ? fill_value(lowering) : nullptr;
  return lowering.add(attributes, {in(0), lowering.ints(pads), value, lowering.ints(box.axes)});
}

// Which element of an axis a position stands for, that may lie outside.
ir::Value* SliceLayer::source_of(LayerLowering& lowering, ir::Value* position, ir::Value* extent) const {
  const auto op = [&](ElementwiseOp op, ir::Value* a, ir::Value* b) { return lowering.binary(op, a, b); };
  ir::Value *zero = lowering.integer_scalar(0), *one = lowering.integer_scalar(1);
  ir::Value* last = lowering.minus(extent, one);
  switch (mode_) {
    case nv::SampleMode::kWRAP:
      return op(ElementwiseOp::mod, position, extent);
    case nv::SampleMode::kREFLECT: {  // there and back: 0 1 2 3 2 1
      ir::Value* period = op(ElementwiseOp::max, lowering.mul(last, lowering.integer_scalar(2)), one);
      ir::Value* along = op(ElementwiseOp::mod, position, period);
      return op(ElementwiseOp::min, along, lowering.minus(period, along));
    }
    case nv::SampleMode::kCLAMP:
    case nv::SampleMode::kFILL:
      return op(ElementwiseOp::max, op(ElementwiseOp::min, position, last), zero);
    default:
      return position;
  }
}

// Each axis is gathered by what its positions stand for; with kFILL, a mask says which of them lie inside.
ir::Value* SliceLayer::pick(LayerLowering& lowering, const Box& box) const {
  ir::Value *y = in(0), *inside = nullptr;
  for (size_t i = 0; i < box.axes.size(); ++i) {
    const int64_t axis = box.axes[i];
    ir::Value* range = lowering.add(
        RangeAttrs(), {lowering.integer_scalar(0), element(lowering, box.sizes, i), lowering.integer_scalar(1)});
    ir::Value* position =
        lowering.plus(element(lowering, box.starts, i), lowering.mul(range, element(lowering, box.strides, i)));
    ir::Value* extent = lowering.squeeze(lowering.shape_of(in(0), axis, axis + 1), {0});
    ir::Value* source = source_of(lowering, position, extent);
    y = lowering.gather(y, source, axis);
    if (mode_ != nv::SampleMode::kFILL) continue;
    Ints column(static_cast<size_t>(in(0)->rank() - axis), 1);
    column[0] = -1;
    ir::Value* fits = lowering.reshape(lowering.binary(ElementwiseOp::equal, source, position), column);
    inside = inside ? lowering.binary(ElementwiseOp::logical_and, inside, fits) : fits;
  }
  return inside ? lowering.select(inside, y, fill_value(lowering)) : y;
}

Result<std::vector<ir::Value*>> SliceLayer::lower(LayerLowering& lowering) {
  const bool fills = mode_ == nv::SampleMode::kFILL;
  if (has(4) && !fills) return fail(ErrorCode::invalid_argument, "input 4 is the fill value of mode kFILL alone");
  if (has(4) && (in(4)->dtype() != in(0)->dtype() || in(4)->rank() != 0))
    return fail(ErrorCode::type_mismatch, "the fill value, input 4, is a {} without dimensions, but '{}' is {}{}",
                name_of(in(0)->dtype()), in(4)->name(), name_of(in(4)->dtype()), to_string(in(4)->shape()));
  LATHE_ASSIGN(const Box box, box_of(lowering));
  if (const Tensor* sizes = box.sizes->constant())
    for (int64_t i = 0; i < sizes->volume(); ++i)
      if (sizes->at(i) < 0) return fail(ErrorCode::invalid_argument, "a slice cannot have {} elements", sizes->at(i));
  if (mode_ == nv::SampleMode::kSTRICT_BOUNDS) {
    LATHE_ASSIGN(ir::Value * y, slice_inside(lowering, box));
    return std::vector{y ? y : pick(lowering, box)};
  }
  if (all_one(box.strides))
    if (const auto pads = pads_of(in(0), box.axes, box.starts, box.sizes, mode_))
      return std::vector{pad(lowering, box, *pads)};
  return std::vector{pick(lowering, box)};
}

nv::ISliceLayer* NetworkDefinition::addSlice(nv::ITensor& input, const nv::Dims& start, const nv::Dims& size,
                                             const nv::Dims& stride) noexcept {
  return add<SliceLayer>("INetworkDefinition::addSlice", {&input}, start, size, stride);
}

}  // namespace lathe::api
