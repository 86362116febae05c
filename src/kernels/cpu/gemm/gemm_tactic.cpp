// SPDX-License-Identifier: Apache-2.0
// Matrix products: kernel "gemm".
#include <algorithm>

#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/gemm/gemm.h"

namespace lathe::cpu {
namespace {

class GemmTactic final : public Tactic {
 public:
  std::string_view name() const override { return "gemm"; }
  bool reads_parts(size_t input) const override { return input < 2; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::matmul)) return "not a matrix product";
    if (auto reason = refuse_non_f32(problem)) return reason;
    const Operand& a = problem.inputs[0];
    const Operand& b = problem.inputs[1];
    const Operand& out = problem.outputs[0];
    for (const Operand* operand : {&a, &b})
      if (std::any_of(operand->parts.begin(), operand->parts.end(), [](size_t count) { return count != 1; }))
        return "joined dimensions of an operand";
    if (a.rank() < 2 || b.rank() < 2) return "a vector operand";
    if (out.strides.back() != Expr(1) && out.dims.back() != Expr(1)) return "the output's rows are not contiguous";
    const Expr k = a.dims[a.dims.size() - (problem.attrs<MatmulAttrs>().transpose_a ? 2 : 1)];
    const Expr n = b.dims[b.dims.size() - (problem.attrs<MatmulAttrs>().transpose_b ? 2 : 1)];
    if (k == Expr(0) || n == Expr(0)) return "an empty dimension";
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem& problem) const override {
    std::vector<Config> configs;
    const gemm::GemmShape shape = shape_of(problem);
    for (const gemm::Blocking& b : gemm::candidates(shape, problem.target.cores))
      configs.push_back({fmt::format("{}x{} rows={} k={} split={}", b.rows, b.width, b.row_block, b.k_block,
                                     b.split_columns ? "columns" : "rows"),
                         gemm::params(shape.k, shape.n, is_packed(problem), batches(problem), b),
                         predicted_us(problem, configs.size())});
    return configs;
  }

  Result<Emission> emit(const Problem& problem, const Config& config) const override {
    const auto& attrs = problem.attrs<MatmulAttrs>();
    Emission emission;
    emission.kernel = "gemm";
    emission.params = config.values;
    emission.inputs = {{StepInput::input, 0, attrs.transpose_a}};
    if (is_packed(problem)) {
      const gemm::GemmShape shape = shape_of(problem);
      const Tensor& b = *problem.inputs[1].constant;
      const int width = static_cast<int>(config.values[4]);
      const int64_t floats = gemm::packed_floats(shape.k, shape.n, batches(problem), width);
      LATHE_ASSIGN(Tensor packed, Tensor::allocate(DType::f32, {floats}));
      const int64_t k_stride = attrs.transpose_b ? 1 : shape.n;
      const int64_t n_stride = attrs.transpose_b ? shape.k : 1;
      gemm::pack_weights(b.as<float>(), shape.k, shape.n, k_stride, n_stride, batches(problem), shape.k * shape.n,
                         width, {packed.mutable_as<float>(), static_cast<size_t>(floats)});
      emission.packed.push_back(std::move(packed));
      emission.inputs.push_back({StepInput::packed, 0});
    } else {
      emission.inputs.push_back({StepInput::input, 1, attrs.transpose_b});
    }
    for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
    return emission;
  }

 private:
  // Constant batches are packed when there is one for each output matrix, or one for all.
  static bool is_packed(const Problem& problem) {
    const Operand& b = problem.inputs[1];
    if (!b.constant) return false;
    if (b.rank() == 2) return true;
    const Shape& out = problem.outputs[0].dims;
    return b.dims.size() == out.size() && std::equal(b.dims.begin(), b.dims.end() - 2, out.begin());
  }

  static int64_t batches(const Problem& problem) {
    int64_t product = 1;
    if (is_packed(problem))
      for (size_t d = 0; d + 2 < problem.inputs[1].opt_dims.size(); ++d) product *= problem.inputs[1].opt_dims[d];
    return product;
  }

  static gemm::GemmShape shape_of(const Problem& problem) {
    const Dims& out = problem.outputs[0].opt_dims;
    const Dims& a = problem.inputs[0].opt_dims;
    gemm::GemmShape shape;
    shape.m = out[out.size() - 2];
    shape.n = out[out.size() - 1];
    shape.k = a[a.size() - (problem.attrs<MatmulAttrs>().transpose_a ? 2 : 1)];
    for (size_t d = 0; d + 2 < out.size(); ++d) shape.batch *= out[d];
    return shape;
  }
};

}  // namespace

const Tactic& gemm_tactic() {
  static const GemmTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
