// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/node_context.h"

namespace lathe::onnx {

// A field of a standard plugin, as a word of plugins.def says it.
struct PluginField {
  char type = 0;  // as there: i, f, I, F or c
  bool is_required = false;
  size_t count = 0;  // of the numbers of a list; 0: any
  std::string_view name;
  bool has_range = false;                                   // if not, any number may be there
  double least = -std::numeric_limits<double>::infinity();  // which must be exceeded if `above`
  double most = std::numeric_limits<double>::max();
  bool above = false;

  bool is_single() const { return type == 'i' || type == 'f'; }
  bool takes(double number) const {
    return !has_range || ((above ? number > least : number >= least) && number <= most);
  }
  std::string range() const;  // in words
};

std::vector<PluginField> to_plugin_fields(std::string_view words);

// Refuses a node without a field that is required, or with numbers that a field does not take. Fields of another kind
// are refused by who reads them.
void check_fields(NodeContext& c, const std::vector<PluginField>& fields);

}  // namespace lathe::onnx
