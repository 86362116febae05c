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
  ChannelArithmetic elements;          // none of it fails
  const Packing* packing = nullptr;    // checked; null = they stay in their order
  uint32_t weights = plan::kNoTensor;  // by number: whose bytes the source is

  bool is_computed() const { return !elements.steps().empty() || packing; }  // else the source has its bytes
};

// A step of a plan (plan::RefitStep) as it is evaluated.
struct ConstantStep {
  const OpInfo* op = nullptr;  // null = a packing
  std::unique_ptr<const Attributes> attributes;
  Packing packing;
};
Result<std::vector<ConstantStep>> read_steps(const plan::Refit& refit);

// Of one plan and its steps. `read` gives the bytes of a constant that stays. All must outlive it and what it gives.
// Thread-safe, but for repeat().
class ConstantDeriver {
 public:
  using ReadConstant = std::function<Result<Tensor>(const plan::RefitOperand& operand)>;
  // `weights`: by their number; undefined = not given.
  ConstantDeriver(const plan::Plan& plan, std::span<const ConstantStep> steps, std::span<const Tensor> weights,
                  ReadConstant read, RangeCheck check);

  // The content of constant `index`, which is derived from weights that are all given. What is neither small nor
  // computed in ways of its own lies where it was given. Of arithmetic that is left to who puts the content in place,
  // nobody has looked whether numbers are out of range.
  Result<ConstantContent> derive(uint32_t index) const;

  // Makes contents that it has given those that other weights would have. What was evaluated on the way is evaluated
  // again, to where it was: nothing is looked up, and no memory taken.
  Result<> repeat(std::span<const Tensor> weights, RangeCheck check, std::span<ConstantContent> contents);
  bool is_repeatable() const { return is_repeatable_; }  // where all that was evaluated is small

 private:
  using Values = std::unordered_map<uint32_t, ConstantContent>;  // that are computed, or will be when they are read
  struct Evaluation {
    const ConstantStep* step;  // null = of the input's arithmetic, else of inputs that have none
    std::vector<ConstantContent> inputs;
    std::vector<Tensor> outputs;  // undefined = take memory
  };
  Result<ConstantContent> value(uint32_t number, const Values& values) const;
  Result<ConstantContent> done(uint32_t number, Values& values) const;
  Result<> compute(uint32_t number, Values& values) const;
  Result<> run(size_t step, Values& values) const;
  Result<bool> defer(size_t step, Values& values) const;
  Result<> evaluate(Evaluation& evaluation) const;
  Result<Tensor> evaluate(ConstantContent content) const;
  Result<ConstantContent> content_of(uint32_t number) const;
  bool take_shared(uint32_t value, Values& values) const;
  void put(uint32_t value, const ConstantContent& content, Values& values) const;
  void record(Evaluation evaluation) const;
  void read_again(ConstantContent& content) const;

  const plan::Plan& plan_;
  std::span<const ConstantStep> steps_;
  std::span<const Tensor> weights_;
  ReadConstant read_;
  RangeCheck check_;
  std::vector<uint32_t> firsts_;  // by step: the number of its first output
  // Small ones that were computed: factors of a normalisation go into a convolution's weights and its bias.
  mutable Values shared_;
  mutable std::vector<Evaluation> evaluations_;  // each behind those that it follows from
  mutable bool is_repeatable_ = true;
  mutable std::mutex mutex_;  // of these
};

// By constant of the plan: the numbers of the weights that it follows from; empty = it stays.
// Fails where there are absurdly many.
Result<std::vector<std::vector<uint32_t>>> find_sources(const plan::Plan& plan);

}  // namespace lathe
