// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/context_policies.h"

namespace lathe::api {

Result<MemoryPolicy> policy_of(nv::ExecutionContextAllocationStrategy strategy) {
  switch (strategy) {
    case nv::ExecutionContextAllocationStrategy::kSTATIC:
      return MemoryPolicy::largest;
    case nv::ExecutionContextAllocationStrategy::kON_PROFILE_CHANGE:
      return MemoryPolicy::by_profile;
    case nv::ExecutionContextAllocationStrategy::kUSER_MANAGED:
      return MemoryPolicy::user;
  }
  return fail(ErrorCode::invalid_argument, "there is no allocation strategy {}", static_cast<int>(strategy));
}

GraphPolicy graphs_of(const ContextSettings& settings) {
  if (!settings.graphs) return GraphPolicy::of_repeated_runs;
  return *settings.graphs == nv::CudaGraphStrategy::kDISABLED ? GraphPolicy::none : GraphPolicy::of_each_run;
}

SpecializationPolicy specialization_of(const ContextSettings& settings) {
  switch (settings.specialization) {
    case nv::DynamicShapesKernelSpecializationStrategy::kLAZY:
      return SpecializationPolicy::background;
    case nv::DynamicShapesKernelSpecializationStrategy::kEAGER:
      return SpecializationPolicy::at_once;
    case nv::DynamicShapesKernelSpecializationStrategy::kNONE:
      break;
  }
  return SpecializationPolicy::none;
}

void tell_settings(const ContextSettings& settings, bool is_host, Log& log) {
  if (is_host && settings.kernels)
    log.print(Severity::warning,
              "the runtime cache stays empty: nothing is compiled for a CPU while engines run on it");
  if (is_host && settings.graphs == nv::CudaGraphStrategy::kWHOLE_GRAPH_CAPTURE)
    log.print(Severity::warning, "CudaGraphStrategy::kWHOLE_GRAPH_CAPTURE has no effect: a CPU has no CUDA graphs");
  if (is_host && settings.specialization == nv::DynamicShapesKernelSpecializationStrategy::kEAGER)
    log.print(Severity::warning,
              "DynamicShapesKernelSpecializationStrategy::kEAGER has no effect: nothing is compiled for a CPU, whose "
              "kernels choose their loops when shapes are set");
  log.print(Severity::verbose,
            "context settings: allocation strategy {}, runtime cache {}, kernel specialization strategy {}, CUDA graph "
            "strategy {}",
            static_cast<int>(settings.allocation), settings.kernels ? "given" : "none",
            static_cast<int>(settings.specialization),
            static_cast<int>(settings.graphs.value_or(nv::CudaGraphStrategy::kDISABLED)));
}

}  // namespace lathe::api
