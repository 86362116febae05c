// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/gemm/normalized_tactic.h"

#include <algorithm>

#include "base/divide.h"
#include "kernels/axes_tactic.h"
#include "kernels/cuda/gemm/epilogue_tactic.h"
#include "kernels/cuda/match.h"

namespace lathe::cuda::gemm {
namespace {

constexpr int64_t kWidth = 4;  // neighbours that a thread has
constexpr int64_t kMostThreads = 256, kMostColumns = 4096;

// The normalisation alone, as its tactic would see it.
Problem alone(const Problem& problem, const std::vector<Operand>& vectors) {
  Problem normalization;
  normalization.attributes = problem.outputs.back().normalization;
  normalization.inputs = {problem.outputs[0]};
  normalization.inputs.insert(normalization.inputs.end(), vectors.begin(), vectors.end());
  return normalization;
}

std::optional<std::string> refuse_rows(const Problem& problem, const std::optional<RowNormalization>& rows) {
  const Operand& out = problem.outputs[0];
  if (!problem.is(OpKind::matmul) || problem.pairs || !out.reassociation.empty() || problem.inputs[0].rank() < 2)
    return "normalised results of another order";
  if (problem.inputs[1].rank() != 2) return "normalised results of several matrices";
  const auto lies_by_rows = [&](const Operand& each) { return unit_dim(each) + 1 == out.rank(); };
  if (!rows || rows->by_channel || rows->first_axis + 1 != out.rank() ||
      !std::ranges::all_of(problem.outputs, lies_by_rows))
    return "results are normalised along other rows";
  const bool is_half = out.dtype == DType::f16 || out.dtype == DType::bf16;
  if (!is_half || problem.inputs[0].dtype != out.dtype) return "normalised results that are no floats of 16 bits";
  const int64_t columns = out.dims.back().as_constant().value_or(0);
  if (columns == 0 || columns % (2 * kWidth) != 0 || columns > kMostColumns)
    return "normalised results of another number of columns";
  return std::nullopt;
}

// The object that the rows come from, as text.
std::string rows_to_normalize(Source& source, const Ending& e, int64_t splits) {
  if (!e.keeps_sums(splits)) return "gemm::WrittenRows<C>{C_}";
  source.fusion(e.problem, e.first_operand);
  source.workspace("partials", 0, accumulator_type(e.dtype));
  const std::string_view written = e.normalization->beside ? "C" : "Absent",
                         object = e.normalization->beside ? "C_" : "{}";
  return fmt::format("gemm::SummedRows<{}, Fusion, {}>{{partials, {}, {}, fusion_, {}}}", splits, written,
                     source.number(e.m), source.number(partial_pitch(e)), object);
}

}  // namespace

std::optional<std::string> take_normalization(Problem& problem, std::optional<ResultNormalization>& out) {
  if (!problem.result_normalization()) return std::nullopt;
  const auto first = problem.operands.begin() + (problem.program.num_inputs - 1);
  const std::vector<Operand> vectors(first, problem.operands.end());
  problem.operands.erase(first, problem.operands.end());
  const std::optional<RowNormalization> rows = row_normalization(alone(problem, vectors));
  if (auto reason = refuse_rows(problem, rows)) return reason;
  problem.outputs.back().normalization = nullptr;
  out = ResultNormalization{statistic_of(*rows), vectors, problem.outputs.back(), problem.outputs.size() > 1};
  problem.outputs.resize(1);
  return std::nullopt;
}

void add_normalization(const Ending& e, int64_t splits, Emission& emission) {
  const auto& [statistic, vectors, out, beside] = *e.normalization;
  const int64_t columns = *e.n.as_constant();
  const int64_t threads = std::min(kMostThreads, round_up(columns / kWidth, 32));
  Source source("gemm/normalized_sums.cuh");
  if (beside) source.output(0, e.problem.outputs[0], "C");
  source.output(beside ? 1 : 0, out, "Y");
  const std::string rows = rows_to_normalize(source, e, splits);
  std::string types, objects;
  for (size_t i = 0; i < 2; ++i) {
    const std::string_view name = i == 0 ? "Scale" : "Bias", separator = i == 0 ? ", " : "";
    const bool is_there = i < vectors.size();
    if (is_there) source.input(e.first_operand + e.problem.operands.size() + i, broadcast(vectors[i], out), name);
    types += fmt::format("{}{}", is_there ? name : "Absent", separator);
    objects += fmt::format("{}{}", is_there ? fmt::format("{}_", name) : "{}", separator);
  }
  const std::string call = fmt::format("gemm::normalize_results<{}, {}>({}, Y_, {}{{{}}}, Affine<{}>{{{}}});", threads,
                                       columns, rows, statistic.type, statistic.members, types, objects);
  const auto shared = static_cast<uint32_t>(threads / 32) * statistic.state_bytes;
  emission.launches.push_back(source.finish(call, {e.m, 1, 1}, static_cast<uint32_t>(threads), shared));
}

}  // namespace lathe::cuda::gemm
