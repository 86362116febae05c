// SPDX-License-Identifier: Apache-2.0
// Matches of kernels that can be configured.
#pragma once

#include "kernels/cpu/cost_tactic.h"
#include "tuning/tactic.h"

namespace lathe::cpu {

// list(): the choices, best first by rules of the kernel's own, so that each is taken to be 2 % slower than the one
// before it; text(choice): see Config; emit(choice): the step; effort: of the first.
template <class List, class Text, class Emit>
class ChoicesMatch final : public Match {
 public:
  ChoicesMatch(const Problem& problem, List list, Text text, Emit emit, const Effort& effort)
      : problem_(problem), list_(std::move(list)), text_(std::move(text)), emit_(std::move(emit)), effort_(effort) {}

  std::vector<Config> configs() const override {
    std::vector<Config> configs;
    double us = predicted_us(problem_, effort_);
    for (const Choice& choice : list_()) {
      configs.push_back({.text = text_(choice), .predicted_us = us, .choice = choice});
      us *= kNext;
    }
    return configs;
  }
  Result<Emission> emit(const Config& config) const override { return emit_(config.as<Choice>()); }

 private:
  static constexpr double kNext = 1.02;
  using Choice = typename std::invoke_result_t<List>::value_type;
  const Problem& problem_;
  const List list_;
  const Text text_;
  const Emit emit_;
  const Effort effort_;
};

template <class List, class Text, class Emit>
Matched match_choices(const Problem& problem, List list, Text text, Emit emit, const Effort& effort = {}) {
  return std::make_unique<ChoicesMatch<List, Text, Emit>>(problem, std::move(list), std::move(text), std::move(emit),
                                                          effort);
}

}  // namespace lathe::cpu
