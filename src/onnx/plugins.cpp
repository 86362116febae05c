// SPDX-License-Identifier: Apache-2.0
#include "onnx/plugins.h"

#include <algorithm>

namespace lathe::onnx {
namespace {

struct PluginRow {
  std::string_view name;
  int newest;
  void (*run)(NodeContext& c);
};

constexpr PluginRow kPlugins[] = {
#define LATHE_PLUGIN(name, newest, function) {#name, newest, &import_##function},
#include "onnx/plugins.def"
};

const PluginRow* find_plugin(std::string_view name) {
  const auto* row =
      std::find_if(std::begin(kPlugins), std::end(kPlugins), [&](const auto& r) { return r.name == name; });
  return row == std::end(kPlugins) ? nullptr : row;
}

}  // namespace

bool is_standard_plugin(std::string_view name) { return find_plugin(name) != nullptr; }

void import_standard_plugin(std::string_view name, NodeContext& c) {
  const PluginRow& row = *find_plugin(name);
  const std::string version = c.string("plugin_version", "1");
  if (version.size() != 1 || version[0] < '1' || version[0] - '0' > row.newest)
    return c.unsupported("version {} of the plugin is unknown; versions 1 to {} are known", version, row.newest);
  if (const std::string space = c.string("plugin_namespace", ""); !space.empty())
    return c.unsupported("the plugin is of namespace '{}', but standard plugins are of none", space);
  row.run(c);
}

}  // namespace lathe::onnx
