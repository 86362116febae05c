// SPDX-License-Identifier: Apache-2.0
#include "tuning/tuner.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "tuning/trial.h"

namespace lathe {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

constexpr size_t kMaxFinalists = 12;
constexpr int kRounds = 5;

// A wrong kernel errs by the size of the values; rounding, Winograd's included, stays far below this.
double tolerance(const Problem& problem) {
  double tolerance = problem.tf32 ? 4e-3 : 5e-4;
  for (const auto* list : {&problem.inputs, &problem.operands, &problem.outputs})
    for (const Operand& operand : *list) {
      if (operand.dtype == DType::f16) tolerance = std::max(tolerance, 4e-3);
      if (operand.dtype == DType::bf16) tolerance = std::max(tolerance, 3e-2);
    }
  return tolerance;
}

bool agrees(const Tensor& got, const Tensor& expected, double tolerance) {
  double largest = 0;
  for (int64_t i = 0; i < expected.volume(); ++i)
    if (std::isfinite(expected.as<float>()[i])) largest = std::max<double>(largest, std::fabs(expected.as<float>()[i]));
  for (int64_t i = 0; i < expected.volume(); ++i) {
    const float want = expected.as<float>()[i];
    const float have = got.as<float>()[i];
    if (std::isnan(want) && std::isnan(have)) continue;
    if (want == have) continue;
    if (!(std::fabs(have - want) <= tolerance * largest)) return false;
  }
  return true;
}

}  // namespace

Tuner::Tuner(const TunerOptions& options) : options_(options), modules_(options.compiler) {
  if (!options_.log) options_.log = &null_log();
}

Tuner::~Tuner() = default;

Result<Choice> Tuner::choose(const Problem& unthreaded, const TacticList& tactics) {
  Problem problem = unthreaded;
  problem.threads = options_.threads;
  problem.tf32 = options_.tf32;
  const std::string text = to_text(problem);
  if (const auto it = known_.find(text); it != known_.end()) return it->second;

  Choice choice;
  std::vector<Finalist> finalists;
  for (const Tactic* tactic : tactics) {
    const bool too_many = problem.outputs.size() > 1 && !tactic->makes_several_results();
    if (const std::optional<std::string> reason = too_many ? std::string("several results") : tactic->refuse(problem)) {
      choice.refusals.push_back(fmt::format("{}: {}", tactic->name(), *reason));
      continue;
    }
    for (Config& config : tactic->configs(problem)) finalists.push_back({tactic, std::move(config), 0});
  }
  if (finalists.empty()) return known_[text] = choice;

  const TimingCache::Key key = TimingCache::key_of(text, options_.timing_key);
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
  if (options_.device && seconds_ < options_.budget_seconds) {
    LATHE_ASSIGN(bool measured, measure(problem, finalists));
    if (measured && options_.cache)
      options_.cache->insert(key, {std::string(finalists[0].tactic->name()), finalists[0].config.text,
                                   static_cast<float>(finalists[0].microseconds)});
    measured_ += measured;
  }
  seconds_ += seconds_since(start);
  if (finalists.empty()) return known_[text] = choice;  // every candidate failed its check
  choice.tactic = finalists[0].tactic;
  choice.config = finalists[0].config;
  choice.microseconds = finalists[0].microseconds;
  return known_[text] = choice;
}

