// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "ops/copy_box.h"
#include "ops/rules.h"
#include "ops/symbolic.h"

namespace lathe {
namespace {

constexpr size_t kPads = 1, kValue = 2, kAxes = 3;

// The axes that pads speaks of, in its order.
Result<Ints> padded_axes(const std::optional<Ints>& given, int64_t rank) {
  Ints axes;
  for (int64_t i = 0; !given && i < rank; ++i) axes.push_back(i);
  if (given)
    for (int64_t axis : *given) {
      LATHE_ASSIGN(axes.emplace_back(), normalize_axis(axis, rank, "pad: axis"));
      if (std::count(axes.begin(), axes.end(), axes.back()) > 1)
        return fail(ErrorCode::shape_mismatch, "pad: axis {} is listed twice", axes.back());
    }
  return axes;
}

Result<> check_value(InferContext& context) {
  if (!context.has(kValue)) return {};
  LATHE_TRY(require_same_dtype(context, 0, kValue));
  if (!context.assume_equal(volume(context.shape(kValue)), 1))
    return fail(ErrorCode::shape_mismatch, "pad: the value (input 2) must be one element, but has shape {}",
                to_string(context.shape(kValue)));
  return {};
}

// Where output position j of an axis reads: negative = nowhere (the value), else the input position.
Result<Ints> sources(int64_t extent, int64_t begin, int64_t end, PadMode mode) {
  // Negative pads crop; what remains is then extended.
  const int64_t low = std::max<int64_t>(-begin, 0), kept = extent - low - std::max<int64_t>(-end, 0);
  const int64_t front = std::max<int64_t>(begin, 0), total = front + kept + std::max<int64_t>(end, 0);
  if (mode != PadMode::constant && kept <= 0 && total > 0)
    return fail(ErrorCode::execution_failed, "pad: an axis of extent {} has nothing to repeat after cropping", extent);
  Ints out(static_cast<size_t>(total));
  for (int64_t j = 0; j < total; ++j) {
    int64_t i = j - front;
    if (i < 0 || i >= kept) {
      const int64_t period = mode == PadMode::wrap ? kept : std::max<int64_t>(2 * (kept - 1), 1);
      if (mode == PadMode::constant)
        i = -1 - low;
      else if (mode == PadMode::edge)
        i = std::clamp<int64_t>(i, 0, kept - 1);
      else if ((i = (i % period + period) % period) >= kept)
        i = period - i;
    }
    out[static_cast<size_t>(j)] = i + low;
  }
  return out;
}

// Copies one axis after the other; rows whose source is nowhere keep the value they were filled with.
class Copier {
 public:
  Copier(const Tensor& input, Tensor& output, std::vector<Ints> sources)
      : sources_(std::move(sources)),
        size_(static_cast<int64_t>(size_of(input.dtype()))),
        input_strides_(row_major_strides(input.dims())),
        output_strides_(row_major_strides(output.dims())) {}

  void copy(size_t axis, const char* from, char* to) const {
    if (axis == sources_.size()) {
      std::memcpy(to, from, static_cast<size_t>(size_));
      return;
    }
    const Ints& source = sources_[axis];
    const bool last = axis + 1 == sources_.size();
    for (size_t j = 0; j < source.size();) {
      size_t run = 1;
      if (source[j] >= 0) {
        const char* row = from + source[j] * input_strides_[axis] * size_;
        char* target = to + static_cast<int64_t>(j) * output_strides_[axis] * size_;
        while (last && j + run < source.size() && source[j + run] == source[j] + static_cast<int64_t>(run)) ++run;
        if (last)
          std::memcpy(target, row, run * static_cast<size_t>(size_));
        else
          copy(axis + 1, row, target);
      }
      j += run;
    }
  }

 private:
  std::vector<Ints> sources_;
  int64_t size_;
  Dims input_strides_, output_strides_;
};

}  // namespace

Result<> infer_pad(InferContext& context) {
  LATHE_TRY(check_value(context));
  LATHE_ASSIGN(const int64_t length, list_length(context, kPads, "pad: pads"));
  Shape output = context.shape(0);
  const std::optional<Ints> given_axes = context.constant_elements(kAxes);
  if (context.has(kAxes) && !given_axes) {
    for (size_t d = 0; d < output.size(); ++d) output[d] = context.new_symbol("pad_dim", d);
    context.set(0, context.dtype(0), std::move(output));
    return {};
  }
  LATHE_ASSIGN(const Ints axes, padded_axes(given_axes, context.rank(0)));
  if (length != 2 * static_cast<int64_t>(axes.size()))
    return fail(ErrorCode::shape_mismatch, "pad: pads has {} entries, expected two for each of {} axes", length,
                axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    Expr& dim = output[static_cast<size_t>(axes[i])];
    const std::optional<Expr> before = context.element(kPads, i), behind = context.element(kPads, i + axes.size());
    dim = before && behind ? dim + *before + *behind : context.new_symbol("pad_dim", static_cast<size_t>(axes[i]));
    if (dim.is_constant() && *dim.as_constant() < 0)
      return fail(ErrorCode::shape_mismatch, "pad: axis {} of input {} cannot be cropped to {} elements", axes[i],
                  to_string(context.shape(0)), *dim.as_constant());
  }
  context.set(0, context.dtype(0), std::move(output));
  return {};
}

Result<> eval_pad(EvalContext& context) {
  const Tensor& input = context.input(0);
  Tensor& output = context.output(0);
  if (output.volume() == 0) return {};
  const Ints pads = to_ints(context.input(kPads));
  LATHE_ASSIGN(
      const Ints axes,
      padded_axes(context.has(kAxes) ? std::optional(to_ints(context.input(kAxes))) : std::nullopt, input.rank()));
  Ints begin(input.dims().size()), end(input.dims().size());
  for (size_t i = 0; i < axes.size(); ++i) {
    begin[static_cast<size_t>(axes[i])] = pads[i];
    end[static_cast<size_t>(axes[i])] = pads[i + axes.size()];
  }
  const PadMode mode = context.attrs<PadAttrs>().mode;
  std::vector<Ints> rows;
  for (size_t d = 0; d < begin.size(); ++d) {
    LATHE_ASSIGN(rows.emplace_back(), sources(input.dims()[d], begin[d], end[d], mode));
  }
  static constexpr uint64_t kZero = 0;
  fill_elements(size_of(input.dtype()), context.has(kValue) ? context.input(kValue).data() : &kZero,
                output.mutable_data(), output.volume());
  if (input.volume() == 0) return {};
  Copier(input, output, std::move(rows))
      .copy(0, static_cast<const char*>(input.data()), static_cast<char*>(output.mutable_data()));
  return {};
}

}  // namespace lathe
