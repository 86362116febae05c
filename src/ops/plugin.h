// SPDX-License-Identifier: Apache-2.0
// What the attributes of op `plugin` say of its results, in ops.def's notation.
#pragma once

#include "ops/op.h"
#include "shape/memory_format.h"

namespace lathe {

// A size that the plugin finds out: the result that holds it, and what it cannot exceed.
struct PluginSize {
  size_t output = 0;
  Expr upper;
};

// Expressions are over the op's own numbering of sizes.
struct PluginResults {
  std::vector<ValueType> types;
  std::vector<PluginSize> sizes;
};

Result<PluginResults> parse_plugin_results(const PluginAttrs& attrs);

// How each data input and each of the results lies in memory; null = row-major. What is of a format has the dimensions
// of its memory, and what the attributes say of sizes is of the network's order.
using PluginFormats = std::vector<std::optional<MemoryFormat>>;
Result<PluginFormats> parse_plugin_formats(const PluginAttrs& attrs, size_t results);
std::string formats_text(const PluginFormats& formats);

// The texts of PluginAttrs::results and PluginAttrs::sizes.
std::string results_text(std::span<const ValueType> types);
std::string sizes_text(std::span<const PluginSize> sizes);

}  // namespace lathe
