// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/expert_gemm/expert_rows_tactic.h"

#include <algorithm>

#include "base/divide.h"
#include "kernels/cuda/match.h"
#include "shape/broadcast.h"
#include "tuning/work.h"

namespace lathe::cuda {
namespace {

constexpr uint32_t kSortThreads = 512;

}  // namespace

std::optional<std::string> describe(const Problem& problem, RoutedRows& rows) {
  const Operand &x = problem.inputs[0], &out = problem.outputs[0];
  if (!is_short_float(x.dtype)) return fmt::format("elements of type {}", name_of(x.dtype));
  if (out.rank() < 2) return "a single row";
  if (auto reason = gemm::refuse_pairs(problem)) return reason;
  const std::optional<int64_t> experts = problem.inputs[1].dims[0].as_constant();
  if (!experts || *experts == 0) return "no known number of matrices";
  if ((*experts + 1) * static_cast<int64_t>(sizeof(int32_t)) > problem.target.limits.shared_bytes)
    return "more experts than shared memory has room for their rows";
  rows.experts = *experts;
  rows.is_strict = problem.attrs<ExpertMatmulAttrs>().strict;
  Operand of_out = out;
  of_out.take_out_dim(out.dims.size() - 1);
  rows.ids = broadcast(problem.inputs[2], of_out);
  of_out.append_dim(x.dim(x.dims.size() - 1));
  rows.x = broadcast(x, of_out);
  rows.rows = 1;
  for (size_t d = 0; d + 1 < out.dims.size(); ++d) rows.rows *= out.dims[d];
  rows.opt_rows = static_cast<int64_t>(volume_of(Dims(out.opt_dims.begin(), out.opt_dims.end() - 1)));
  return std::nullopt;
}

int64_t RoutedRows::used() const { return std::clamp<int64_t>(opt_rows, 1, experts); }
int64_t RoutedRows::rows_of_each() const { return std::max<int64_t>(ceil_div(opt_rows, used()), 1); }

bool RoutedRows::may_be_few(int64_t tile) const {
  constexpr int64_t kLanes = 32;
  return opt_rows <= kFewRows && tile <= kLanes;
}

Expr RoutedRows::parts(const RowParts& by) const {
  return by.sorts ? min(rows, floordiv(rows, by.tile) + experts + 1) : rows;
}

std::string RoutedRows::find(Source& source, const RowParts& by, size_t ids, int64_t shared) const {
  if (by.sorts) {
    source.workspace("schedule", 0, "int32");
    return "expert_gemm::find_sorted(schedule, rows, number, part)";
  }
  source.input(ids, this->ids, "Ids");
  return fmt::format(
      "expert_gemm::find_among_few<{}, {}>(Ids_, rows, {}, number, reinterpret_cast<int*>(dynamic_shared() + {}), "
      "part)",
      by.tile, is_strict, experts, shared);
}

int64_t RoutedRows::shared_bytes(const RowParts& by) const {
  return by.sorts ? 0 : by.tile * static_cast<int64_t>(sizeof(int32_t));
}

void RoutedRows::add_sorting(const RowParts& by, size_t ids, const Expr& is_wanted, Emission& emission) const {
  if (!by.sorts) return;
  Source source("expert_gemm/expert_gemm.cuh");
  source.input(ids, this->ids, "Ids");
  source.workspace("schedule", 0, "int32");
  const std::string call = fmt::format("expert_gemm::sort_rows<{}, {}>(Ids_, {}, {}, schedule);", by.tile, is_strict,
                                       source.number(rows), experts);
  emission.launches.push_back(
      source.finish(call, {is_wanted, 1, 1}, kSortThreads, static_cast<uint32_t>((experts + 1) * sizeof(int32_t))));
  emission.workspace = (rows + 1 + 3 * parts(by)) * static_cast<int64_t>(sizeof(int32_t)) * is_wanted;
}

gemm::Ending RoutedRows::ending(const Problem& problem, size_t ids, const Expr& columns) const {
  const int last = problem.outputs[0].rank() - 1;
  gemm::Ending ending{problem, problem.inputs[0].dtype, last, rows, columns, 1, {}};
  ending.rows = [last](Source&) { return fmt::format("expert_gemm::PartRows<{}>{{part.order}}", last); };
  ending.header = "expert_gemm/expert_gemm.cuh";
  ending.first_operand = ids + 1;
  return ending;
}

}  // namespace lathe::cuda
