// SPDX-License-Identifier: Apache-2.0
#include "onnx/plugins.h"

#include <algorithm>

#include "ops/rules.h"

namespace lathe::onnx {
namespace {

constexpr StandardPlugin kPlugins[] = {
#define LATHE_PLUGIN(name, v2, v3, outputs, function, fields, replacement) \
  {#name, v2, v3, outputs, &import_##function, fields, replacement},
#include "onnx/plugins.def"
};

const StandardPlugin* find_plugin(std::string_view name) {
  const auto* row =
      std::find_if(std::begin(kPlugins), std::end(kPlugins), [&](const auto& r) { return r.name == name; });
  return row == std::end(kPlugins) ? nullptr : row;
}

}  // namespace

std::span<const StandardPlugin> standard_plugins() { return kPlugins; }

size_t StandardPlugin::outputs_of(int version) const {
  if (outputs.empty()) return 0;
  return static_cast<size_t>(outputs[outputs.size() == 1 ? 0 : static_cast<size_t>(version - 1)] - '0');
}

int64_t plugin_version(NodeContext& c) { return c.string("plugin_version", "1")[0] - '0'; }

bool has_fields(NodeContext& c, std::initializer_list<const char*> fields) {
  for (const char* field : fields)
    if (!c.has_attribute(field)) c.invalid("the plugin needs field '{}'", field);
  return !c.failed();
}

void require_rank(NodeContext& c, std::string_view what, const ir::Value* x, int64_t rank, std::string_view dims) {
  if (!c.failed() && x->rank() != rank)
    c.invalid("{} has {} dimensions, expected {}{}{}", what, x->rank(), rank, dims.empty() ? "" : ": ", dims);
}

ir::Value* field_numbers(NodeContext& c, std::string_view field, DType type) {
  if (const Attribute* found = c.attribute(field); found && found->kind == AttributeKind::tensor)
    return c.cast(c.reshape(c.constant(c.weight(to_tensor(*c.tensor(field)))), Ints{-1}), type);
  const std::vector<double> values = c.reals(field);
  Result<Tensor> tensor = Tensor::allocate(type, {static_cast<int64_t>(values.size())});
  if (tensor) from_doubles(values, *tensor);
  return c.constant(std::move(tensor));
}

bool is_standard_plugin(std::string_view name) { return find_plugin(name) != nullptr; }

std::optional<std::string> about_absent_plugin(std::string_view name) {
  struct Absent {
    std::string_view name;
    int versions;
    std::string_view instead;
  };
  static constexpr Absent kAbsent[] = {
#define LATHE_ABSENT_PLUGIN(name, versions, instead) {#name, versions, instead},
#include "onnx/plugins.def"
  };
  const auto* row = std::ranges::find(kAbsent, name, &Absent::name);
  if (row == std::end(kAbsent)) return std::nullopt;
  return fmt::format("TensorRT has it up to version {}, and Lathe has it not; export {} in its place", row->versions,
                     row->instead);
}

void warn_of_deprecated(std::string_view plugin, std::vector<std::string>& warnings) {
  const std::string_view replacement = find_plugin(plugin)->replacement;
  if (replacement.empty()) return;
  std::string text = fmt::format("plugin '{}' is deprecated, and works; export {}, in its place", plugin, replacement);
  if (std::find(warnings.begin(), warnings.end(), text) == warnings.end()) warnings.push_back(std::move(text));
}

void import_standard_plugin(std::string_view name, NodeContext& c) {
  const StandardPlugin& row = *find_plugin(name);
  const std::string version = c.string("plugin_version", "1");
  if (version.size() != 1 || version[0] < '1' || version[0] - '0' > row.newest())
    return c.unsupported("version {} of the plugin is unknown; versions 1 to {} are known, so export one of these",
                         version, row.newest());
  if (const std::string space = c.string("plugin_namespace", ""); !space.empty())
    return c.unsupported("the plugin is of namespace '{}', but standard plugins are of none", space);
  row.import(c);
}

}  // namespace lathe::onnx
