// SPDX-License-Identifier: Apache-2.0
// A problem with what tactics say of it. Each is asked when its answer is first wanted, and once.
#pragma once

#include "tuning/tactic.h"

namespace lathe {

// Threads may share what has been asked, and nothing else.
class Matches {
 public:
  // `tactics` must outlive it.
  Matches(Problem problem, const TacticList& tactics)
      : problem_(std::move(problem)), tactics_(tactics), answers_(tactics.size()) {}
  Matches(const Matches&) = delete;  // matches refer to the problem

  const Problem& problem() const { return problem_; }
  const TacticList& tactics() const { return tactics_; }
  const Matched& of(const Tactic& tactic);    // one of tactics()
  bool any();                                 // whether one takes the problem: asks until one does
  std::vector<std::string> refusals() const;  // of those asked: "conv: not a convolution"
  // The step of a configuration, with the name of its kernel.
  Result<Emission> emit(const Tactic& tactic, const Config& config);

 private:
  const Problem problem_;
  const TacticList& tactics_;
  std::vector<std::optional<Matched>> answers_;  // by tactic; nullopt = not asked
};

}  // namespace lathe
