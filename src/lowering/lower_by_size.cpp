// SPDX-License-Identifier: Apache-2.0
// Choices for sizes besides the optimum.
#include <algorithm>

#include "lowering/choices_by_size.h"
#include "lowering/region_lowering.h"

namespace lathe {

// Of steps of device code: kernels that the library holds choose their tiles in each run. They are decided when all
// others have been, so that these have the time that there is.
Result<> RegionLowering::choose_by_size(std::span<Pending* const> all, const Tuner::Progress& progress) {
  if (!context_.options.tuner.compiler || !context_.options.optimize) return {};
  const std::vector<std::vector<int64_t>> sizes = sizes_besides_optimum(plan_);
  std::vector<Matches*> problems;
  std::vector<Choice*> choices;
  for (Pending* pending : all) {
    if (!pending->matches || !pending->region || !pending->choice.tactic) continue;
    for (const std::vector<int64_t>& symbols : sizes)
      if (std::optional<Problem> problem = at_sizes(pending->matches->problem(), symbols, plan_.symbols))
        pending->sized.push_back({std::make_unique<Matches>(*std::move(problem), tactics_), {}});
    for (Pending::Sized& sized : pending->sized) {
      problems.push_back(sized.matches.get());
      choices.push_back(&sized.choice);
    }
  }
  if (problems.empty()) return {};
  LATHE_ASSIGN(std::vector<Choice> chosen, tuner_.choose(problems, progress));
  for (size_t i = 0; i < chosen.size(); ++i) *choices[i] = std::move(chosen[i]);
  return {};
}

// By elements. A size has the step's own form where another would read other weights, or where that was measured and
// the other is no more than predicted.
std::vector<StepForm> RegionLowering::forms_of(Pending& pending) const {
  const Problem& problem = pending.matches->problem();
  const Expr elements = elements_of(problem);
  const StepForm own{elements.evaluate(problem.symbols).value_or(0), pending.step.tactic, {}, {}};
  std::vector<StepForm> forms = {own};
  for (Pending::Sized& sized : pending.sized) {
    StepForm form = own;
    const Choice& choice = sized.choice;
    const bool is_known = choice.tactic && (choice.microseconds > 0 || pending.choice.microseconds <= 0);
    if (is_known && describe(*choice.tactic, choice.config) != own.tactic)
      if (Result<Emission> emission = sized.matches->emit(*choice.tactic, choice.config))
        if (std::optional<StepForm> other = form_like(*pending.emission, *std::move(emission))) {
          form = *std::move(other);
          form.tactic = describe(*choice.tactic, choice.config);
        }
    form.most = elements.evaluate(sized.matches->problem().symbols).value_or(own.most);
    forms.push_back(std::move(form));
  }
  std::ranges::stable_sort(forms, {}, &StepForm::most);
  return forms;
}

}  // namespace lathe
