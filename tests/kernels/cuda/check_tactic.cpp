// SPDX-License-Identifier: Apache-2.0
#include <limits>

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

Result<> check_configs(const Backend& backend, const Tactic& tactic, const Problem& problem,
                       const CheckOptions& options, size_t count) {
  if (const std::optional<std::string> refusal = refusal_of(tactic, problem))
    return fail(ErrorCode::invalid_argument, "{} refuses: {}", tactic.name(), *refusal);
  Result<> last = fail(ErrorCode::invalid_argument, "{} has no configuration", tactic.name());
  size_t agree = 0;
  for (const Config& config : configs_of(tactic, problem)) {
    last = check_named(backend, tactic, problem, config, options);
    if (!last && !spills_registers(last)) return last;
    if (last && ++agree == count) return {};
  }
  return agree > 0 ? Result<>{} : last;
}

}  // namespace

bool spills_registers(const Result<>& checked) { return !checked && checked.error().code == ErrorCode::kernel_spills; }

Result<> check_first(const Backend& backend, const Tactic& tactic, const Problem& problem,
                     const CheckOptions& options) {
  return check_configs(backend, tactic, problem, options, 1);
}

Result<> check_tactic(const Backend& backend, const Tactic& tactic, const Problem& problem,
                      const CheckOptions& options) {
  return check_configs(backend, tactic, problem, options, std::numeric_limits<size_t>::max());
}

}  // namespace lathe::cuda
