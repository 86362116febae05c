// SPDX-License-Identifier: Apache-2.0
// Kernel "random".
#include <bit>

#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "ops/random_range.h"

namespace lathe::cpu {
namespace {

class RandomTactic final : public Tactic {
 public:
  std::string_view name() const override { return "random"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::random)) return "no random numbers";
    if (!problem.program.is_identity()) return "this kernel has no epilogue";
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem& problem) const override { return only_config(problem); }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    const auto& attrs = problem.attrs<RandomAttrs>();
    const bool normal = attrs.op == RandomOp::normal;
    Emission emission;
    emission.kernel = "random";
    emission.params = {normal ? 1 : 0, std::bit_cast<int64_t>(attrs.a), std::bit_cast<int64_t>(attrs.b),
                       std::bit_cast<int64_t>(normal ? 0 : last_in_range(attrs)), random_digits(attrs.dtype)};
    emission.inputs = {{StepInput::input, 1}};
    return emission;
  }
};

}  // namespace

const Tactic& random_tactic() {
  static const RandomTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
