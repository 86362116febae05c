// SPDX-License-Identifier: Apache-2.0
#include "ir/known_content.h"

#include <map>

#include "ops/rules.h"

namespace lathe::ir {
namespace {

constexpr int64_t kMaxFolded = 4096;  // elements

// Content of small values, by evaluating what makes them; each value is visited once.
class Folder {
 public:
  std::optional<Tensor> fold(const Value* value, int depth = 0) {
    if (const auto done = done_.find(value); done != done_.end()) return done->second;
    return done_[value] = compute(value, depth);
  }

 private:
  std::optional<Tensor> compute(const Value* value, int depth) {
    if (const Tensor* tensor = value->constant()) return *tensor;
    const std::optional<Dims> dims = as_constant(value->shape());
    if (!dims || checked_volume(*dims).value_or(INT64_MAX) > kMaxFolded) return std::nullopt;
    if (is_integral(value->dtype()))
      if (Result<std::optional<Tensor>> inferred = inferred_content(*value); inferred && *inferred) return *inferred;
    const Node* node = value->producer();
    if (!node || node->has_trait(kFresh | kControlFlow) || depth > 200) return std::nullopt;
    std::vector<Tensor> inputs;
    for (const Value* input : node->inputs()) {
      std::optional<Tensor> tensor = input ? fold(input, depth + 1) : Tensor();
      if (!tensor) return std::nullopt;
      inputs.push_back(std::move(*tensor));
    }
    Result<std::vector<Tensor>> outputs = run_op(node->attributes(), inputs, node->num_outputs());
    return outputs ? std::optional((*outputs)[value->index()]) : std::nullopt;
  }

  std::map<const Value*, std::optional<Tensor>> done_;
};

}  // namespace

Result<std::optional<Tensor>> inferred_content(const Value& value, std::span<const int64_t> symbols) {
  const auto numbers = [&](const std::vector<Expr>& from) {
    std::optional<Ints> result(std::in_place);
    for (const Expr& each : from) {
      const std::optional<int64_t> number = each.evaluate(symbols);
      if (!number) return std::optional<Ints>();
      result->push_back(*number);
    }
    return result;
  };
  const std::optional<Ints> dims = numbers(value.shape());
  const std::optional<Ints> values = value.elements() ? numbers(*value.elements()) : std::nullopt;
  if (!dims || !values || checked_volume(*dims) != static_cast<int64_t>(values->size())) return std::optional<Tensor>();
  LATHE_ASSIGN(Tensor tensor, Tensor::allocate(value.dtype(), *dims));
  from_ints(*values, tensor);
  return std::optional<Tensor>(std::move(tensor));
}

std::optional<Tensor> known_content(const Value& value) { return Folder().fold(&value); }

}  // namespace lathe::ir
