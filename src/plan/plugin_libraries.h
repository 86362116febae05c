// SPDX-License-Identifier: Apache-2.0
// Plugin libraries within a plan: a section of trust class host code. docs/plan_format.md.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lathe::plan {

inline constexpr std::string_view kPluginLibraries = "plugin_libraries";

struct PluginLibrary {
  std::string name;  // of its file, for messages
  std::vector<std::byte> content;
};

Result<std::vector<std::byte>> pack_plugin_libraries(std::span<const PluginLibrary> libraries);

// Of a section that a stranger wrote: at most 64 libraries of 64 MiB.
Result<std::vector<PluginLibrary>> unpack_plugin_libraries(std::span<const std::byte> section);

}  // namespace lathe::plan
