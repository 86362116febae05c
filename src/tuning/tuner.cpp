// SPDX-License-Identifier: Apache-2.0
#include "tuning/tuner.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "tuning/trial.h"

namespace lathe {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

constexpr size_t kMaxFinalists = 12;
constexpr int kRounds = 5;

// A wrong kernel errs by the size of the values; rounding, Winograd's included, stays far below this.
constexpr double kTolerance = 5e-4;

bool agrees(const Tensor& got, const Tensor& expected) {
  double largest = 0;
  for (int64_t i = 0; i < expected.volume(); ++i)
    if (std::isfinite(expected.as<float>()[i])) largest = std::max<double>(largest, std::fabs(expected.as<float>()[i]));
  for (int64_t i = 0; i < expected.volume(); ++i) {
    const float want = expected.as<float>()[i];
    const float have = got.as<float>()[i];
    if (std::isnan(want) && std::isnan(have)) continue;
    if (want == have) continue;
    if (!(std::fabs(have - want) <= kTolerance * largest)) return false;
  }
  return true;
}

}  // namespace

Tuner::Tuner(const TunerOptions& options) : options_(options) {
  if (!options_.log) options_.log = &null_log();
}

Result<Choice> Tuner::choose(const Problem& unthreaded, const TacticList& tactics) {
  Problem problem = unthreaded;
  problem.threads = options_.threads;
  const std::string text = to_text(problem);
  if (const auto it = known_.find(text); it != known_.end()) return it->second;

  Choice choice;
  std::vector<Finalist> finalists;
  for (const Tactic* tactic : tactics) {
    if (const std::optional<std::string> reason = tactic->refuse(problem)) {
      choice.refusals.push_back(fmt::format("{}: {}", tactic->name(), *reason));
      continue;
    }
    for (Config& config : tactic->configs(problem)) finalists.push_back({tactic, std::move(config), 0});
  }
  if (finalists.empty()) return known_[text] = choice;

  const TimingCache::Key key = TimingCache::key_of(text, options_.device);
  const std::optional<TimingCache::Entry> cached = options_.cache ? options_.cache->find(key) : std::nullopt;
  const auto same = [&](const Finalist& f) {
    return cached && f.tactic->name() == cached->tactic && f.config.text == cached->config;
  };
  if (const auto it = std::find_if(finalists.begin(), finalists.end(), same); it != finalists.end()) {
    ++from_cache_;
    choice.tactic = it->tactic;
    choice.config = it->config;
    choice.microseconds = cached->microseconds;
    choice.from_cache = true;
    return known_[text] = choice;
  }

  std::stable_sort(finalists.begin(), finalists.end(),
                   [](const Finalist& a, const Finalist& b) { return a.config.predicted_us < b.config.predicted_us; });
  if (finalists.size() > kMaxFinalists) finalists.resize(kMaxFinalists);
  const auto start = Clock::now();
  if (options_.pool && seconds_ < options_.budget_seconds) {
    LATHE_ASSIGN(bool measured, measure(problem, finalists));
    if (measured && options_.cache)
      options_.cache->insert(key, {std::string(finalists[0].tactic->name()), finalists[0].config.text,
                                   static_cast<float>(finalists[0].microseconds)});
    measured_ += measured;
  }
  seconds_ += microseconds_since(start) / 1e6;
  if (finalists.empty()) return known_[text] = choice;  // every candidate failed its check
  choice.tactic = finalists[0].tactic;
  choice.config = finalists[0].config;
  choice.microseconds = finalists[0].microseconds;
  return known_[text] = choice;
}

// Times the finalists, interleaved, and sorts them; drops those that fail to run or disagree with the plain evaluation.
Result<bool> Tuner::measure(const Problem& problem, std::vector<Finalist>& finalists) {
  Result<std::unique_ptr<TrialData>> data = TrialData::make(problem, false);
  Result<std::unique_ptr<TrialData>> small = TrialData::make(problem, true);
  if (!data || !small) return false;  // operands that trials cannot make: the cost model decides
  LATHE_ASSIGN(Tensor expected, (*small)->expected());

  std::vector<std::unique_ptr<Trial>> trials;
  for (auto it = finalists.begin(); it != finalists.end();) {
    Result<std::unique_ptr<Trial>> check = Trial::make(options_, *it->tactic, it->config, **small);
    Result<std::unique_ptr<Trial>> trial = Trial::make(options_, *it->tactic, it->config, **data);
    std::string failure;
    if (!check || !trial) {
      failure = (check ? trial : check).error().message;
    } else {
      (*check)->run(*options_.pool);
      if (!agrees((*small)->gather_output(), expected)) failure = "its result differs from the plain evaluation";
    }
    if (failure.empty()) {
      trials.push_back(*std::move(trial));
      ++it;
    } else {
      options_.log->print(Severity::warning, "{} {} is left out for {}: {}", it->tactic->name(), it->config.text,
                          to_text(problem), failure);
      it = finalists.erase(it);
    }
  }
  std::vector<std::vector<double>> times(trials.size());
  for (const auto& trial : trials) trial->run(*options_.pool);  // warm-up
  for (int round = 0; round < kRounds && trials.size() > 1; ++round)
    for (size_t i = 0; i < trials.size(); ++i) {
      const auto start = Clock::now();
      trials[i]->run(*options_.pool);
      times[i].push_back(microseconds_since(start));
    }
  for (size_t i = 0; i < trials.size(); ++i) {
    if (times[i].empty()) {
      const auto start = Clock::now();
      trials[i]->run(*options_.pool);
      times[i].push_back(microseconds_since(start));
    }
    std::sort(times[i].begin(), times[i].end());
    // A low quantile, for noise only ever adds; rounded as the timing cache keeps it, so that both give the same plan.
    finalists[i].microseconds = static_cast<float>(times[i][times[i].size() / 3]);
    options_.log->print(Severity::verbose, "  {} {}: {:.1f} us", finalists[i].tactic->name(), finalists[i].config.text,
                        finalists[i].microseconds);
  }
  std::stable_sort(finalists.begin(), finalists.end(),
                   [](const Finalist& a, const Finalist& b) { return a.microseconds < b.microseconds; });
  return !finalists.empty();
}

}  // namespace lathe
