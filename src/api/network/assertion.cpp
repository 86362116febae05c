// SPDX-License-Identifier: Apache-2.0
#include "api/network/assertion.h"

#include <algorithm>

#include "api/network/network_add.h"

namespace lathe::api {
namespace {

using Elements = std::vector<Expr>;

// Conditions as numbers: one holds where its number is at least 1. Symbolic contents of shape tensors know comparisons
// only where all sizes decide them alike, for "n = 8" is no polynomial of n.
std::optional<Elements> conditions_of(const ir::Value& value);

// An operand of a single element is read for each of the other's.
template <class Combine>
std::optional<Elements> pairwise(const std::optional<Elements>& a, const std::optional<Elements>& b,
                                 Combine&& combine) {
  if (!a || !b || a->empty() || b->empty()) return std::nullopt;
  const size_t count = std::max(a->size(), b->size());
  if ((a->size() != count && a->size() != 1) || (b->size() != count && b->size() != 1)) return std::nullopt;
  Elements result;
  for (size_t i = 0; i < count; ++i) result.push_back(combine((*a)[i % a->size()], (*b)[i % b->size()]));
  return result;
}

std::optional<Elements> numbers_of(const ir::Value& value) {
  return value.elements() ? std::optional(*value.elements()) : std::nullopt;
}

Expr distance(const Expr& a, const Expr& b) { return max(a - b, b - a); }
Expr negation(const Expr& condition) { return Expr(1) - condition; }

std::optional<Elements> conditions_of(ElementwiseOp op, const ir::Node& node) {
  const ir::Value &a = *node.input(0), &b = *node.input(1);
  const bool of_conditions = a.dtype() == DType::boolean;
  const auto join = [&](auto combine) {
    return of_conditions ? pairwise(conditions_of(a), conditions_of(b), combine) : std::nullopt;
  };
  const auto compare = [&](auto combine) {
    return of_conditions ? std::nullopt : pairwise(numbers_of(a), numbers_of(b), combine);
  };
  const auto differ = [](const Expr& x, const Expr& y) { return max(min(x, negation(y)), min(y, negation(x))); };
  switch (op) {
    case ElementwiseOp::logical_and:
      return join([](const Expr& x, const Expr& y) { return min(x, y); });
    case ElementwiseOp::logical_or:
      return join([](const Expr& x, const Expr& y) { return max(x, y); });
    case ElementwiseOp::logical_xor:
      return join(differ);
    case ElementwiseOp::equal:
      if (of_conditions) return join([&](const Expr& x, const Expr& y) { return negation(differ(x, y)); });
      return compare([](const Expr& x, const Expr& y) { return negation(distance(x, y)); });
    case ElementwiseOp::less:
      return compare([](const Expr& x, const Expr& y) { return y - x; });
    case ElementwiseOp::less_equal:
      return compare([](const Expr& x, const Expr& y) { return y - x + 1; });
    case ElementwiseOp::greater:
      return compare([](const Expr& x, const Expr& y) { return x - y; });
    case ElementwiseOp::greater_equal:
      return compare([](const Expr& x, const Expr& y) { return x - y + 1; });
    default:
      return std::nullopt;
  }
}

std::optional<Elements> conditions_of(const ir::Value& value) {
  if (value.elements()) return *value.elements();
  const ir::Node* node = value.producer();
  if (!node) return std::nullopt;
  if (node->is(OpKind::elementwise)) return conditions_of(node->attrs<ElementwiseAttrs>().op, *node);
  const ir::Value& input = *node->input(0);
  if (node->is(OpKind::cast) && input.dtype() != DType::boolean) {
    const std::optional<Elements> numbers = numbers_of(input);
    return pairwise(numbers, Elements{0}, distance);
  }
  // What leaves the elements and their order as they are.
  if (node->is(OpKind::identity) || node->is(OpKind::cast) || node->has_trait(kView)) return conditions_of(input);
  if (node->is(OpKind::unary) && node->attrs<UnaryAttrs>().op == UnaryOp::logical_not)
    return pairwise(conditions_of(input), Elements{1}, [](const Expr& x, const Expr& one) { return one - x; });
  return std::nullopt;
}

// For a condition that compares for equality, the two sides: an equation can narrow a symbol, as one of a shape rule
// does.
std::optional<std::vector<std::pair<Expr, Expr>>> equations_of(const ir::Value& value) {
  const ir::Node* node = value.producer();
  if (!node || !node->is(OpKind::elementwise) || node->attrs<ElementwiseAttrs>().op != ElementwiseOp::equal)
    return std::nullopt;
  std::vector<std::pair<Expr, Expr>> sides;
  if (!pairwise(numbers_of(*node->input(0)), numbers_of(*node->input(1)), [&](const Expr& a, const Expr& b) {
        sides.emplace_back(a, b);
        return Expr(1);
      }))
    return std::nullopt;
  return sides;
}

}  // namespace

void AssertionLayer::setMessage(const char* message) noexcept {
  guarded(entry(), "IAssertionLayer::setMessage", [&]() -> Result<> {
    if (!message) return in_layer({ErrorCode::invalid_argument, "the message is null; give an empty one", {}});
    message_ = message;
    return {};
  });
}

Result<std::vector<Constraint>> AssertionLayer::asserted() const {
  const ir::Value& condition = *in(0);
  if (condition.dtype() != DType::boolean)
    return in_layer({ErrorCode::type_mismatch,
                     fmt::format("the condition is {}, not bool; compare first", name_of(condition.dtype())),
                     {}});
  const std::string where =
      fmt::format("assertion '{}'{}", name(), message_.empty() ? "" : fmt::format(" (\"{}\")", message_));
  std::vector<Constraint> constraints;
  if (const auto equations = equations_of(condition)) {
    for (const auto& [a, b] : *equations) constraints.push_back({Relation::equal, a, b, where});
    return constraints;
  }
  const std::optional<Elements> conditions = conditions_of(condition);
  if (!conditions)
    return in_layer({ErrorCode::shape_unknown,
                     "the condition is no shape tensor that compares sizes: build it of shapes and constants by "
                     "comparisons and logical operations",
                     {}});
  for (const Expr& each : *conditions) constraints.push_back({Relation::at_most, 1, each, where});
  return constraints;
}

Result<std::vector<ir::Value*>> AssertionLayer::lower(LayerLowering&) {
  LATHE_TRY(asserted());
  return std::vector<ir::Value*>();
}

nv::IAssertionLayer* NetworkDefinition::addAssertion(nv::ITensor& condition, const char* message) noexcept {
  if (!message) return refuse<nv::IAssertionLayer>("INetworkDefinition::addAssertion");
  return add<AssertionLayer>("INetworkDefinition::addAssertion", {&condition}, message);
}

}  // namespace lathe::api
