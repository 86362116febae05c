// SPDX-License-Identifier: Apache-2.0
// Which kernels the runs of a context use: those for open sizes, or some for the sizes that it has.
#pragma once

#include "runtime/engine.h"

namespace lathe {

// When kernels are made for sizes that a run has: never; behind it, for later runs, once they come again; before it.
enum class SpecializationPolicy : uint8_t { none, background, at_once };

// One thread at a time, as the context that owns it; the engine outlives it.
class KernelChoice {
 public:
  using Kernels = std::shared_ptr<const SpecializedKernels>;
  explicit KernelChoice(const Engine& engine) : specializer_(engine.specializer()) {}

  void set_policy(SpecializationPolicy policy, Specializer::Client client);
  bool is_open() const { return specializer_ && policy_ != SpecializationPolicy::none; }

  // Sizes have changed, to some that there have been before or to new ones.
  void forget(bool come_again);
  // What there is for the context's sizes, as its symbols say; null = nothing, or not yet. For a run that the
  // application captures nothing is begun: drivers may forbid other threads to load code meanwhile.
  Kernels choose(std::span<const int64_t> symbols, bool is_captured);
  // The same before a run. Where the application captures it, nothing is waited for, and its graph keeps the kernels.
  Kernels choose_for_run(std::span<const int64_t> symbols, bool is_captured);
  // Behind a run: has kernels made in the background if its sizes have come again.
  void ask(std::span<const int64_t> symbols);

 private:
  void want(std::span<const int64_t> symbols, Specializer::IfMissing if_missing);
  Kernels ready() const { return wanted_ && wanted_->is_ready() && !wanted_->is_empty() ? wanted_ : nullptr; }

  Specializer* const specializer_;  // null = the engine has nothing to specialise
  SpecializationPolicy policy_ = SpecializationPolicy::none;
  Specializer::Client client_;
  Kernels wanted_;
  bool come_again_ = false;  // the context's sizes
};

}  // namespace lathe
