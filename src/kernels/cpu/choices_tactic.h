// SPDX-License-Identifier: Apache-2.0
// Matches of kernels that can be configured.
#pragma once

#include "kernels/cpu/cost_tactic.h"
#include "tuning/tactic.h"

namespace lathe::cpu {

// list(): the choices, best first; text(choice): see Config; emit(choice): the step; padded: see predicted_us.
template <class List, class Text, class Emit>
class ChoicesMatch final : public Match {
 public:
  ChoicesMatch(const Problem& problem, List list, Text text, Emit emit, double padded)
      : problem_(problem), list_(std::move(list)), text_(std::move(text)), emit_(std::move(emit)), padded_(padded) {}

  std::vector<Config> configs() const override {
    std::vector<Config> configs;
    for (const Choice& choice : list_())
      configs.push_back(
          {.text = text_(choice), .predicted_us = predicted_us(problem_, configs.size(), padded_), .choice = choice});
    return configs;
  }
  Result<Emission> emit(const Config& config) const override { return emit_(config.as<Choice>()); }

 private:
  using Choice = typename std::invoke_result_t<List>::value_type;
  const Problem& problem_;
  const List list_;
  const Text text_;
  const Emit emit_;
  const double padded_;
};

template <class List, class Text, class Emit>
Matched match_choices(const Problem& problem, List list, Text text, Emit emit, double padded = 1) {
  return std::make_unique<ChoicesMatch<List, Text, Emit>>(problem, std::move(list), std::move(text), std::move(emit),
                                                          padded);
}

}  // namespace lathe::cpu
