// SPDX-License-Identifier: Apache-2.0
// Writes plans. Equal plans give equal bytes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "plan/amend.h"
#include "plan/plan.h"

namespace lathe::plan {

// Takes the bytes of a plan in order.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual Result<> begin(uint64_t size) { return {}; }  // called first; of all that will be written
  virtual Result<> write(std::span<const std::byte> bytes) = 0;
};

// What a plan says of weights that its file is not to hold: to be set as Plan::detached before it is written.
DetachedWeights detach(std::span<const std::byte> weights);

// Validates, then writes. The weights are passed to the sink as they lie, without a copy.
Result<> write_plan(const Plan& plan, ByteSink& sink);
Result<std::vector<std::byte>> write_plan(const Plan& plan);
// The plan with its amendments. Digests of large weights are found by so many threads. Lets go of each piece of the
// weights once it is written, so that they are hardly ever there twice.
Result<> write_plan(Plan&& plan, const Amendments& amendments, ByteSink& sink, size_t threads);
Result<std::vector<std::byte>> write_plan(Plan&& plan, const Amendments& amendments = {}, size_t threads = 1);

}  // namespace lathe::plan
