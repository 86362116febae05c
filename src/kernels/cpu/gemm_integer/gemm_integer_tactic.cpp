// SPDX-License-Identifier: Apache-2.0
// Matrix products of 8-bit integers by constant weights: kernel "gemm_integer".
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/gemm/integer_tactic.h"

namespace lathe::cpu {
namespace {

class GemmIntegerTactic final : public Tactic {
 public:
  std::string_view name() const override { return "gemm_integer"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::matmul)) return "not a matrix product";
    const Operand& a = problem.inputs[0];
    const Operand& b = problem.inputs[1];
    const Operand& out = problem.outputs[0];
    if (auto reason = refuse_integers(problem, static_cast<size_t>(out.rank()) - 1)) return reason;
    if (problem.attrs<MatmulAttrs>().transpose_a || b.rank() != 2 || a.rank() < 2 || a.rank() != out.rank())
      return "not rows by a matrix";
    if (a.strides.back() != Expr(1) || (out.strides.back() != Expr(1) && out.dims.back() != Expr(1)))
      return "rows are not contiguous";
    if (b.opt_dims[problem.attrs<MatmulAttrs>().transpose_b ? 1 : 0] % 4 != 0) return "K is no multiple of 4";
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem& problem) const override {
    std::vector<Config> configs;
    const auto [k, n] = sizes(problem);
    int64_t rows = 1;
    for (size_t d = 0; d + 1 < problem.outputs[0].opt_dims.size(); ++d) rows *= problem.outputs[0].opt_dims[d];
    for (const gemm::Blocking& b : gemm::candidates({1, rows, n, k / 4}, problem.target.cores)) {
      Config config;
      config.values = {k, n, b.width, b.rows, b.row_block, b.k_block, b.split_columns ? 1 : 0};
      add_types(problem, config.values);
      config.text = fmt::format("{}x{} rows={} k={} split={}", b.rows, b.width, b.row_block, b.k_block,
                                b.split_columns ? "columns" : "rows");
      config.predicted_us = predicted_us(problem, configs.size());
      configs.push_back(std::move(config));
    }
    return configs;
  }

  Result<Emission> emit(const Problem& problem, const Config& config) const override {
    const auto [k, n] = sizes(problem);
    const int8_t* weights = problem.inputs[1].constant->as<int8_t>();
    std::vector<int8_t> columns;
    if (!problem.attrs<MatmulAttrs>().transpose_b) {
      columns.resize(static_cast<size_t>(k * n));
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < n; ++j) columns[j * k + i] = weights[i * n + j];
      weights = columns.data();
    }
    return emit_integers(problem, config, "gemm_integer", {k / 4, n, static_cast<int>(config.values[2])}, 1, weights);
  }

 private:
  static std::pair<int64_t, int64_t> sizes(const Problem& problem) {
    const Dims& dims = problem.inputs[1].opt_dims;
    return problem.attrs<MatmulAttrs>().transpose_b ? std::pair(dims[1], dims[0]) : std::pair(dims[0], dims[1]);
  }
};

}  // namespace

const Tactic& gemm_integer_tactic() {
  static const GemmIntegerTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
