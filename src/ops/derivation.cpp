// SPDX-License-Identifier: Apache-2.0
#include "ops/derivation.h"

namespace lathe {

DerivationPtr Derivation::of_weights(uint32_t number) {
  auto leaf = std::make_shared<Derivation>();
  leaf->weights = number;
  return leaf;
}

DerivationPtr Derivation::of_constant(Tensor content) {
  auto leaf = std::make_shared<Derivation>();
  leaf->constant = std::move(content);
  return leaf;
}

DerivationPtr Derivation::of_packing(Packing packing, DerivationPtr source) {
  auto packed = std::make_shared<Derivation>();
  packed->packing = std::move(packing);
  packed->inputs = {std::move(source)};
  return packed;
}

Result<std::vector<Known>> compute(const Attributes& attributes, std::span<const Known> inputs, size_t num_outputs) {
  std::vector<Tensor> contents;
  bool is_derived = false;
  for (const Known& input : inputs) {
    contents.push_back(input.content);
    is_derived |= input.derivation != nullptr;
  }
  LATHE_ASSIGN(const std::vector<Tensor> results, run_op(attributes, contents, num_outputs));
  std::vector<DerivationPtr> sources;
  for (const Known& input : inputs)
    sources.push_back(input.derivation || !input.content.defined() || !is_derived
                          ? input.derivation
                          : Derivation::of_constant(input.content));
  const auto step = std::make_shared<const int>(0);
  std::vector<Known> known;
  for (size_t i = 0; i < results.size(); ++i) {
    known.push_back({results[i], nullptr});
    if (!is_derived) continue;
    auto derivation = std::make_shared<Derivation>();
    derivation->attributes = attributes.clone();
    derivation->inputs = sources;
    derivation->step = step;
    derivation->num_outputs = num_outputs;
    derivation->output = i;
    known.back().derivation = std::move(derivation);
  }
  return known;
}

}  // namespace lathe
