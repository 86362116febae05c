// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"
#include "ops/plugin.h"

namespace lathe::api {

// Puts conversions around a plugin's node, whose operands are to lie in these formats (data inputs, then outputs).
class PluginReformat {
 public:
  PluginReformat(ir::Graph& graph, ir::Node& node, PluginFormats formats)
      : graph_(graph), node_(node), formats_(std::move(formats)) {}

  // Gives the node its attributes. Where some format is not row-major, another node takes its place.
  Result<> apply(PluginAttrs attrs);

 private:
  Result<> convert_output(ir::Node& made, size_t i);

  ir::Graph& graph_;
  ir::Node& node_;
  PluginFormats formats_;
};

}  // namespace lathe::api
