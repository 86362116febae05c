// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel_choice.h"

#include <new>

namespace lathe {

void KernelChoice::set_policy(SpecializationPolicy policy, Specializer::Client client) {
  policy_ = policy;
  client_ = std::move(client);
  client_.wants_all = policy == SpecializationPolicy::at_once;
}

KernelChoice::Kernels KernelChoice::choose(std::span<const int64_t> symbols) {
  if (!is_open()) return nullptr;
  try {
    if (!wanted_ || wanted_->is_dropped()) wanted_ = specializer_->want(symbols, client_);
  } catch (const std::bad_alloc&) {  // no reason for a run to fail
    return nullptr;
  }
  return wanted_ && wanted_->is_ready() && !wanted_->is_empty() ? wanted_ : nullptr;
}

KernelChoice::Kernels KernelChoice::choose_for_run(std::span<const int64_t> symbols, bool is_captured) {
  Kernels chosen = choose(symbols);
  while (wanted_ && !wanted_->is_ready() && policy_ == SpecializationPolicy::at_once && !is_captured) {
    specializer_->wait(*wanted_);
    chosen = choose(symbols);
  }
  if (chosen && is_captured) specializer_->keep(chosen);
  return chosen;
}

}  // namespace lathe
