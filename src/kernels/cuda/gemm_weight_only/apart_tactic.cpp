// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm_weight_only/apart_tactic.h"

#include <algorithm>

#include "base/divide.h"
#include "kernels/cuda/gemm/tile_cost_tactic.h"
#include "kernels/match_tactic.h"
#include "tuning/sizes.h"

namespace lathe::cuda::weight_only {
namespace {

constexpr int64_t kVector = 8;  // elements that are written at once

// The second factor as it is dequantised: K-major, each matrix behind the one before.
Operand wide_operand(const Operand& packed, DType dtype, bool transposed) {
  Operand wide;
  wide.dtype = dtype, wide.dims = packed.dims, wide.opt_dims = packed.opt_dims;
  const size_t rank = wide.dims.size(), n = rank - (transposed ? 2 : 1), k = rank - (transposed ? 1 : 2);
  wide.strides.resize(rank), wide.opt_strides.resize(rank);
  Expr stride = 1;
  int64_t opt_stride = 1;
  const auto put = [&](size_t d, int64_t multiple) {
    wide.strides[d] = stride, wide.opt_strides[d] = opt_stride;
    stride = stride * (multiple > 1 ? ceildiv(wide.dims[d], multiple) * multiple : wide.dims[d]);
    opt_stride *= round_up(wide.opt_dims[d], multiple);
  };
  put(k, kVector), put(n, 1);
  for (size_t d = rank - 2; d-- > 0;) put(d, 1);
  return wide;
}

}  // namespace

Apart::Apart(const Problem& problem, const PackedStream& weights, bool transposed, Matched (*product)(const Problem&))
    : weights_(weights), product_(product), wide_(problem) {
  wide_.inputs[1] = wide_operand(problem.inputs[1], problem.inputs[0].dtype, transposed);
}

int64_t Apart::wide_bytes() const {
  const PackedWeights& first = weights_.first();
  return weights_.matrices() * first.n() * round_up(first.k(), kVector) *
         static_cast<int64_t>(size_of(weights_.dtype()));
}

std::vector<Config> Apart::configs(int64_t rows) const {
  constexpr size_t kMostConfigs = 3;
  if (weights_.is_scalar() || rows <= weights_.tile_rows(1)) return {};
  const Matched product = product_(wide_);
  if (!product) return {};
  const auto elements =
      static_cast<double>(weights_.matrices()) * static_cast<double>(weights_.first().k() * weights_.first().n());
  const double bytes = elements * (weights_.element_bytes() + static_cast<double>(size_of(weights_.dtype())));
  const double dequantizing_us = wide_.target.launch_us + gemm::memory_us(bytes, wide_.target);
  std::vector<Config> configs;
  for (const Config& each : (*product)->configs())
    configs.push_back({.text = "apart " + each.text,
                       .predicted_us = each.predicted_us + dequantizing_us,
                       .choice = ApartChoice{each}});
  return best_first(std::move(configs), kMostConfigs);
}

SourceLaunch Apart::dequantizing(const Emission& emission, const Expr& begin) const {
  constexpr int64_t kWarps = 8;
  const PackedWeights& first = weights_.first();
  const int64_t slices = weights_.matrices() * weights_.slices();
  Source source("gemm_weight_only/dequantize.cuh");
  weights_.declare(source, emission);
  source.workspace("wide", begin, device_type(weights_.dtype()));
  const std::string call =
      fmt::format("weight_only::dequantize<{}, {}, {}, {}, {}>({}, {}, wide);", weights_.columns_type(),
                  device_type(weights_.dtype()), first.n(), first.k(), kWarps, weights_.argument(""), slices);
  return source.finish(call, {ceil_div(slices * weights_.panels(), kWarps), 1, 1}, static_cast<uint32_t>(kWarps * 32),
                       0);
}

Result<> Apart::add_launches(const ApartChoice& choice, const Expr& is_wanted, Emission& emission,
                             const std::optional<Expr>& rows) const {
  constexpr int64_t kAlignment = 16;
  const Expr begin = rows ? ceildiv(emission.workspace, kAlignment) * kAlignment : Expr(0);
  const Matched matched = product_(wide_);
  LATHE_ASSIGN(Emission product, (*matched)->emit(choice.product));
  std::vector<LaunchArg> places;  // of the product's inputs
  for (const StepInput& input : product.inputs) {
    const auto is_it = [&](const StepInput& each) { return each.kind == input.kind && each.index == input.index; };
    const auto place = std::ranges::find_if(emission.inputs, is_it) - emission.inputs.begin();
    if (input.kind == StepInput::input && input.index == 1)
      places.push_back({LaunchArg::workspace, 0, begin});
    else if (rows && input.kind == StepInput::input && input.index == 0)
      places.push_back({LaunchArg::workspace, 0, *rows});
    else
      places.push_back({LaunchArg::input, static_cast<uint32_t>(place), {}});
  }
  std::vector<SourceLaunch> launches = {dequantizing(emission, begin)};
  for (SourceLaunch& each : product.launches) {
    for (LaunchArg& arg : each.launch.args) {
      if (arg.kind == LaunchArg::input)
        arg = places[arg.index];
      else if (arg.kind == LaunchArg::workspace)
        arg.value += begin + wide_bytes();
    }
    launches.push_back(std::move(each));
  }
  for (SourceLaunch& each : launches) {
    each.launch.grid[0] *= is_wanted;
    emission.launches.push_back(std::move(each));
  }
  emission.workspace = max(emission.workspace, begin + (wide_bytes() + product.workspace) * is_wanted);
  return {};
}

std::optional<ManyRows> many_rows(const Problem& problem, const Expr& rows, int64_t wide_bytes,
                                  const std::function<std::vector<Config>(const Problem&)>& apart,
                                  const std::function<double(const Problem&)>& streamed_us) {
  constexpr int64_t kFirst = 65, kLast = 8192;  // two tiles of those that stream
  constexpr int64_t kTypical = 4;               // times as many as are needed
  constexpr int64_t kMostBytes = int64_t{256} << 20;
  if (wide_bytes > kMostBytes) return std::nullopt;
  for (int64_t count = kFirst; count <= kLast; count *= 2) {
    const std::optional<Problem> at = with_rows(problem, rows, count);
    if (!at) return std::nullopt;
    const std::vector<Config> configs = apart(*at);
    if (configs.empty() || configs[0].predicted_us > streamed_us(*at)) continue;
    const std::optional<Problem> typical = with_rows(problem, rows, count * kTypical);
    if (!typical) return std::nullopt;
    const std::vector<Config> best = apart(*typical);
    if (best.empty()) return std::nullopt;
    return ManyRows{best[0].as<ApartChoice>(), best[0].text, count - 1};
  }
  return std::nullopt;
}

}  // namespace lathe::cuda::weight_only
