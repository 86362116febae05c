// SPDX-License-Identifier: Apache-2.0
// Convolution by batch-reduce GEMM or Winograd: kernel "conv".
#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/conv/conv_attributes_tactic.h"
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"

namespace lathe::cpu {
namespace {

class ConvTactic final : public Tactic {
 public:
  std::string_view name() const override { return "conv"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::convolution)) return "not a convolution";
    if (auto reason = refuse_non_f32(problem)) return reason;
    const Operand& x = problem.inputs[0];
    if (x.rank() < 3 || x.rank() > 5) return fmt::format("{} spatial dimensions, 1 to 3 are handled", x.rank() - 2);
    if (!problem.inputs[1].constant) return "the weights are not constant";
    if (auto reason = refuse_layout(problem.outputs[0], "the output")) return reason;
    if (is_planar(x)) {
      if (problem.attrs<ConvolutionAttrs>().groups != 1) return "row-major input with groups";
      const Ints& dilation = problem.attrs<ConvolutionAttrs>().dilation;
      if (!dilation.empty() && dilation.back() != 1) return "row-major input with dilation";
    } else if (auto reason = refuse_layout(x, "the input")) {
      return reason;
    }
    ConvAttributes attributes;
    return resolve(problem, attributes);
  }

  std::vector<Config> configs(const Problem& problem) const override {
    std::vector<Config> configs;
    const std::vector<conv::Config> candidates = conv::candidates(problem_of(problem), problem.target.cores);
    for (size_t i = 0; i < candidates.size(); ++i) {
      const conv::Config& c = candidates[i];
      const gemm::Blocking& b = c.blocking;
      static constexpr std::string_view kAlgorithms[] = {"direct", "planar", "winograd2", "winograd4"};
      Config config;
      config.values = conv::params(shape_of(problem), c);
      config.text = fmt::format("{} {}x{} rows={} k={} split={}{}", kAlgorithms[static_cast<size_t>(c.algorithm)],
                                b.rows, b.width, b.row_block, b.k_block, b.split_columns ? "columns" : "rows",
                                c.row_aligned ? " aligned" : "");
      config.predicted_us = cpu::predicted_us(problem, i);
      configs.push_back(std::move(config));
    }
    return configs;
  }

  Result<Emission> emit(const Problem& problem, const Config& config) const override {
    const conv::ConvShape shape = shape_of(problem);
    const conv::Config chosen = decode(config.values);
    Emission emission;
    emission.kernel = "conv";
    emission.params = config.values;
    emission.inputs = {{StepInput::input, 0}, {StepInput::packed, 0}};
    for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
    const int64_t floats = conv::packed_floats(shape, chosen);
    LATHE_ASSIGN(Tensor packed, Tensor::allocate(DType::f32, {floats}));
    conv::pack_weights(shape, chosen, problem.inputs[1].constant->as<float>(),
                       {packed.mutable_as<float>(), static_cast<size_t>(floats)});
    emission.packed.push_back(std::move(packed));
    return emission;
  }

 private:
  static bool is_planar(const Operand& x) {
    return x.dims[1] != Expr(1) && x.strides[1] != Expr(1) && x.strides.back() == Expr(1);
  }

  // The configuration part of Record.params, in the order that conv.h states.
  static conv::Config decode(const std::vector<int64_t>& params) {
    conv::Config config;
    config.algorithm = static_cast<conv::Algorithm>(params[16]);
    config.blocking.width = static_cast<int>(params[17]);
    config.blocking.rows = static_cast<int>(params[18]);
    config.blocking.row_block = params[19];
    config.blocking.k_block = params[20];
    config.blocking.split_columns = params[21] != 0;
    config.row_aligned = params[22] != 0;
    return config;
  }

  static conv::ConvShape shape_of(const Problem& problem) {
    ConvAttributes a;
    resolve(problem, a);  // refuse() has seen to it that this works
    const Dims& w = problem.inputs[1].opt_dims;
    return {a.spatial, a.groups, w[1] * a.groups, w[0], a.kernel, a.stride, a.dilation, a.pad};
  }

  static conv::ConvProblem problem_of(const Problem& problem) {
    conv::ConvProblem p;
    p.shape = shape_of(problem);
    const Dims& out = problem.outputs[0].opt_dims;
    p.batch = out[0];
    for (size_t i = 0; i < out.size() - 2; ++i) p.out[3 - (out.size() - 2) + i] = out[2 + i];
    p.planar_input = is_planar(problem.inputs[0]);
    return p;
  }
};

}  // namespace

const Tactic& conv_tactic() {
  static const ConvTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
