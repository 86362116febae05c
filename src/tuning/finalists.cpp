// SPDX-License-Identifier: Apache-2.0
// Which candidates of a problem are measured.
#include <algorithm>

#include "base/tactic_value.h"
#include "tuning/needs.h"
#include "tuning/tuner.h"

namespace lathe {
namespace {

constexpr size_t kMaxFinalists = 12;
constexpr size_t kMaxCompiled = 8;  // of them, where each is compiled first
constexpr size_t kMaxOfBrief = 5;   // of these, for work of so few microseconds: predictions rank it well enough
constexpr double kBrief = 8;
constexpr double kMayBeWrongBy = 8;  // predictions, between tactics

}  // namespace

size_t Tuner::finalists_of(const Job& job) const {
  if (options_.most_finalists > 0) return options_.most_finalists;
  const bool is_brief = !job.candidates.empty() && job.candidates[0].config.predicted_us < kBrief;
  return options_.finalists_factor * (!options_.compiler ? kMaxFinalists : is_brief ? kMaxOfBrief : kMaxCompiled);
}

// The same of a candidate, with its name.
std::optional<std::string> Tuner::excess_of(const Job& job, const Candidate& candidate) const {
  if (!limits_memory() || job.problem().is_copy()) return std::nullopt;  // nothing else could do a copy
  const Result<Emission> emission = job.matches->emit(*candidate.tactic, candidate.config);
  if (!emission) return std::nullopt;  // found out again, and told, where it would be made
  const auto excess = excess_of(job.problem(), *emission, largest(job.problem()));
  if (!excess) return std::nullopt;
  return fmt::format("{} {}: {}", candidate.tactic->name(), candidate.config.text, *excess);
}

// Says what a limit of memory has cost, and where.
void Tuner::log_skipped(const Job& job, const Candidate& candidate, std::string_view why) const {
  const std::string tactic = describe(*candidate.tactic, candidate.config);
  options_.log->print(Severity::info, "Skipping tactic 0x{:016x} ({}) due to insufficient memory: {}, for {}",
                      tactic_value(tactic), tactic, why, job.text);
}

std::optional<std::string> Tuner::excess_of(const Problem& problem, const Emission& emission,
                                            std::span<const int64_t> symbols) const {
  if (!limits_memory()) return std::nullopt;
  const Result<MemoryNeeds> needs = needs_of(problem, emission, symbols, options_.device.get());
  if (!needs) return std::nullopt;
  const auto over = [&](const char* what, size_t bytes, size_t most) -> std::optional<std::string> {
    if (bytes <= most) return std::nullopt;
    return fmt::format("{} bytes of {}, {} are allowed", bytes, what, most);
  };
  if (auto excess = over("workspace", needs->workspace, options_.most_workspace)) return excess;
  return over("shared memory", needs->shared, options_.most_shared);
}

// Of those that would be finalists; others take the places, so that this is to be called until it drops none.
bool Tuner::drop_too_large(Job& job, size_t most) const {
  std::vector<Candidate> finalists = job.candidates;
  keep_finalists(finalists, most);
  bool drops = false;
  for (const Candidate& finalist : finalists) {
    if (finalist.fits) continue;
    const auto it = std::find_if(job.candidates.begin(), job.candidates.end(), [&](const Candidate& c) {
      return c.tactic == finalist.tactic && c.config.text == finalist.config.text;
    });
    std::optional<std::string> excess = excess_of(job, finalist);
    it->fits = !excess;
    if (!excess) continue;
    log_skipped(job, finalist, *excess);
    job.choice.refusals.push_back(*std::move(excess));
    job.candidates.erase(it);
    drops = true;
  }
  return drops;
}

// The best by prediction; among them, since predictions compare badly across tactics, each tactic's best that may win:
// of these there may be more than `most`, unless the application has set it.
void Tuner::keep_finalists(std::vector<Candidate>& candidates, size_t most) const {
  if (candidates.size() <= most) return;
  const double limit = kMayBeWrongBy * candidates[0].config.predicted_us;
  std::vector<Candidate> kept, others;
  for (Candidate& candidate : candidates) {
    const bool is_first =
        std::none_of(kept.begin(), kept.end(), [&](const Candidate& k) { return k.tactic == candidate.tactic; });
    const bool keeps = is_first && candidate.config.predicted_us <= limit;
    (keeps ? kept : others).push_back(std::move(candidate));
  }
  for (size_t i = 0; kept.size() < most && i < others.size(); ++i) kept.push_back(std::move(others[i]));
  std::stable_sort(kept.begin(), kept.end(), is_predicted_faster);
  if (options_.most_finalists > 0) kept.erase(kept.begin() + static_cast<ptrdiff_t>(most), kept.end());
  candidates = std::move(kept);
}

}  // namespace lathe
