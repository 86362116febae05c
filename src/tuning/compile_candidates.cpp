// SPDX-License-Identifier: Apache-2.0
// Device code of candidates: which is compiled, when.
#include <algorithm>

#include "tuning/all_cores.h"
#include "tuning/tuner.h"

namespace lathe {
namespace {

constexpr double kCompileShare = 0.6;  // of the budget's seconds

}  // namespace

// The device code that the step runs.
Result<> Tuner::compile(Matches& matches, const Candidate& candidate) {
  const Result<Emission> emission = matches.emit(*candidate.tactic, candidate.config);
  if (!emission) return {};  // found out again, and told, where it would be made
  LATHE_TRY(modules_of(*emission, modules_));
  return {};
}

// Device code of every candidate that will be measured, and of what is chosen already: first that of each job's best
// guess, then of the second ones, and so on. When time is up the others are left out, so that as many jobs as possible
// are measured, if with fewer candidates.
Result<> Tuner::compile(std::span<Job> jobs, const Progress& progress) {
  if (!options_.compiler) return {};
  struct Wanted {
    Job* job;
    size_t candidate;
    bool compiled = false;
  };
  std::vector<Wanted> wanted;
  for (Job& job : jobs)
    for (size_t i = 0; i < job.candidates.size() && (i == 0 || may_measure()); ++i) wanted.push_back({&job, i});
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](const Wanted& a, const Wanted& b) { return a.candidate < b.candidate; });
  const double share = may_measure() ? kCompileShare * (options_.budget_seconds - seconds_) : kUnlimited;
  const auto work = [&](size_t i) {
    Wanted& w = wanted[i];
    (void)compile(*w.job->matches, w.job->candidates[w.candidate]);
    w.compiled = true;
  };
  LATHE_TRY(on_all_cores(
      wanted.size(), work, share, [&](double fraction) { return progress("compiling kernels", 0.1 + 0.4 * fraction); },
      options_.most_threads));
  for (auto w = wanted.rbegin(); w != wanted.rend(); ++w)
    if (!w->compiled && w->candidate > 0)
      w->job->candidates.erase(w->job->candidates.begin() + static_cast<ptrdiff_t>(w->candidate));
  return {};
}

// What was not measured may not compile, or only with spills.
void Tuner::drop_unbuildable(Job& job) {
  while (options_.compiler && !job.measured && !job.candidates.empty()) {
    const Result<> built = compile(*job.matches, job.candidates[0]);
    if (built) return;
    leave_out(job, 0, built.error());
  }
}

}  // namespace lathe
