// SPDX-License-Identifier: Apache-2.0
// What the runtime does while an engine runs: names as the caller gives them, numbers as records and the interface have
// them.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "lathe_wrapper.h"

namespace lathe::wrapper {

// Numbers are those of DynamicShapesKernelSpecializationStrategy and CudaGraphStrategy.
enum class Specialization : int32_t { lazy, eager, none };
enum class GraphStrategy : int32_t { disabled, whole_graph_capture };

struct EngineSettings {
  std::string cache_path;
  Specialization specialization = Specialization::lazy;
  GraphStrategy graphs = GraphStrategy::disabled;
  // Whether sizes of inputs are open. True until the engine's inputs are known: what is captured is refused sooner.
  bool dynamic_inputs = true;

  bool runtime_captures() const { return graphs != GraphStrategy::disabled; }
};

// invalid_argument for a name that does not exist; the message lists those that do.
Result<EngineSettings> parse_settings(const RuntimeSettings& settings);
Result<Specialization> parse_specialization(std::string_view name);
RuntimeSettings settings_text(const EngineSettings& settings);

// By number, as records have them.
Result<Specialization> specialization_of(int64_t number);
Result<GraphStrategy> graph_strategy_of(int64_t number);

// Kernels that are compiled in the background for open sizes change between runs.
inline bool is_capturable(Specialization specialization, bool dynamic_inputs) {
  return specialization != Specialization::lazy || !dynamic_inputs;
}

// Whether the wrapper records graphs of its own.
inline bool records_graphs(bool asked_for, const EngineSettings& settings) {
  return asked_for && !settings.runtime_captures();
}

}  // namespace lathe::wrapper
