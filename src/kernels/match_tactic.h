// SPDX-License-Identifier: Apache-2.0
// Matches of tactics that are two functions of the problem and of its form: what matching has found out about it. And
// the order of configurations.
#pragma once

#include <algorithm>
#include <type_traits>

#include "tuning/tactic.h"

namespace lathe {

template <class Form>
class FormMatch final : public Match {
 public:
  using Configs = std::vector<Config> (*)(const Problem&, const Form&);
  using Emit = Result<Emission> (*)(const Problem&, const Form&, const Config&);

  FormMatch(const Problem& problem, Form form, Configs configs, Emit emit)
      : problem_(problem), form_(std::move(form)), configs_(configs), emit_(emit) {}

  std::vector<Config> configs() const override { return configs_(problem_, form_); }
  Result<Emission> emit(const Config& config) const override { return emit_(problem_, form_, config); }

 private:
  const Problem& problem_;
  const Form form_;
  const Configs configs_;
  const Emit emit_;
};

template <class Form>
Matched match_form(const Problem& problem, Form form, std::type_identity_t<typename FormMatch<Form>::Configs> configs,
                   std::type_identity_t<typename FormMatch<Form>::Emit> emit) {
  return std::make_unique<FormMatch<Form>>(problem, std::move(form), configs, emit);
}

// Sorted by prediction; the best `most` of them.
inline std::vector<Config> best_first(std::vector<Config> configs, size_t most = SIZE_MAX) {
  std::ranges::stable_sort(configs, {}, &Config::predicted_us);
  if (configs.size() > most) configs.resize(most);
  return configs;
}

// One for each choice, best first.
template <class Choice, class Text, class Microseconds>
std::vector<Config> configs_of(const std::vector<Choice>& choices, const Text& text, const Microseconds& us) {
  std::vector<Config> configs;
  for (const Choice& choice : choices)
    configs.push_back({.text = text(choice), .predicted_us = us(choice), .choice = choice});
  return best_first(std::move(configs));
}

}  // namespace lathe
