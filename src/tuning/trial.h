// SPDX-License-Identifier: Apache-2.0
// One candidate, made runnable on random data: for timing and for checking against the plain evaluation.
#pragma once

#include <memory>

#include "device/cpu/kernel.h"
#include "tuning/tactic.h"
#include "tuning/tuner.h"

namespace lathe {

// Random operands of a problem at concrete dims, shared by the trials of one problem.
class TrialData {
 public:
  // With `small`, image extents are cut down so that the plain evaluation is quick; channels and weights stay.
  static Result<std::unique_ptr<TrialData>> make(const Problem& problem, bool small);

  const Problem& problem() const { return problem_; }
  // The region's result by the plain evaluation, dense row-major.
  Result<Tensor> expected() const;
  TensorArg arg(const StepInput& input) const;
  TensorArg output() const;
  Tensor gather_output() const;  // the output's memory, dense row-major

 private:
  struct Slot {
    Tensor dense;   // logical content, row-major
    Tensor memory;  // as the kernel sees it
    TensorArg arg;
  };
  Result<Slot> make_slot(const Operand& operand, uint32_t seed, bool random) const;

  Problem problem_;
  std::vector<Slot> inputs_;
  std::vector<Slot> operands_;
  Slot output_;
};

class Trial {
 public:
  static Result<std::unique_ptr<Trial>> make(const TunerOptions& options, const Tactic& tactic, const Config& config,
                                             const TrialData& data);
  void run(cpu::ThreadPool& pool) const;

 private:
  Emission emission_;
  Program program_;
  std::unique_ptr<cpu::Kernel> kernel_;
  std::vector<TensorArg> inputs_;
  std::vector<TensorArg> outputs_;
  Tensor workspace_;
};

}  // namespace lathe
