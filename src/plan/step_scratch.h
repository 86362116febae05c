// SPDX-License-Identifier: Apache-2.0
// Which steps share what they work in besides their operands, and when it is needed.
#pragma once

#include <span>

#include "plan/memory_planner.h"
#include "plan/plan.h"

namespace lathe::plan {

// A step has scratch of its own while it runs. Streams of a section run beside each other, and the steps of one follow
// each other: they share what lives as long as the section.
class StepScratch {
 public:
  explicit StepScratch(const Plan& plan);

  // The lifetime that a step's scratch has.
  size_t of(size_t step) const { return shared_[step]; }
  // All of them, each with the most bytes that its steps need; `bytes` is by step.
  std::vector<Lifetime> lifetimes(std::span<const size_t> bytes) const;

 private:
  std::vector<size_t> shared_;       // by step
  std::vector<Lifetime> lifetimes_;  // without bytes
};

}  // namespace lathe::plan
