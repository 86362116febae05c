// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/deconv/deconv.h"

#include <algorithm>
#include <numeric>

namespace lathe::cpu::deconv {

int64_t phase_count(const ConvShape& shape) { return shape.stride[0] * shape.stride[1] * shape.stride[2]; }

DeconvPhase phase_of(const ConvShape& shape, int64_t index) {
  DeconvPhase phase;
  phase.shape = shape;
  for (int d = 2; d >= 0; --d) {
    const int64_t stride = shape.stride[d], dilation = shape.dilation[d], kernel = shape.kernel[d];
    phase.offset[d] = index % stride;
    index /= stride;
    // Taps k with k * dilation = position (mod stride), position being counted from x's first pixel.
    const int64_t position = phase.offset[d] + shape.pad[d], common = std::gcd(stride, dilation);
    const int64_t step = stride / common;
    int64_t first = 0;
    while (first < step && (position - first * dilation) % stride != 0) ++first;
    const int64_t taps = first < step && first < kernel ? (kernel - 1 - first) / step + 1 : 0;
    phase.shape.stride[d] = 1;
    phase.shape.kernel[d] = std::max<int64_t>(taps, 1);
    phase.shape.dilation[d] = dilation / common;
    phase.shape.pad[d] = 0;
    if (taps == 0) {
      phase.empty = true;
      continue;
    }
    phase.first_tap[d] = first;
    phase.tap_step[d] = step;
    // Later taps lie at earlier pixels of x: the convolution runs over them backwards.
    phase.shape.pad[d] = (taps - 1) * phase.shape.dilation[d] - (position - first * dilation) / stride;
  }
  return phase;
}

int64_t packed_floats(const ConvShape& shape, const gemm::Blocking& blocking) {
  int64_t floats = 0;
  for (int64_t i = 0; i < phase_count(shape); ++i)
    floats += conv::packed_floats(phase_of(shape, i).shape, {conv::Algorithm::direct, blocking, false});
  return floats;
}

void pack_weights(const ConvShape& shape, const gemm::Blocking& blocking, const float* weights,
                  std::span<float> packed) {
  const int64_t inputs = shape.group_inputs(), outputs = shape.group_outputs();
  for (int64_t i = 0; i < phase_count(shape); ++i) {
    const DeconvPhase phase = phase_of(shape, i);
    const auto& kernel = phase.shape.kernel;
    const int64_t volume = phase.shape.volume();
    std::vector<float> own(static_cast<size_t>(shape.out_channels * inputs * volume));
    for (int64_t o = 0; !phase.empty && o < shape.out_channels; ++o)
      for (int64_t c = 0; c < inputs; ++c)
        for (int64_t t = 0; t < volume; ++t) {
          const int64_t at[3] = {t / (kernel[1] * kernel[2]), t / kernel[2] % kernel[1], t % kernel[2]};
          int64_t tap = 0;
          for (int d = 0; d < 3; ++d)
            tap = tap * shape.kernel[d] + phase.first_tap[d] + (kernel[d] - 1 - at[d]) * phase.tap_step[d];
          const int64_t from = (o / outputs * inputs + c) * outputs + o % outputs;
          own[static_cast<size_t>((o * inputs + c) * volume + t)] = weights[from * shape.volume() + tap];
        }
    const conv::ConvConfig config{conv::Algorithm::direct, blocking, false};
    const auto floats = static_cast<size_t>(conv::packed_floats(phase.shape, config));
    conv::pack_weights(phase.shape, config, own.data(), packed.first(floats));
    packed = packed.subspan(floats);
  }
}

std::vector<gemm::Blocking> candidates(const ConvShape& shape, int64_t rows, int threads) {
  std::vector<gemm::Blocking> found;
  const int64_t n = shape.group_outputs();
  const bool wide = threads > 1 && shape.groups * n > rows;
  for (int width : {n % 48 == 0 ? 48 : 64, 32, 64, 48}) {
    if (width > gemm::kPanelQuantum && n <= width - gemm::kPanelQuantum) continue;
    const gemm::Blocking blocking{width, 0, 0, wide};
    if (std::find(found.begin(), found.end(), blocking) == found.end()) found.push_back(blocking);
  }
  if (found.empty()) found.push_back({gemm::kPanelQuantum, 0, 0, wide});
  return found;
}

}  // namespace lathe::cpu::deconv
