// SPDX-License-Identifier: Apache-2.0
#include "ir/constants.h"

namespace lathe::ir {
namespace {

using Visit = std::function<void(const std::string& name, Value& constant, Where where)>;

void visit(const Graph& graph, Where where, std::unordered_map<std::string, int>& seen, const Visit& f) {
  for (const auto& node : graph.nodes()) {
    for (const auto& body : node->bodies()) visit(*body, Where::body, seen, f);
    if (!node->is(OpKind::constant)) continue;
    Value& constant = *node->output();
    const int count = ++seen[constant.name()];
    f(count == 1 ? constant.name() : fmt::format("{} #{}", constant.name(), count), constant, where);
  }
}

}  // namespace

void for_each_constant(const Graph& graph, const Visit& f) {
  std::unordered_map<std::string, int> seen;
  visit(graph, Where::network, seen, f);
}

}  // namespace lathe::ir
