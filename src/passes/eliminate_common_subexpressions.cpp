// SPDX-License-Identifier: Apache-2.0
// Equal operations on equal operands are done once. Equal constants become one; large ones are compared by content only
// when their first bytes agree.
#include <cstring>

#include "base/hash.h"
#include "passes/rewrite.h"

namespace lathe {
namespace {

constexpr size_t kSample = 256;  // bytes of a constant that its key covers

uint64_t key_of(const ir::Node& node) {
  Hasher hasher;
  hasher.add(static_cast<uint64_t>(node.kind())).add(node.num_outputs());
  if (node.is(OpKind::constant)) {
    const Tensor& value = *node.output()->content();
    hasher.add(static_cast<uint64_t>(value.dtype())).add(std::as_bytes(std::span(value.dims())));
    hasher.add(value.raw().first(std::min(value.bytes(), kSample)));
    return hasher.value();
  }
  hasher.add(hash(node.attributes()));
  for (const ir::Value* input : node.inputs()) hasher.add(reinterpret_cast<uint64_t>(input));
  return hasher.value();
}

bool same(const ir::Node& a, const ir::Node& b) {
  if (a.has_trait(kFresh | kControlFlow)) return false;
  if (a.kind() != b.kind() || a.num_outputs() != b.num_outputs() || a.inputs() != b.inputs()) return false;
  if (a.is(OpKind::constant))  // what follows from weights may differ once they are replaced
    return a.derivation == b.derivation && identical(*a.output()->content(), *b.output()->content());
  if (!equal(a.attributes(), b.attributes())) return false;
  // Each data-dependent op has symbols of its own; equal operands make them equal.
  return true;
}

bool replaceable(const ir::Node& by, const ir::Node& node) {
  for (size_t i = 0; i < node.num_outputs(); ++i)
    if (!may_stand_for(by.output(i), node.output(i))) return false;
  return true;
}

}  // namespace

Result<bool> eliminate_common_subexpressions(ir::Graph& graph, PassContext&) {
  bool changed = false;
  std::unordered_multimap<uint64_t, ir::Node*> seen;
  for (auto it = graph.nodes().begin(); it != graph.nodes().end();) {
    ir::Node* node = it->get();
    ++it;
    const uint64_t key = key_of(*node);
    ir::Node* twin = nullptr;
    const auto [first, last] = seen.equal_range(key);
    for (auto entry = first; entry != last && !twin; ++entry)
      if (same(*entry->second, *node) && replaceable(*entry->second, *node)) twin = entry->second;
    if (!twin) {
      seen.emplace(key, node);
      continue;
    }
    for (size_t i = 0; i < node->num_outputs(); ++i) LATHE_TRY(graph.replace_uses(node->output(i), twin->output(i)));
    graph.add_origin(twin, node->origin());
    graph.erase(node);
    changed = true;
  }
  return changed;
}

}  // namespace lathe
