// SPDX-License-Identifier: Apache-2.0
#include <ranges>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/kernel_check.h"

namespace lathe::cuda {
namespace {

// An error names the problem.
Result<> check_named(const Backend& backend, const Tactic& tactic, const Problem& problem, const Config& config,
                     const CheckOptions& options) {
  const Result<> checked = check_kernel(backend, tactic, problem, config, options);
  if (checked) return {};
  return fail(with_context(checked.error(), fmt::format("{} {}, {}", tactic.name(), config.text, to_text(problem))));
}

}  // namespace

Result<> check_first(const Backend& backend, const Tactic& tactic, const Problem& problem,
                     const CheckOptions& options) {
  if (const std::optional<std::string> refusal = refusal_of(tactic, problem))
    return fail(ErrorCode::invalid_argument, "{} refuses: {}", tactic.name(), *refusal);
  return check_named(backend, tactic, problem, configs_of(tactic, problem).at(0), options);
}

Result<> check_tactic(const Backend& backend, const Tactic& tactic, const Problem& problem,
                      const CheckOptions& options) {
  LATHE_TRY(check_first(backend, tactic, problem, options));
  for (const Config& config : configs_of(tactic, problem) | std::views::drop(1)) {
    const Result<> checked = check_named(backend, tactic, problem, config, options);
    // The tuner passes over what would spill registers, and so does this: only a real compiler counts them.
    if (!checked && checked.error().code != ErrorCode::kernel_spills) return checked;
  }
  return {};
}

}  // namespace lathe::cuda
