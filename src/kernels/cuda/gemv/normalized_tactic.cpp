// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemv/normalized_tactic.h"

#include "base/divide.h"
#include "kernels/axes_tactic.h"
#include "kernels/cuda/gemv/stream_tactic.h"
#include "kernels/cuda/normalization/normalization.h"

namespace lathe::cuda {

const Tactic& normalization_tactic();

namespace gemv {
namespace {

constexpr int64_t kVector = 8;  // elements that are read at once

// The normalisation as a step of its own, whose rows begin at vectors.
Problem normalization_alone(const Problem& product) {
  Problem alone;
  alone.symbols = product.symbols;
  alone.target = product.target;
  Operand x = product.inputs[0];
  alone.attributes = std::exchange(x.normalization, nullptr);
  const std::vector<Operand> vectors = std::exchange(x.operands, {});
  alone.inputs = {x};
  alone.inputs.insert(alone.inputs.end(), vectors.begin(), vectors.end());
  Operand rows = x;
  rows.offset = 0;
  Expr stride = 1;
  int64_t opt_stride = 1;
  for (size_t d = x.dims.size(); d-- > 0;) {
    rows.strides[d] = stride, rows.opt_strides[d] = opt_stride;
    const bool is_last = d + 1 == x.dims.size();
    stride = stride * (is_last ? ceildiv(x.dims[d], kVector) * kVector : x.dims[d]);
    opt_stride *= is_last ? round_up(x.opt_dims[d], kVector) : x.opt_dims[d];
  }
  alone.outputs = {std::move(rows)};
  alone.program = {1, {}, {0}};
  return alone;
}

}  // namespace

std::optional<std::string> refuse_normalization(const Problem& problem) {
  if (problem.inputs.empty() || !problem.inputs[0].normalization) return std::nullopt;
  const Operand& x = problem.inputs[0];
  const Problem alone = normalization_alone(problem);
  const std::optional<RowNormalization> rows = row_normalization(alone);
  if (!problem.is(OpKind::matmul) || !x.reassociation.empty()) return "normalised rows of another order";
  if (!rows || rows->by_channel || rows->first_axis + 1 != x.rank() || !x.dims.back().is_constant())
    return "rows of another length are normalised";
  for (const Operand& vector : x.operands)
    if (!vector.weights || vector.dtype != x.dtype || vector.dims != Shape{x.dims.back()})
      return "rows are normalised by other than a constant vector of their type";
  if (const Matched matched = normalization_tactic().match(alone); !matched) return matched.error().reason;
  return std::nullopt;
}

NormalizedRows::NormalizedRows(const Problem& problem, size_t first_input)
    : problem_(problem), first_input_(first_input), k_(*problem.inputs[0].dims.back().as_constant()) {
  statistic_ = statistic_of(*row_normalization(normalization_alone(problem)));
  has_scale_ = !problem.inputs[0].operands.empty();
  has_bias_ = problem.inputs[0].operands.size() > 1;
}

int64_t NormalizedRows::shared_bytes(int64_t rows, int64_t panels, int64_t threads) const {
  const int64_t vectors = (has_scale_ ? 1 : 0) + (has_bias_ ? 1 : 0);
  return round_up(rows * (threads / 32) * statistic_.state_bytes, 16) + vectors * panels * kStreamPanel * 2;
}

double NormalizedRows::clocks(int64_t rows, int64_t threads) const {
  constexpr double kBarriers = 300, kEach = 6;  // estimated: of two barriers and a row's statistic; of an element
  return kBarriers + kEach * static_cast<double>(rows * ceil_div(k_, threads));
}

std::string NormalizedRows::reader(int64_t rows, int64_t threads) const {
  return fmt::format("NormalizedRows<{}, {}, {}, {}, {}, {}, {}>", device_type(problem_.inputs[0].dtype),
                     statistic_.type, has_scale_, has_bias_, k_, rows, threads);
}

std::string NormalizedRows::rows(Source& source, const std::string& plain) const {
  source.include("gemv/normalized_rows.cuh");
  const std::vector<Operand>& vectors = problem_.inputs[0].operands;
  if (has_scale_) source.input(first_input_, vectors[0], "Scale");
  if (has_bias_) source.input(first_input_ + 1, vectors[1], "Bias");
  return fmt::format("{{{}, {{{}}}, {}, {}}}", plain, statistic_.members, has_scale_ ? "Scale_.data" : "nullptr",
                     has_bias_ ? "Bias_.data" : "nullptr");
}

Operand NormalizedRows::written() const { return normalization_alone(problem_).outputs[0]; }

Expr NormalizedRows::pitch() const { return round_up(k_, kVector); }

Result<Expr> NormalizedRows::add_launches(const Expr& is_wanted, Emission& emission) const {
  constexpr int64_t kAlignment = 16;
  const Problem alone = normalization_alone(problem_);
  const Matched matched = normalization_tactic().match(alone);
  LATHE_ASSIGN(Emission own, (*matched)->emit((*matched)->configs()[0]));
  const Operand& rows = alone.outputs[0];
  Expr count = 1;
  for (size_t d = 0; d + 1 < rows.dims.size(); ++d) count *= rows.dims[d];
  Expr begin = ceildiv(emission.workspace, kAlignment) * kAlignment;
  const Expr end = begin + count * pitch() * static_cast<int64_t>(size_of(rows.dtype));
  for (SourceLaunch& each : own.launches) {
    each.launch.grid[0] *= is_wanted;
    for (LaunchArg& arg : each.launch.args) {
      if (arg.kind == LaunchArg::input && arg.index > 0)
        arg.index = static_cast<uint32_t>(first_input_ + arg.index - 1);
      else if (arg.kind == LaunchArg::workspace)
        arg.value += end;
      else if (arg.kind == LaunchArg::output)
        arg = {LaunchArg::workspace, 0, begin};
    }
    emission.launches.push_back(std::move(each));
  }
  emission.workspace = end + own.workspace;
  return begin;
}

double NormalizedRows::predicted_us() const {
  const Problem alone = normalization_alone(problem_);
  const Matched matched = normalization_tactic().match(alone);
  return (*matched)->configs()[0].predicted_us;
}

}  // namespace gemv
}  // namespace lathe::cuda
