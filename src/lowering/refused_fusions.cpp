// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>

#include "lowering/expression_builder.h"
#include "lowering/region.h"

namespace lathe {

using ir::Node;

std::vector<std::string> RefusedFusions::reasons(const Node& node) const {
  const auto it = reasons_.find(&node);
  return it == reasons_.end() ? std::vector<std::string>() : it->second;
}

void RefusedFusions::give_up(const Node& node, const std::vector<std::string>& reasons) {
  reasons_.emplace(&node, reasons);
  alone_.insert(&node);
}

bool RefusedFusions::isolate(const Region& region, const std::function<bool(const Node&)>& which) {
  const size_t before = alone_.size();
  const bool has_others =
      std::any_of(region.nodes.begin(), region.nodes.end(), [&](Node* node) { return !which(*node); });
  for (const Node* node : region.nodes)
    if (has_others && which(*node)) alone_.insert(node);
  return alone_.size() > before;
}

void RefusedFusions::add(const Region& region, const std::vector<std::string>& reasons) {
  const bool is_kernel = region.kind == RegionKind::kernel;
  const auto note = [&](std::string what) { notes_.push_back({region.root, std::move(what), reasons}); };
  if (!region.producers.empty()) {
    const size_t input = region.producers.rbegin()->first;
    producers_.emplace(region.root, input);
    note(fmt::format("input {} is written before it is read", input));
  } else if (is_kernel && region.moves_elements()) {
    movements_.insert(region.root);
    note("what moves its result is a step of its own");
  } else if (is_kernel && region.nodes.size() > 1) {
    epilogues_.insert(region.root);
    note("what follows it is a step of its own");
  } else if (isolate(region, [](const Node& node) { return node.is(OpKind::pad); })) {
    note("padding is a step of its own");
  } else if (isolate(region, moves_elements)) {
    note("what moves elements is a step of its own");
  } else {
    alone_.insert(region.nodes.begin(), region.nodes.end());
    note("each node of its step stands alone");
  }
}

}  // namespace lathe
