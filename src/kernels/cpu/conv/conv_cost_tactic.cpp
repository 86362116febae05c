// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/conv/conv_cost_tactic.h"

#include <algorithm>
#include <cmath>

#include "base/divide.h"
#include "kernels/cpu/conv/winograd.h"
#include "kernels/cpu/gemm/tile_cost_tactic.h"

namespace lathe::cpu::conv {
namespace {

using gemm::TileCost;

// The share of taps along a dimension that lie inside of the image.
double share_inside(const ConvShape& shape, const ConvProblem& problem, size_t d) {
  int64_t inside = 0;
  for (int64_t o = 0; o < problem.out[d]; ++o)
    for (int64_t k = 0; k < shape.kernel[d]; ++k) {
      const int64_t at = o * shape.stride[d] - shape.pad[d] + k * shape.dilation[d];
      inside += at >= 0 && at < problem.in[d];
    }
  return static_cast<double>(inside) / static_cast<double>(std::max<int64_t>(problem.out[d] * shape.kernel[d], 1));
}

double direct_us(const Target& target, const ConvProblem& problem, const ConvConfig& config, int64_t element_size) {
  const ConvShape shape = with_padding(problem.shape, problem.in, problem.out);
  gemm::TiledProduct product;
  product.rows = problem.batch * problem.out[0] * problem.out[1] * problem.out[2];
  product.groups = shape.groups;
  product.panels = {shape.volume() * shape.group_inputs(), shape.group_outputs(), config.blocking.width};
  const bool planar = config.algorithm == Algorithm::planar;  // a tap is a row of the kernel in a channel
  product.taps = planar ? shape.in_channels * shape.kernel[0] * shape.kernel[1] : shape.volume();
  product.element_size = element_size;
  product.blocking = config.blocking;
  product.is_narrow = problem.is_narrow;
  int64_t pixels = problem.batch;  // that are read of the input
  for (size_t d = 0; d < 3; ++d) pixels *= shape.kernel[d] == 1 ? problem.out[d] : problem.in[d];
  product.input_bytes = static_cast<double>(pixels * shape.in_channels * element_size);
  if (config.row_aligned) {  // tiles skip taps above and below the image
    product.row_unit = problem.out[2];
    product.inside = share_inside(shape, problem, 0) * share_inside(shape, problem, 1);
  }
  return gemm::predicted_us(target, product);
}

// Clocks of transforms: for each instruction of a vector, forth and back; at the end of a tile in each panel; of a tile
// of products. The weights were fitted, like those of gemm/tile_cost_tactic.cpp.
constexpr double kInputClocks = 2.2, kOutputClocks = 0.5, kFinishClocks = 157, kProductClocks = 6.4;

// Instructions on a vector of channels: loads, stores, additions.
struct Transforms {
  double input, output;
};
Transforms transforms_of(Algorithm algorithm) {
  return algorithm == Algorithm::winograd4 ? Transforms{228, 162} : Transforms{64, 44};
}

class WinogradCost {
 public:
  WinogradCost(const Target& target, const ConvProblem& problem, const ConvConfig& config)
      : shape_(problem.shape),
        core_(target),
        outputs_(winograd_outputs(config.algorithm)),
        products_((outputs_ + 2) * (outputs_ + 2)),
        transforms_(transforms_of(config.algorithm)),
        panels_{shape_.in_channels, shape_.out_channels, config.blocking.width} {
    const int64_t tiles = problem.batch * ceil_div(problem.out[1], outputs_) * ceil_div(problem.out[2], outputs_);
    const int cores = core_.cores(static_cast<double>(tiles * products_) * static_cast<double>(panels_.k * panels_.n));
    const bool columns = config.blocking.split_columns;
    tiles_ = columns ? tiles : ceil_div<int64_t>(tiles, cores);
    shared_panels_ = columns ? ceil_div<int64_t>(panels_.count(), cores) : panels_.count();
    blocks_ = ceil_div(tiles_, std::clamp<int64_t>(config.blocking.row_block, 1, std::max<int64_t>(tiles_, 1)));
  }

  double us() const {
    const int64_t last = panels_.count() > 1 ? shared_panels_ / panels_.count() : 0;
    const auto firsts = static_cast<double>(shared_panels_ - last), lasts = static_cast<double>(last);
    const int first_columns = panels_.stride(0), last_columns = panels_.stride(panels_.count() - 1);
    const double clocks = input_clocks() + firsts * panel_clocks(first_columns) + lasts * panel_clocks(last_columns);
    double weights = (firsts * first_columns + lasts * last_columns) * static_cast<double>(panels_.k * products_) * 4;
    if (!core_.stays_in_cache(weights)) weights *= static_cast<double>(blocks_);
    return core_.launch_us(clocks, weights, 0);
  }

 private:
  double input_clocks() const {
    const auto vectors = static_cast<double>(ceil_div<int64_t>(panels_.k, core_.lanes()));
    return static_cast<double>(tiles_) * (vectors * transforms_.input * kInputClocks + gemm::kTileClocks);
  }

  double panel_clocks(int columns) const {
    const double tiles = static_cast<double>(tiles_), blocks = static_cast<double>(blocks_);
    const double rows = tiles / blocks, products = static_cast<double>(products_);
    double clocks = 0;
    for (int c = 0; c < columns; c += core_.columns()) {
      const int vectors = ceil_div(std::min(core_.columns(), columns - c), core_.lanes());
      const double count = std::ceil(rows / core_.most_rows(vectors));
      const double tile = static_cast<double>(panels_.k) * core_.step(vectors, rows / count) + kProductClocks;
      clocks += blocks * products * (count * tile + rows * vectors * gemm::kPartialClocks);
    }
    const double vectors = ceil_div(columns, core_.lanes()), pixels = outputs_ * outputs_;
    return clocks +
           tiles * (vectors * (transforms_.output * kOutputClocks + pixels * gemm::kEndClocks) + kFinishClocks);
  }

  const ConvShape& shape_;
  const TileCost core_;
  const int outputs_;
  const int64_t products_;
  const Transforms transforms_;
  const gemm::Panels panels_;
  int64_t tiles_ = 0, shared_panels_ = 0, blocks_ = 1;  // of the busiest core
};

}  // namespace

double predicted_us(const Target& target, const ConvProblem& problem, const ConvConfig& config, int64_t element_size) {
  if (is_winograd(config.algorithm)) return WinogradCost(target, problem, config).us();
  return direct_us(target, problem, config, element_size);
}

}  // namespace lathe::cpu::conv
