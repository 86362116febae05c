// SPDX-License-Identifier: Apache-2.0
// Transposed convolution, phase by phase: kernel "deconv".
#include <algorithm>

#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/deconv/deconv.h"

namespace lathe::cpu {
namespace {

int64_t value_at(const Ints& values, size_t i, int64_t fallback) { return i < values.size() ? values[i] : fallback; }

// The kernel's shape, or a reason in words.
std::optional<std::string> resolve(const Problem& problem, conv::ConvShape& shape) {
  const auto& attrs = problem.attrs<DeconvolutionAttrs>();
  const Operand &x = problem.inputs[0], &w = problem.inputs[1];
  shape.spatial = x.rank() - 2;
  shape.groups = attrs.groups;
  shape.in_channels = w.opt_dims[0];
  shape.out_channels = w.opt_dims[1] * attrs.groups;
  const size_t spatial = static_cast<size_t>(shape.spatial), lead = 3 - spatial;
  for (size_t i = 0; i < spatial; ++i) {
    const size_t d = lead + i;
    shape.kernel[d] = w.opt_dims[2 + i];
    shape.stride[d] = value_at(attrs.stride, i, 1);
    shape.dilation[d] = value_at(attrs.dilation, i, 1);
    shape.pad[d] = value_at(attrs.pads_begin, i, 0);
    if (attrs.padding_mode == PaddingMode::explicit_round_down && attrs.output_shape.empty()) continue;
    // The padding follows from the output's extent, as the op's rule says.
    const auto in = x.dims[2 + i].as_constant(), out = problem.outputs[0].dims[2 + i].as_constant();
    if (!in || !out) return "the padding depends on a dynamic dimension";
    const int64_t full = (*in - 1) * shape.stride[d] + (shape.kernel[d] - 1) * shape.dilation[d] + 1 +
                         value_at(attrs.output_padding, i, 0);
    const int64_t total = std::max<int64_t>(full - *out, 0);
    shape.pad[d] = attrs.padding_mode == PaddingMode::same_upper ? total / 2 : total - total / 2;
  }
  if (deconv::phase_count(shape) > 64) return "a stride of more than 64 phases";
  return std::nullopt;
}

class DeconvTactic final : public Tactic {
 public:
  std::string_view name() const override { return "deconv"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::deconvolution)) return "not a transposed convolution";
    if (auto reason = refuse_non_f32(problem)) return reason;
    const Operand& x = problem.inputs[0];
    if (x.rank() < 3 || x.rank() > 5) return fmt::format("{} spatial dimensions, 1 to 3 are handled", x.rank() - 2);
    if (!problem.inputs[1].constant) return "the weights are not constant";
    if (auto reason = refuse_layout(x, "the input")) return reason;
    if (auto reason = refuse_layout(problem.outputs[0], "the output")) return reason;
    conv::ConvShape shape;
    return resolve(problem, shape);
  }

  std::vector<Config> configs(const Problem& problem) const override {
    conv::ConvShape shape;
    resolve(problem, shape);  // refuse() has seen to it that this works
    int64_t rows = 1;
    for (size_t d = 0; d < problem.inputs[0].opt_dims.size(); ++d)
      if (d != 1) rows *= problem.inputs[0].opt_dims[d];
    std::vector<Config> configs;
    for (const gemm::Blocking& blocking : deconv::candidates(shape, rows, problem.target.cores)) {
      Config config;
      config.values = deconv::params(shape, blocking);
      config.text =
          fmt::format("{}x{} split={}", blocking.rows, blocking.width, blocking.split_columns ? "columns" : "rows");
      config.predicted_us = cpu::predicted_us(problem, configs.size());
      configs.push_back(std::move(config));
    }
    return configs;
  }

  Result<Emission> emit(const Problem& problem, const Config& config) const override {
    conv::ConvShape shape;
    resolve(problem, shape);
    const auto& p = config.values;
    const gemm::Blocking blocking{static_cast<int>(p[16]), static_cast<int>(p[17]), p[18], p[19], p[20] != 0};
    Emission emission;
    emission.kernel = "deconv";
    emission.params = config.values;
    emission.inputs = {{StepInput::input, 0}, {StepInput::packed, 0}};
    for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
    const int64_t floats = deconv::packed_floats(shape, blocking);
    LATHE_ASSIGN(Tensor packed, Tensor::allocate(DType::f32, {floats}));
    deconv::pack_weights(shape, blocking, problem.inputs[1].constant->as<float>(),
                         {packed.mutable_as<float>(), static_cast<size_t>(floats)});
    emission.packed.push_back(std::move(packed));
    return emission;
  }
};

}  // namespace

const Tactic& deconv_tactic() {
  static const DeconvTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
