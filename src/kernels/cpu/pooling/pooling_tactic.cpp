// SPDX-License-Identifier: Apache-2.0
// Maximum and average pooling: kernel "pooling".
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "ops/rules.h"

namespace lathe::cpu {
namespace {

class PoolingTactic final : public Tactic {
 public:
  std::string_view name() const override { return "pooling"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::pooling)) return "not a pooling";
    if (auto reason = refuse_non_f32(problem)) return reason;
    const auto& attrs = problem.attrs<PoolingAttrs>();
    if (attrs.op == PoolingOp::lp) return "lp pooling";
    const int rank = problem.inputs[0].rank();
    if (rank < 3 || rank > 5) return fmt::format("{} spatial dimensions, 1 to 3 are handled", rank - 2);
    std::vector<int64_t> params;
    return resolve(problem, params);
  }

  std::vector<Config> configs(const Problem& problem) const override { return only_config(problem); }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    Emission emission;
    emission.kernel = "pooling";
    resolve(problem, emission.params);
    emission.inputs = {{StepInput::input, 0}};
    for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
    return emission;
  }

 private:
  // The kernel's params; a reason in words when SAME padding depends on a dimension that is not known yet.
  static std::optional<std::string> resolve(const Problem& problem, std::vector<int64_t>& params) {
    const auto& attrs = problem.attrs<PoolingAttrs>();
    const auto get = [](const Ints& values, size_t i, int64_t fallback) {
      return i < values.size() ? values[i] : fallback;
    };
    params = {attrs.op == PoolingOp::max ? 0 : 1, problem.inputs[0].rank() - 2, attrs.count_include_pad};
    for (size_t i = 0; i + 2 < problem.inputs[0].dims.size(); ++i) {
      const int64_t kernel = get(attrs.window, i, 1), stride = get(attrs.stride, i, 1),
                    dilation = get(attrs.dilation, i, 1);
      int64_t begin = get(attrs.pads_begin, i, 0), end = get(attrs.pads_end, i, 0);
      if (attrs.padding_mode == PaddingMode::same_upper || attrs.padding_mode == PaddingMode::same_lower) {
        const Window window =
            window_rule(problem.inputs[0].dims[2 + i], kernel, stride, dilation, begin, end, attrs.padding_mode);
        if (!window.pad_begin.is_constant() || !window.pad_end.is_constant())
          return "SAME padding depends on a dynamic dimension";
        begin = *window.pad_begin.as_constant();
        end = *window.pad_end.as_constant();
      }
      for (int64_t value : {kernel, stride, begin, end, dilation}) params.push_back(value);
    }
    return std::nullopt;
  }
};

}  // namespace

const Tactic& pooling_tactic() {
  static const PoolingTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
