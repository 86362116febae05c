// SPDX-License-Identifier: Apache-2.0
// Computes constants of a plan from weights, as the plan says (plan::Refit): plain evaluations and packings.
#pragma once

#include <functional>
#include <unordered_map>

#include "ops/tensor.h"
#include "plan/plan.h"

namespace lathe {

// Whether numbers that a narrower type cannot hold are refused.
enum class RangeCheck : uint8_t { off, on };

// Of one plan, whose values are kept once they are computed. `operand` gives the bytes of a constant that stays. All
// must outlive it. Not thread-safe.
class ConstantDeriver {
 public:
  using ReadConstant = std::function<Result<Tensor>(const plan::RefitOperand& operand)>;
  // `weights`: by their number; undefined = not given.
  ConstantDeriver(const plan::Plan& plan, std::span<const Tensor> weights, ReadConstant read, RangeCheck check);

  // The bytes of constant `index`, which is derived from weights that are all given.
  Result<Tensor> derive(uint32_t index);

 private:
  Result<Tensor> value(uint32_t number);
  Result<> run(size_t step, uint32_t first);
  Result<std::vector<Tensor>> evaluate(const plan::RefitStep& step, std::span<const Tensor> inputs) const;

  const plan::Plan& plan_;
  std::span<const Tensor> weights_;
  ReadConstant read_;
  RangeCheck check_;
  std::vector<uint32_t> firsts_;  // by step: the number of its first output
  std::unordered_map<uint32_t, Tensor> values_;
};

// By constant of the plan: the numbers of the weights that it follows from; empty = it stays.
// Fails where there are absurdly many.
Result<std::vector<std::vector<uint32_t>>> find_sources(const plan::Plan& plan);

}  // namespace lathe
