// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel_choice.h"

#include <new>
#include <utility>

namespace lathe {

void KernelChoice::set_policy(SpecializationPolicy policy, Specializer::Client client) {
  policy_ = policy;
  client_ = std::move(client);
  client_.wants_all = policy == SpecializationPolicy::at_once;
}

void KernelChoice::forget(bool come_again) {
  wanted_.reset();
  come_again_ = come_again;
}

void KernelChoice::want(std::span<const int64_t> symbols, Specializer::IfMissing if_missing) {
  if (!is_open() || (wanted_ && !wanted_->is_dropped())) return;
  try {
    wanted_ = specializer_->want(symbols, client_, if_missing);
  } catch (const std::bad_alloc&) {  // no reason for a run to fail
  }
}

KernelChoice::Kernels KernelChoice::choose(std::span<const int64_t> symbols, bool is_captured) {
  using IfMissing = Specializer::IfMissing;
  const IfMissing at_most = policy_ == SpecializationPolicy::at_once ? IfMissing::make : IfMissing::load;
  want(symbols, is_captured ? IfMissing::leave : at_most);
  return ready();
}

KernelChoice::Kernels KernelChoice::choose_for_run(std::span<const int64_t> symbols, bool is_captured) {
  const bool at_once = policy_ == SpecializationPolicy::at_once;
  Kernels chosen = at_once ? choose(symbols, is_captured) : ready();
  while (at_once && wanted_ && !wanted_->is_ready() && !is_captured) {
    specializer_->wait(*wanted_);
    chosen = choose(symbols, is_captured);
  }
  if (chosen && is_captured) specializer_->keep(chosen);
  return chosen;
}

void KernelChoice::ask(std::span<const int64_t> symbols) {
  if (std::exchange(come_again_, true)) want(symbols, Specializer::IfMissing::make);
}

}  // namespace lathe