// Drops the finalists that fail to compile or run, or disagree with the plain evaluation; times and sorts the others.
Result<bool> Tuner::measure(const Problem& problem, std::vector<Finalist>& finalists) {
  Device& device = *options_.device;
  if (!queue_) {
    LATHE_ASSIGN(queue_, device.make_queue());
  }
  LATHE_ASSIGN(const QueueTurn turn, QueueTurn::take(*queue_));
  Result<std::unique_ptr<TrialData>> data = TrialData::make(problem, false, device, *queue_);
  Result<std::unique_ptr<TrialData>> small = TrialData::make(problem, true, device, *queue_);
  if (!data || !small) return false;  // operands that trials cannot make: the cost model decides
  LATHE_ASSIGN(const Tensor expected, (*small)->expected());
  std::vector<Result<Emissions>> emissions;
  if (options_.compiler) emissions = emit_and_compile(finalists, **data, **small);

  std::vector<std::unique_ptr<Trial>> trials;
  std::vector<Finalist> kept;
  for (size_t i = 0; i < finalists.size(); ++i) {
    Result<Emissions> emitted = options_.compiler ? std::move(emissions[i]) : emit(finalists[i], **data, **small);
    Result<std::unique_ptr<Trial>> trial = make_trial(std::move(emitted), **data, **small, expected);
    if (trial) {
      trials.push_back(*std::move(trial));
      kept.push_back(std::move(finalists[i]));
    } else {
      options_.log->print(Severity::warning, "{} {} is left out for {}: {}", finalists[i].tactic->name(),
                          finalists[i].config.text, to_text(problem), trial.error().message);
    }
  }
  finalists = std::move(kept);
  if (trials.empty()) return false;
  LATHE_TRY(time(trials, finalists));
  std::stable_sort(finalists.begin(), finalists.end(),
                   [](const Finalist& a, const Finalist& b) { return a.microseconds < b.microseconds; });
  return true;
}

Result<Tuner::Emissions> Tuner::emit(const Finalist& finalist, const TrialData& data, const TrialData& small) {
  Emissions emissions;
  LATHE_ASSIGN(emissions.small, finalist.tactic->emit(small.problem(), finalist.config));
  LATHE_ASSIGN(emissions.full, finalist.tactic->emit(data.problem(), finalist.config));
  return emissions;
}

// Device code of all finalists is compiled at once, on all cores.
std::vector<Result<Tuner::Emissions>> Tuner::emit_and_compile(const std::vector<Finalist>& finalists,
                                                              const TrialData& data, const TrialData& small) {
  std::vector<Result<Emissions>> emissions;
  std::vector<std::string> sources;
  for (const Finalist& finalist : finalists) {
    emissions.push_back(emit(finalist, data, small));
    if (!emissions.back()) continue;
    for (const Emission* emission : {&emissions.back()->small, &emissions.back()->full})
      for (const SourceLaunch& launch : emission->launches) sources.push_back(launch.source);
  }
  modules_.compile(sources);
  return emissions;
}

// A finalist, ready to be timed, once its result on the small problem is right.
Result<std::unique_ptr<Trial>> Tuner::make_trial(Result<Emissions> emitted, const TrialData& data,
                                                 const TrialData& small, const Tensor& expected) {
  LATHE_ASSIGN(Emissions emissions, std::move(emitted));
  Device& device = *options_.device;
  LATHE_ASSIGN(const auto check, Trial::make(device, modules_, std::move(emissions.small), small, *queue_));
  LATHE_TRY(small.poison_output(device, *queue_));
  LATHE_TRY(check->run(*queue_));
  LATHE_TRY(device.wait(*queue_));
  LATHE_ASSIGN(const Tensor got, small.gather_output(device, *queue_));
  if (!agrees(got, expected, tolerance(small.problem())))
    return fail(ErrorCode::no_tactic, "its result differs from the plain evaluation");
  return Trial::make(device, modules_, std::move(emissions.full), data, *queue_);
}

Result<> Tuner::time(const std::vector<std::unique_ptr<Trial>>& trials, std::vector<Finalist>& finalists) {
  std::vector<std::vector<double>> times(trials.size());
  for (const auto& trial : trials) LATHE_TRY(trial->run(*queue_));  // warm-up
  const int rounds = trials.size() > 1 ? kRounds : 1;
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < trials.size(); ++i) {
      LATHE_ASSIGN(const std::vector<double> sample,
                   options_.device->time(
                       *queue_, [&](Queue& queue) { return trials[i]->run(queue); }, 1));
      times[i].insert(times[i].end(), sample.begin(), sample.end());
    }
  for (size_t i = 0; i < trials.size(); ++i) {
    std::sort(times[i].begin(), times[i].end());
    // A low quantile, for noise only ever adds; rounded as the timing cache keeps it, so that both give the same plan.
    finalists[i].microseconds = static_cast<float>(times[i][times[i].size() / 3]);
    options_.log->print(Severity::verbose, "  {} {}: {:.1f} us", finalists[i].tactic->name(), finalists[i].config.text,
                        finalists[i].microseconds);
  }
  return {};
}

}  // namespace lathe
