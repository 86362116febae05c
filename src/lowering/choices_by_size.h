// SPDX-License-Identifier: Apache-2.0
// Steps of open sizes that have several forms, each for a range of sizes: a run launches that for its own. The forms
// are launches of one step, and the grids of all but one are empty.
#pragma once

#include <optional>

#include "lowering/plan_code.h"

namespace lathe {

// Values of the plan's symbols besides the optimum that steps are tuned for: some below it, others up to the most that
// a profile allows, each as far from the next as a kernel's tile needs to be another.
std::vector<std::vector<int64_t>> sizes_besides_optimum(const plan::Plan& plan);

// Elements that the problem reads and writes: what tells its sizes from each other. They grow with every size.
Expr elements_of(const Problem& problem);

// Sizes of a step with more elements than `above`, and no more than `most`; nullopt = there is no such bound.
struct SizeRange {
  std::optional<int64_t> above, most;

  bool is_all() const { return !above && !most; }
  // 1 for these sizes and 0 for all others, and the other way round: one atom, so that the grid that it multiplies has
  // no more terms than before. Grids are evaluated when sizes change, and in each launch.
  Expr contains(const Expr& elements) const;
  Expr excludes(const Expr& elements) const;
};

// The problem, tuned for other values of its symbols; nullopt where its sizes do not differ from those that it has, or
// depend on data.
std::optional<Problem> at_sizes(const Problem& problem, std::span<const int64_t> symbols,
                                std::span<const Symbol> declared);

// The form of an emission whose step reads what `first` reads; nullopt where it reads anything else, or one of them has
// other launches than those of device code: whether a library is called does not depend on a grid.
std::optional<StepForm> form_like(const Emission& first, Emission emission);

// Gives the steps their forms, as far as a step may have launches, and says so in their tactics.
Result<> add_forms(BuiltPlan& built, PlanCode& code);

}  // namespace lathe
