// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution: kernel "depthwise".
#include "kernels/cpu/conv/conv_attributes_tactic.h"
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/depthwise/depthwise.h"

namespace lathe::cpu {
namespace {

class DepthwiseTactic final : public Tactic {
 public:
  std::string_view name() const override { return "depthwise"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::convolution)) return "not a convolution";
    if (auto reason = refuse_non_f32(problem)) return reason;
    const Operand& x = problem.inputs[0];
    const Operand& w = problem.inputs[1];
    const int64_t groups = problem.attrs<ConvolutionAttrs>().groups;
    if (x.rank() < 3 || x.rank() > 5) return fmt::format("{} spatial dimensions, 1 to 3 are handled", x.rank() - 2);
    if (!w.constant) return "the weights are not constant";
    if (groups == 1 || w.dims[0] != Expr(groups) || w.dims[1] != Expr(1)) return "not one filter per channel";
    if (auto reason = refuse_layout(x, "the input")) return reason;
    if (auto reason = refuse_layout(problem.outputs[0], "the output")) return reason;
    ConvAttributes attributes;
    return resolve(problem, attributes);
  }

  std::vector<Config> configs(const Problem& problem) const override {
    std::vector<Config> configs;
    const depthwise::Shape shape = shape_of(problem);
    for (const depthwise::Config& c :
         depthwise::candidates(shape, problem.outputs[0].opt_dims.back(), problem.target.cores))
      configs.push_back({fmt::format("{} pixels split={}", c.pixels, c.split_channels ? "channels" : "pixels"),
                         depthwise::params(shape, c), predicted_us(problem, configs.size())});
    return configs;
  }

  Result<Emission> emit(const Problem& problem, const Config& config) const override {
    const depthwise::Shape shape = shape_of(problem);
    Emission emission;
    emission.kernel = "depthwise";
    emission.params = config.values;
    emission.inputs = {{StepInput::input, 0}, {StepInput::packed, 0}};
    for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
    const int64_t floats = depthwise::packed_floats(shape);
    LATHE_ASSIGN(Tensor packed, Tensor::allocate(DType::f32, {floats}));
    depthwise::pack_weights(shape, problem.inputs[1].constant->as<float>(),
                            {packed.mutable_as<float>(), static_cast<size_t>(floats)});
    emission.packed.push_back(std::move(packed));
    return emission;
  }

 private:
  static depthwise::Shape shape_of(const Problem& problem) {
    ConvAttributes a;
    resolve(problem, a);  // refuse() has seen to it that this works
    return {a.spatial, a.groups, a.kernel, a.stride, a.dilation, a.pad};
  }
};

}  // namespace

const Tactic& depthwise_tactic() {
  static const DepthwiseTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
