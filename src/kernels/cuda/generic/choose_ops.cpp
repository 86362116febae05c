// SPDX-License-Identifier: Apache-2.0
// choose on the device, where one dimension differs.
#include "kernels/cuda/generic/counted_ops.h"
#include "kernels/cuda/generic/op_source.h"

namespace lathe::cuda {
namespace {

constexpr std::string_view kHeader = "generic/choose.cuh";

std::optional<size_t> only_difference(const Problem& problem) {
  std::optional<size_t> found;
  for (size_t d = 0; d < problem.inputs[1].dims.size(); ++d) {
    if (problem.inputs[1].dims[d] == problem.inputs[2].dims[d]) continue;
    if (found) return std::nullopt;
    found = d;
  }
  return found;
}

class ChooseTactic final : public CountedTactic {
 public:
  std::string_view name() const override { return "choose"; }
  bool takes(const Problem& problem) const override {
    return problem.is(OpKind::choose) && only_difference(problem).has_value();
  }
  Result<CountedEmission> emit(const Problem& problem) const override {
    CountedEmission counted;
    counted.output_dim = *only_difference(problem);
    const Expr yes = problem.inputs[1].dims[counted.output_dim], no = problem.inputs[2].dims[counted.output_dim];
    counted.count = max(yes, no);
    counted.found = {counted.count + 1};  // a count is no larger than its list
    {
      OpSource source(kHeader, problem, counted.find);
      const std::string condition = source.input(0);
      source.source().output(0, list_operand(counted.found[0]), "List");
      const auto number = [&](const Expr& expr) { return source.source().number(expr); };
      source.finish_blocks(fmt::format("choose_count({}, {}, {}, reinterpret_cast<long*>(List_.data) + {});", condition,
                                       number(yes), number(no), number(counted.count)),
                           1, 32, 0);
    }
    OpSource source(kHeader, problem, counted.write);
    const std::string condition = source.input(0), a = source.input(1, true), b = source.input(2, true);
    source.finish(fmt::format("choose({}, {}, {}, {});", condition, a, b, source.output(0, true)),
                  volume(problem.outputs[0].dims));
    return counted;
  }
};

}  // namespace

const CountedTactic& choose_tactic() {
  static const ChooseTactic tactic;
  return tactic;
}

}  // namespace lathe::cuda
