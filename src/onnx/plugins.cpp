// SPDX-License-Identifier: Apache-2.0
#include "onnx/plugins.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "onnx/plugin_field.h"
#include "ops/rules.h"

namespace lathe::onnx {
namespace {

constexpr StandardPlugin kPlugins[] = {
#define LATHE_PLUGIN(name, v2, v3, outputs, function, fields, replacement) \
  {#name, v2, v3, outputs, &import_##function, fields, replacement},
#include "onnx/plugins.def"
};

ir::Value* constant_of(NodeContext& c, const std::vector<double>& values, const Dims& dims, DType type) {
  Result<Tensor> tensor = Tensor::allocate(type, dims);
  if (tensor) from_doubles(values, *tensor);
  return c.constant(std::move(tensor));
}

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

bool require_product(NodeContext& c, std::string_view what, std::initializer_list<int64_t> factors, int64_t most) {
  int64_t product = 1;
  for (const int64_t factor : factors)
    if (__builtin_mul_overflow(product, factor, &product)) product = INT64_MAX;
  if (product > most) c.invalid("{}: {} are too many, expected {} or less", what, fmt::join(factors, " x "), most);
  return !c.failed();
}

ir::Value* field_numbers(NodeContext& c, std::string_view field, DType type) {
  if (const Attribute* found = c.attribute(field); found && found->kind == AttributeKind::tensor)
    return c.cast(c.reshape(c.constant(c.weight(to_tensor(*c.tensor(field)))), Ints{-1}), type);
  const std::vector<double> values = c.reals(field);
  return constant_of(c, values, {static_cast<int64_t>(values.size())}, type);
}

ir::Value* f32_constant(NodeContext& c, const std::vector<double>& values, const Dims& dims) {
  return constant_of(c, values, dims, DType::f32);
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
  check_fields(c, to_plugin_fields(row.fields));
  if (!c.failed()) row.import(c);
}

}  // namespace lathe::onnx
