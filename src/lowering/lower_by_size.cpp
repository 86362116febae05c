// SPDX-License-Identifier: Apache-2.0
// Choices for sizes besides the optimum.
#include <algorithm>
#include <array>
#include <unordered_map>

#include "lowering/choices_by_size.h"
#include "lowering/region_lowering.h"

namespace lathe {
namespace {

double num_elements(const Problem& problem, std::span<const int64_t> symbols) {
  return static_cast<double>(std::max<int64_t>(elements_of(problem).evaluate(symbols).value_or(0), 1));
}

}  // namespace

// Steps of one problem.
struct RegionLowering::Alike {
  std::vector<Pending*> steps;
  double elements = 0;  // at the optimum
  double seconds = 0;   // that measuring took there

  double ratio(std::span<const int64_t> symbols) const {
    return std::max(1.0, num_elements(steps[0]->matches->problem(), symbols) / elements);
  }
};

// Of steps of device code: kernels that the library holds choose their tiles in each run. What is measured fastest
// comes first.
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
  std::ranges::stable_sort(groups, {}, &Alike::seconds);
  return groups;
}

// Gives the seconds that measuring took.
Result<double> RegionLowering::choose_at(std::span<const int64_t> symbols, std::span<Alike* const> groups,
                                         const Tuner::Progress& progress) {
  std::vector<std::pair<Alike*, Pending*>> chosen_for;
  std::vector<Matches*> problems;
  for (Alike* const alike : groups)
    for (Pending* step : alike->steps)
      if (std::optional<Problem> problem = at_sizes(step->matches->problem(), symbols, plan_.symbols)) {
        step->sized.push_back({std::make_unique<Matches>(*std::move(problem), tactics_), {}});
        problems.push_back(step->sized.back().matches.get());
        chosen_for.emplace_back(alike, step);
      }
  double seconds = 0;
  if (problems.empty()) return seconds;
  LATHE_ASSIGN(std::vector<Choice> choices, tuner_.choose(problems, progress));
  for (size_t i = 0; i < choices.size(); ++i) {
    const auto [alike, step] = chosen_for[i];
    if (step == alike->steps[0]) seconds += choices[i].seconds;  // once for all that are alike
    step->sized.back().choice = std::move(choices[i]);
  }
  return seconds;
}

// They are decided when all steps have been, so that these have the time that there is. Sizes far above the optimum
// gain most, and come first. Measuring is bounded by what it took at the optimum: a stand-in for a GPU takes minutes
// for larger sizes, where a GPU takes no longer than for small ones. The problem that is measured fastest tells which
// it is.
Result<> RegionLowering::choose_by_size(std::span<Pending* const> all, const Tuner::Progress& progress) {
  constexpr double kMost = 3;  // times what measuring at the optimum took
  if (!context_.options.tuner.compiler || !context_.options.optimize) return {};
  std::vector<Alike> groups = steps_by_problem(all);
  std::vector<std::vector<int64_t>> sizes = sizes_besides_optimum(plan_);
  if (groups.empty() || sizes.empty()) return {};
  std::ranges::sort(sizes, std::greater());  // they lie on a line, along which no size falls while another grows
  double left = 0, growth = 1;               // what it takes is 1 + growth * (ratio - 1) times as much
  for (const Alike& alike : groups) left += kMost * alike.seconds;
  const auto cost = [&](const Alike& alike, const auto& symbols) {
    return alike.seconds * (1 + growth * (alike.ratio(symbols) - 1));
  };
  Alike& first = groups[0];
  const bool has_probe = first.seconds > 0 && first.ratio(sizes[0]) > 1 && cost(first, sizes[0]) <= left;
  if (has_probe) {
    LATHE_ASSIGN(const double seconds, choose_at(sizes[0], std::array{&first}, progress));
    left -= seconds;
    growth = std::clamp((seconds / first.seconds - 1) / (first.ratio(sizes[0]) - 1), 0.0, 1.0);
  }
  for (const std::vector<int64_t>& symbols : sizes) {
    std::vector<Alike*> some;
    double planned = 0;
    for (Alike& alike : groups) {
      const bool is_done = has_probe && &alike == &first && &symbols == &sizes[0];
      if (is_done || planned + cost(alike, symbols) > left) continue;
      planned += cost(alike, symbols);
      some.push_back(&alike);
    }
    LATHE_ASSIGN(const double seconds, choose_at(symbols, some, progress));
    left -= seconds;
  }
  return {};
}

// Whether there is a choice, which was measured if the step's own was.
bool RegionLowering::is_known(const Pending::Sized& sized, const Pending& own) {
  return sized.choice.tactic && (sized.choice.microseconds > 0 || own.choice.microseconds <= 0);
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
    if (is_known(sized, pending) && describe(*choice.tactic, choice.config) != own.tactic)
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
