// SPDX-License-Identifier: Apache-2.0
// Computes constants of a plan from weights, as the plan says (plan::Refit): plain evaluations and packings.
#pragma once

#include <functional>
#include <mutex>
#include <unordered_map>

#include "ops/packing.h"
#include "ops/tensor.h"
#include "plan/plan.h"
#include "runtime/channel_arithmetic.h"
#include "runtime/range_check.h"

namespace lathe {

// What a constant is made of.
struct ConstantContent {
  ChannelArithmetic elements;        // none of it fails
  const Packing* packing = nullptr;  // checked; null = they stay in their order

  bool is_computed() const { return elements.steps() > 0 || packing; }  // else the source has its bytes
};

// A step of a plan (plan::RefitStep) as it is evaluated.
struct ConstantStep {
  const OpInfo* op = nullptr;  // null = a packing
  std::unique_ptr<const Attributes> attributes;
  Packing packing;
};
Result<std::vector<ConstantStep>> read_steps(const plan::Refit& refit);

// Of one plan and its steps. `read` gives the bytes of a constant that stays. All must outlive it and what it gives.
// Thread-safe.
class ConstantDeriver {
 public:
  using ReadConstant = std::function<Result<Tensor>(const plan::RefitOperand& operand)>;
  // `weights`: by their number; undefined = not given.
  ConstantDeriver(const plan::Plan& plan, std::span<const ConstantStep> steps, std::span<const Tensor> weights,
                  ReadConstant read, RangeCheck check);

  // The content of constant `index`, which is derived from weights that are all given. What is neither small nor
  // computed in ways of its own lies where it was given.
  Result<ConstantContent> derive(uint32_t index) const;

 private:
  using Values = std::unordered_map<uint32_t, ChannelArithmetic>;  // that are computed, or will be when they are read
  Result<ChannelArithmetic> value(uint32_t number, const Values& values) const;
  Result<Tensor> tensor(uint32_t number, Values& values) const;
  Result<> compute(uint32_t number, Values& values) const;
  Result<> run(size_t step, Values& values) const;
  Result<bool> defer(size_t step, Values& values) const;
  Result<std::vector<Tensor>> evaluate(size_t step, std::span<const Tensor> inputs) const;
  Result<ConstantContent> content_of(uint32_t number) const;
  bool take_shared(uint32_t value, Values& values) const;
  void put(uint32_t value, const Tensor& tensor, Values& values) const;

  const plan::Plan& plan_;
  std::span<const ConstantStep> steps_;
  std::span<const Tensor> weights_;
  ReadConstant read_;
  RangeCheck check_;
  std::vector<uint32_t> firsts_;  // by step: the number of its first output
  // Small ones that were computed: factors of a normalisation go into a convolution's weights and its bias.
  mutable Values shared_;
  mutable std::mutex mutex_;  // of these
};

// By constant of the plan: the numbers of the weights that it follows from; empty = it stays.
// Fails where there are absurdly many.
Result<std::vector<std::vector<uint32_t>>> find_sources(const plan::Plan& plan);

}  // namespace lathe
