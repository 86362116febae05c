// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/conv_elements/phase.h"

namespace lathe::cpu::conv_elements {
namespace {

struct Extents {
  int64_t input, kernel, output;
};

int64_t padding_of(const ConvElementsParams& params, size_t axis, const Extents& extents) {
  const ConvElementsParams::Axis& own = params.axes[axis];
  if (!params.transposed)
    return SlidingWindow{extents.input, extents.output, extents.kernel, own.stride, own.dilation}
        .padding(own.rule, {own.padding})
        .begin;
  if (own.rule == PaddingRule::given) return own.padding;
  const int64_t reach = (extents.kernel - 1) * own.dilation + 1;
  return share_of(own.rule, (extents.input - 1) * own.stride + reach + own.padding - extents.output);
}

void find_taps(const ConvElementsParams& params, size_t axis, int64_t index, const Extents& extents, PhaseAxis& phase) {
  const ConvElementsParams::Axis& own = params.axes[axis];
  const int64_t pad = padding_of(params, axis, extents), phases = params.phases(axis);
  phase.first = index;
  phase.step = phases;
  phase.count = extents.output > index ? (extents.output - index - 1) / phases + 1 : 0;
  phase.advance = params.transposed ? 1 : own.stride;
  phase.taps = 0;
  for (int64_t k = 0; k < extents.kernel; ++k) {
    const int64_t position = params.transposed ? index + pad - k * own.dilation : k * own.dilation - pad;
    if (position % phases != 0) continue;  // x's pixels lie at every stride-th position
    phase.positions[phase.taps] = position / phases;
    phase.kernel[phase.taps++] = k;
  }
}

}  // namespace

int64_t Phase::bytes(const TensorArg& weights) {
  int64_t volume = 1, extents = 0;
  for (int d = 2; d < weights.rank; ++d) volume *= weights.dims[d], extents += weights.dims[d];
  return (2 * extents + volume * (weights.rank - 1)) * static_cast<int64_t>(sizeof(int64_t));
}

int64_t Phase::count(const ConvElementsParams& params) {
  int64_t product = 1;
  for (size_t d = 0; d < params.axes.size(); ++d) product *= params.phases(d);
  return product;
}

Phase::Phase(const ConvElementsParams& params, const TensorArg& x, const TensorArg& weights, const TensorArg& y,
             int64_t index, std::byte* memory)
    : x_(x), spatial_(x.rank - 2), pixels_(y.dims[0]) {
  auto* numbers = reinterpret_cast<int64_t*>(memory);
  for (int d = spatial_ - 1; d >= 0; --d) {
    PhaseAxis& axis = axes_[d];
    const int64_t phases = params.phases(static_cast<size_t>(d));
    axis.positions = numbers;
    axis.kernel = numbers + weights.dims[d + 2];
    numbers += 2 * weights.dims[d + 2];
    find_taps(params, static_cast<size_t>(d), index % phases, {x.dims[d + 2], weights.dims[d + 2], y.dims[d + 2]},
              axis);
    index /= phases;
    taps_ *= axis.taps;
    pixels_ *= axis.count;
  }
  int64_t* elements = numbers + taps_ * spatial_;
  for (int64_t tap = 0; tap < taps_; ++tap) {
    int64_t rest = tap;
    elements[tap] = 0;
    for (int d = spatial_ - 1; d >= 0; --d) {
      const PhaseAxis& axis = axes_[d];
      const int64_t t = rest % axis.taps;
      numbers[tap * spatial_ + d] = axis.positions[t];
      elements[tap] += axis.kernel[t] * weights.strides[d + 2];
      rest /= axis.taps;
    }
  }
  positions_ = numbers;
  elements_ = elements;
}

void Phase::locate(int64_t first, int64_t count, Pixel* pixels) const {
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = first + i;
    for (int d = spatial_ - 1; d >= 0; --d) {
      const PhaseAxis& axis = axes_[d];
      const int64_t j = rest % axis.count;
      rest /= axis.count;
      pixels[i].positions[d] = j * axis.advance;
      pixels[i].outputs[d] = axis.first + j * axis.step;
    }
    pixels[i].image = rest;
  }
}

}  // namespace lathe::cpu::conv_elements
