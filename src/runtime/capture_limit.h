// SPDX-License-Identifier: Apache-2.0
// Whether a captured graph can hold a run whose loops are unrolled.
#pragma once

#include "runtime/block_execution.h"

namespace lathe {

// Of an engine that is capturable: under the current shapes, its loops must not have too many steps, and the device
// must move all values of blocks by itself.
class CaptureLimit {
 public:
  static constexpr int64_t kMostSteps = 4096;  // in loops, in one run
  static_assert(kMostSteps <= RoundNumbers::kHeld);

  CaptureLimit(const Engine& engine, const ShapeBinding& shapes, const TensorStorage& storage,
               const BlockExecution& blocks)
      : plan_(engine.plan()), places_(engine.places()), shapes_(shapes), storage_(storage), blocks_(blocks) {}

  Result<bool> allows() const;

 private:
  Result<int64_t> rounds_of(const plan::Step& loop) const;
  Result<int64_t> steps_of(size_t first, size_t end) const;
  Result<bool> moves_on_device(const plan::Step& block) const;
  Result<bool> moves_on_device(plan::TensorId from, plan::TensorId to) const;
  Result<bool> slices_on_device(plan::TensorId whole, plan::TensorId part, uint32_t axis) const;

  const plan::Plan& plan_;
  const std::vector<plan::StepPlace>& places_;
  const ShapeBinding& shapes_;
  const TensorStorage& storage_;
  const BlockExecution& blocks_;
};

}  // namespace lathe
