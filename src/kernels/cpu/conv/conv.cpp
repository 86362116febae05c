// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/conv/conv.h"

#include <algorithm>

#include "base/divide.h"
#include "kernels/cpu/conv/winograd.h"

namespace lathe::cpu::conv {
namespace {

using gemm::Blocking;
using gemm::Panels;

Panels panels_of(const ConvShape& shape, const ConvConfig& config) {
  return {shape.volume() * shape.group_inputs(), shape.group_outputs(), config.blocking.width};
}

void add_winograd(const ConvProblem& problem, int threads, std::vector<ConvConfig>& found) {
  const ConvShape& shape = problem.shape;
  if (problem.planar_input || !winograd_fits(shape) || shape.in_channels < 8 || shape.out_channels < 8) return;
  const int width = shape.out_channels % 48 == 0 ? 48 : 64;
  for (const Algorithm algorithm : {Algorithm::winograd4, Algorithm::winograd2}) {
    const int64_t m = winograd_outputs(algorithm);
    const int64_t tiles = problem.batch * ceil_div(problem.out[1], m) * ceil_div(problem.out[2], m);
    const bool columns = threads > 1 && tiles < 48 * threads;
    for (int64_t block : {48, 24, 12})
      if (block == 48 || tiles > block) found.push_back({algorithm, {width, block, 0, columns}, false});
  }
}

}  // namespace

int64_t packed_floats(const ConvShape& shape, const ConvConfig& config) {
  return panels_of(shape, config).floats() * shape.groups;
}

void pack_weights(const ConvShape& shape, const ConvConfig& config, const float* weights, std::span<float> packed) {
  const Panels panels = panels_of(shape, config);
  const int64_t inputs = shape.group_inputs(), volume = shape.volume();
  std::vector<float> reordered;
  if (config.algorithm == Algorithm::direct && volume > 1 && inputs > 1) {
    // The k of a panel runs over taps, then channels.
    reordered.resize(static_cast<size_t>(shape.out_channels * inputs * volume));
    for (int64_t o = 0; o < shape.out_channels; ++o)
      for (int64_t c = 0; c < inputs; ++c)
        for (int64_t t = 0; t < volume; ++t)
          reordered[(o * volume + t) * inputs + c] = weights[(o * inputs + c) * volume + t];
    weights = reordered.data();
  }
  for (int64_t g = 0; g < shape.groups; ++g)
    gemm::pack(panels, weights + g * panels.n * panels.k, 1, panels.k, 0, panels.count(),
               packed.data() + g * panels.floats());
}

std::vector<ConvConfig> candidates(const ConvProblem& problem, int threads) {
  const ConvShape& shape = problem.shape;
  const int64_t rows = problem.batch * problem.out[0] * problem.out[1] * problem.out[2];
  const int64_t n = shape.group_outputs(), k = shape.volume() * shape.group_inputs();
  std::vector<ConvConfig> found;
  const Algorithm algorithm = problem.planar_input ? Algorithm::planar : Algorithm::direct;
  if (problem.planar_input && (shape.groups != 1 || shape.dilation[2] != 1)) return found;
  auto add = [&](Blocking blocking, bool row_aligned) {
    if (blocking.k_block >= k) blocking.k_block = 0;
    if (blocking.row_block >= rows) blocking.row_block = 0;
    if (threads == 1) blocking.split_columns = false;
    const ConvConfig config{algorithm, blocking, row_aligned};
    if (std::find(found.begin(), found.end(), config) == found.end() && found.size() < 24) found.push_back(config);
  };
  // Few pixels: the weights are the traffic, so threads share them.
  const bool wide = shape.groups * n > rows;
  const int64_t out_width = problem.out[2];
  // Whole output rows let a tile skip the taps that fall into the padding above and below.
  const bool aligned = shape.volume() > 1 && out_width <= kMaxVectorTileRows;
  const int best = n % 48 == 0 ? 48 : n % 64 == 0 ? 64 : n % 32 == 0 ? 32 : 64;
  for (bool split : {wide, !wide})
    for (int width : {best, 32, 48, 64}) {
      if (width > gemm::kPanelQuantum && n <= width - gemm::kPanelQuantum) continue;
      const int64_t k_block = k * width > 48 * 1024 ? 512 : 0;
      add({width, 0, k_block, split}, aligned);
      add({width, 0, 0, split}, !aligned);
      if (n > width && k <= 576) add({width, 48, 0, split}, false);
      if (width == best && n > width && gemm::stays_near(k * n)) add({width, gemm::kTileByTile, 0, split}, false);
    }
  if (found.empty()) add({gemm::kPanelQuantum, 0, 0, false}, false);
  add_winograd(problem, threads, found);
  return found;
}

}  // namespace lathe::cpu::conv
