// SPDX-License-Identifier: Apache-2.0
// Convolutions of 8-bit integers by constant weights: kernel "conv_integer".
#include "kernels/cpu/conv/conv_attributes_tactic.h"
#include "kernels/cpu/conv_integer/conv_integer.h"
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/gemm/integer_tactic.h"

namespace lathe::cpu {
namespace {

class ConvIntegerTactic final : public Tactic {
 public:
  std::string_view name() const override { return "conv_integer"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::convolution)) return "not a convolution";
    if (auto reason = refuse_integers(problem, 1)) return reason;
    const Operand& x = problem.inputs[0];
    if (x.rank() < 3 || x.rank() > 5) return fmt::format("{} spatial dimensions, 1 to 3 are handled", x.rank() - 2);
    if (auto reason = refuse_layout(problem.outputs[0], "the output")) return reason;
    if (x.strides[1] != Expr(1)) return "the input is not channels-last";
    if (problem.inputs[1].opt_dims[1] % 4 != 0) return "channels of a group are no multiple of 4";
    for (size_t d = 0; d < x.dims.size(); ++d)
      if (d != 1 && x.dims[d] != Expr(1) && mod(x.strides[d], 4) != Expr(0)) return "pixels do not start at fours";
    ConvAttributes attributes;
    return resolve(problem, attributes);
  }

  std::vector<Config> configs(const Problem& problem) const override {
    std::vector<Config> configs;
    conv::ConvProblem p;
    p.shape = shape_of(problem);
    const Dims& out = problem.outputs[0].opt_dims;
    p.batch = out[0];
    for (size_t i = 0; i < out.size() - 2; ++i) p.out[3 - (out.size() - 2) + i] = out[2 + i];
    for (const conv::Config& c : conv::candidates(p, problem.target.cores)) {
      if (c.algorithm != conv::Algorithm::direct) continue;
      const gemm::Blocking& b = c.blocking;
      Config config;
      config.values = conv::params(p.shape, c);
      add_types(problem, config.values);
      config.text = fmt::format("{}x{} rows={} k={} split={}{}", b.rows, b.width, b.row_block, b.k_block,
                                b.split_columns ? "columns" : "rows", c.row_aligned ? " aligned" : "");
      config.predicted_us = predicted_us(problem, configs.size());
      configs.push_back(std::move(config));
    }
    return configs;
  }

  Result<Emission> emit(const Problem& problem, const Config& config) const override {
    const conv::ConvShape shape = shape_of(problem);
    const int8_t* weights = problem.inputs[1].constant->as<int8_t>();
    const int64_t channels = 4 * shape.group_inputs(), volume = shape.volume();
    std::vector<int8_t> columns(static_cast<size_t>(shape.out_channels * channels * volume));
    for (int64_t o = 0; o < shape.out_channels; ++o)
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t t = 0; t < volume; ++t)
          columns[(o * volume + t) * channels + c] = weights[(o * channels + c) * volume + t];
    const gemm::Panels fours{volume * shape.group_inputs(), shape.group_outputs(),
                             static_cast<int>(config.values[conv::kWidthParam])};
    return emit_integers(problem, config, "conv_integer", fours, shape.groups, columns.data());
  }

 private:
  // Input channels in fours.
  static conv::ConvShape shape_of(const Problem& problem) {
    ConvAttributes a;
    resolve(problem, a);  // refuse() has seen to it that this works
    const Dims& w = problem.inputs[1].opt_dims;
    return {a.spatial, a.groups, w[1] / 4 * a.groups, w[0], a.kernel, a.stride, a.dilation, a.pad};
  }
};

}  // namespace

const Tactic& conv_integer_tactic() {
  static const ConvIntegerTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
