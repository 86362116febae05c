// SPDX-License-Identifier: Apache-2.0
// Choices for sizes besides the optimum.
#include <algorithm>
#include <unordered_map>

#include "lowering/choices_by_size.h"
#include "lowering/region_lowering.h"

namespace lathe {
namespace {

double num_elements(const Problem& problem, std::span<const int64_t> symbols) {
  return static_cast<double>(std::max<int64_t>(elements_of(problem).evaluate(symbols).value_or(0), 1));
}

}  // namespace

// Steps of one problem, and what measuring it took where it was largest.
struct RegionLowering::Alike {
  std::vector<Pending*> steps;
  double elements = 0;
  double seconds = 0;
};

// Of steps of device code: kernels that the library holds choose their tiles in each run.
std::vector<RegionLowering::Alike> RegionLowering::steps_by_problem(std::span<Pending* const> all) {
  std::vector<Alike> groups;
  std::unordered_map<std::string, size_t> places;
  for (Pending* pending : all) {
    if (!pending->matches || !pending->region || !pending->choice.tactic) continue;
    const Problem& problem = pending->matches->problem();
    const auto [place, is_new] = places.try_emplace(to_text(problem), groups.size());
    if (is_new) groups.push_back({{}, num_elements(problem, problem.symbols), pending->choice.seconds});
    groups[place->second].steps.push_back(pending);
  }
  return groups;
}

// They are decided when all steps have been, so that these have the time that there is, and measured for no longer than
// these were. A problem is expected to take as long as where it was measured, times how much larger it is: a stand-in
// for a GPU takes minutes for what a GPU does in no time.
Result<> RegionLowering::choose_by_size(std::span<Pending* const> all, const Tuner::Progress& progress) {
  if (!context_.options.tuner.compiler || !context_.options.optimize) return {};
  std::vector<Alike> groups = steps_by_problem(all);
  double left = 0;
  for (const Alike& alike : groups) left += alike.seconds;
  for (const std::vector<int64_t>& symbols : sizes_besides_optimum(plan_)) {
    std::vector<std::pair<Alike*, Pending*>> chosen_for;
    std::vector<Matches*> problems;
    for (Alike& alike : groups) {
      const double elements = num_elements(alike.steps[0]->matches->problem(), symbols);
      if (alike.seconds * std::max(1.0, elements / alike.elements) > left) continue;
      for (Pending* step : alike.steps)
        if (std::optional<Problem> problem = at_sizes(step->matches->problem(), symbols, plan_.symbols)) {
          step->sized.push_back({std::make_unique<Matches>(*std::move(problem), tactics_), {}});
          problems.push_back(step->sized.back().matches.get());
          chosen_for.emplace_back(&alike, step);
        }
    }
    if (problems.empty()) continue;
    LATHE_ASSIGN(std::vector<Choice> choices, tuner_.choose(problems, progress));
    const Alike* before = nullptr;
    for (size_t i = 0; i < choices.size(); ++i) {
      const auto [alike, step] = chosen_for[i];
      const double seconds = choices[i].seconds, elements = num_elements(problems[i]->problem(), symbols);
      if (alike != before) left -= seconds;
      if (elements > alike->elements) alike->elements = elements, alike->seconds = seconds;
      before = alike;
      step->sized.back().choice = std::move(choices[i]);
    }
  }
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
