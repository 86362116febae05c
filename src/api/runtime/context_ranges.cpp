// SPDX-License-Identifier: Apache-2.0
// The ranges that a context shows on a profiler's timeline.
#include "api/runtime/engine_inspector.h"
#include "api/runtime/execution_context.h"
#include "base/trace_ranges.h"

namespace lathe::api {

bool ExecutionContext::setNvtxVerbosity(nv::ProfilingVerbosity verbosity) noexcept {
  return guarded(changing(), "IExecutionContext::setNvtxVerbosity", [&]() -> Result<> {
    if (static_cast<uint32_t>(verbosity) >= static_cast<uint32_t>(nv::EnumMax<nv::ProfilingVerbosity>()))
      return fail(ErrorCode::invalid_argument, "there is no verbosity {}", static_cast<int>(verbosity));
    const nv::ProfilingVerbosity built = verbosity_of(core_->plan());
    if (verbosity == nv::ProfilingVerbosity::kDETAILED && built != verbosity)
      return fail(ErrorCode::invalid_argument,
                  "the engine was built with profiling verbosity {}: build it with kDETAILED", name_of(built));
    nvtx_ = verbosity;
    name_ranges();
    return {};
  });
}

void ExecutionContext::name_ranges() {
  const plan::Plan& plan = core_->plan();
  constexpr auto kNone = nv::ProfilingVerbosity::kNONE;
  ranges_.clear();
  if (nvtx_ != kNone && verbosity_of(plan) != kNone && has_trace_listener())
    for (const plan::Step& step : plan.steps)
      ranges_.push_back(nvtx_ == nv::ProfilingVerbosity::kDETAILED ? fmt::format("{} [{}]", step.name, step.kernel())
                                                                   : step.name);
  context_->hooks.ranges = ranges_.empty() ? nullptr : &ranges_;
}

}  // namespace lathe::api
