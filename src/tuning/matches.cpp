// SPDX-License-Identifier: Apache-2.0
#include "tuning/matches.h"

#include <algorithm>

#include "base/result.h"

namespace lathe {

const Matched& Matches::of(const Tactic& tactic) {
  const auto it = std::find(tactics_.begin(), tactics_.end(), &tactic);
  std::optional<Matched>& answer = answers_.at(static_cast<size_t>(it - tactics_.begin()));
  if (!answer) answer = tactic.match(problem_);
  return *answer;
}

bool Matches::any() {
  return std::any_of(tactics_.begin(), tactics_.end(), [&](const Tactic* tactic) { return of(*tactic).has_value(); });
}

std::vector<std::string> Matches::refusals() const {
  std::vector<std::string> refusals;
  for (size_t i = 0; i < answers_.size(); ++i)
    if (answers_[i] && !*answers_[i])
      refusals.push_back(fmt::format("{}: {}", tactics_[i]->name(), answers_[i]->error().reason));
  return refusals;
}

Result<Emission> Matches::emit(const Tactic& tactic, const Config& config) {
  const Matched& match = of(tactic);
  if (!match) return fail(ErrorCode::no_tactic, "{}: {}", tactic.name(), match.error().reason);
  LATHE_ASSIGN(Emission emission, (*match)->emit(config));
  if (emission.kernel.empty()) emission.kernel = tactic.name();
  return emission;
}

}  // namespace lathe
