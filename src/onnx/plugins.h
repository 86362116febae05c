// SPDX-License-Identifier: Apache-2.0
// Standard plugins of TensorRT, made from plugins.def.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/node_context.h"
#include "onnx/plugin_dims.h"

namespace lathe::onnx {

#define LATHE_PLUGIN(name, v2, v3, outputs, function, fields, replacement) void import_##function(NodeContext& c);
#include "onnx/plugins.def"

struct StandardPlugin {
  const char* name;
  int v2, v3;                // how many versions are of the V2 family, those from 1 on, and how many behind them of V3
  std::string_view outputs;  // as plugins.def says them
  void (*import)(NodeContext& c);
  std::string_view fields;       // as plugins.def says them
  std::string_view replacement;  // of a deprecated one
  int newest() const { return v2 + v3; }
  size_t outputs_of(int version) const;  // 0 where a field says how many
};
std::span<const StandardPlugin> standard_plugins();

// The version of the plugin that the node is, which import_standard_plugin() has found to be one.
int64_t plugin_version(NodeContext& c);

// Whether the product of these is at most `most`, so that what is made of fields fits in memory; else an error, in
// which `what` says of what there are so many.
bool require_product(NodeContext& c, std::string_view what, std::initializer_list<int64_t> factors, int64_t most);

// A constant of one dimension: the numbers of a field, which are a list or a tensor.
ir::Value* field_numbers(NodeContext& c, std::string_view field, DType type);

ir::Value* f32_constant(NodeContext& c, const std::vector<double>& values, const Dims& dims);

bool is_standard_plugin(std::string_view name);

// Of a plugin that TensorRT has and Lathe has not: its versions, and what can be exported in its place; else nothing.
std::optional<std::string> about_absent_plugin(std::string_view name);

// Adds a warning, once for each model, where TensorRT has deprecated the standard plugin.
void warn_of_deprecated(std::string_view plugin, std::vector<std::string>& warnings);

// Imports the node as the plugin of that name, which must be standard, in the version that its attribute plugin_version
// asks for (1 if none).
void import_standard_plugin(std::string_view name, NodeContext& c);

}  // namespace lathe::onnx
