// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <algorithm>

namespace lathe::plan {
namespace {

std::string_view name_of(BlockKind kind) {
  switch (kind) {
    case BlockKind::loop:
      return "loop";
    case BlockKind::branch:
      return "branch";
    case BlockKind::call:
      return "call";
  }
  return "block";
}

}  // namespace

bool Plan::streams_weights() const {
  return std::ranges::any_of(metadata, [](const auto& pair) { return pair.first == kWeightStreamingKey; });
}

uint32_t Plan::auxiliary_streams() const {
  uint32_t most = 0;
  for (const Step& step : steps) most = std::max(most, step.stream);
  return most;
}

bool Plan::is_stripped() const {
  return std::any_of(constants.begin(), constants.end(), [](const Constant& constant) { return constant.stripped; });
}

uint64_t Plan::stripped_bytes() const {
  uint64_t bytes = 0;
  for (const Constant& constant : constants) bytes += constant.stripped ? constant.bytes : 0;
  return bytes;
}

std::string_view Step::kind() const {
  static constexpr std::string_view kNames[] = {"host kernel", "launches", "copy", "evaluation"};
  static_assert(std::size(kNames) + 2 == std::variant_size_v<Work>);
  if (const auto* block = std::get_if<Block>(&work)) return name_of(block->kind);
  return is<PluginCall>() ? "plugin" : kNames[work.index()];
}

std::string_view Step::kernel() const {
  if (const auto* host = std::get_if<HostKernel>(&work)) return host->kernel;
  if (const auto* launches = std::get_if<DeviceLaunches>(&work)) return launches->kernel;
  return is<Block>() || is<PluginCall>() ? kind() : "eval";
}

std::string_view Step::program() const {
  if (const auto* host = std::get_if<HostKernel>(&work)) return host->program;
  if (const auto* launches = std::get_if<DeviceLaunches>(&work)) return launches->program;
  return "";
}

}  // namespace lathe::plan
