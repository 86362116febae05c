// SPDX-License-Identifier: Apache-2.0
// Control flow of a context: loops, branches and calls.
#pragma once

#include <functional>
#include <memory>

#include "runtime/block_values.h"
#include "runtime/host_evaluation.h"
#include "runtime/round_numbers.h"

namespace lathe {

// Says which steps run, and moves values into bodies and out of them; docs/plan_format.md has the table. The host waits
// for the device where that has computed a trip count or a condition. One thread at a time, as the context that owns
// it; all that it is made of outlives it.
class BlockExecution {
 public:
  // Runs steps [first, end) of a body, and those of their own.
  using RunSteps = std::function<Result<>(size_t first, size_t end, Queue& queue)>;

  BlockExecution(const Engine& engine, ShapeBinding& shapes, ContextMemory& memory, TensorStorage& storage,
                 HostEvaluation& host, RunSteps run_steps);

  // Runs the block that step `step` is.
  Result<> run(size_t step, Queue& queue);
  // How often a loop runs as far as sizes tell; INT64_MAX = they do not.
  Result<int64_t> sized_rounds(const plan::Step& loop) const;
  // Between runs: gives back what is kept for the next one of memory that only a run can size.
  void release_temporaries();

 private:
  Result<> run_branch(size_t step, Queue& queue);
  Result<> run_call(size_t step, Queue& queue);
  Result<> run_loop(size_t step, Queue& queue);
  Result<> run_rounds(size_t step, Queue& queue);
  Result<> run_round(size_t step, int64_t round, Queue& queue);
  Result<> begin_round(size_t step, int64_t round, Queue& queue);
  Result<> write_round(plan::TensorId param, int64_t round, Queue& queue);
  Result<> finish_loop(size_t step, int64_t rounds, Queue& queue);
  Result<> leave_body(size_t step, std::span<const plan::TensorId> results, Queue& queue);
  Result<int64_t> most_rounds(const plan::Step& step, Queue& queue) const;
  Result<int64_t> scanned_length(const plan::Step& step) const;
  Result<bool> asks_again(const plan::Body& body, Queue& queue) const;

  const Engine& engine_;
  const plan::Plan& plan_;
  ShapeBinding& shapes_;
  TensorStorage& storage_;
  HostEvaluation& host_;
  const RunSteps run_steps_;
  RoundNumbers numbers_;
  std::vector<std::unique_ptr<BlockValues>> values_;  // by step; null for those that are no blocks
};

}  // namespace lathe
