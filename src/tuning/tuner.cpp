// SPDX-License-Identifier: Apache-2.0
#include "tuning/tuner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>
#include <unordered_map>

#include "tuning/all_cores.h"
#include "tuning/cut_down.h"
#include "tuning/needs.h"
#include "tuning/trial.h"
#include "tuning/work.h"

namespace lathe {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

constexpr int kRounds = 5;
constexpr size_t kCheckedAtOnce = 64;     // problems whose operands and results are held: work for all cores
constexpr double kOutOfTheRunning = 1.5;  // times the fastest: no noise makes up for that

// What is computed on the way counts as a tensor of the type that it is rounded to.
double tolerance_of(DType type) { return type == DType::f16 ? 4e-3 : type == DType::bf16 ? 3e-2 : 0; }
double tolerance_of(const Program& program) {
  double tolerance = 0;
  for (const Instruction& each : program.code) {
    if (each.op == Opcode::round_f16) tolerance = std::max(tolerance, tolerance_of(DType::f16));
    if (each.op == Opcode::round_bf16) tolerance = std::max(tolerance, tolerance_of(DType::bf16));
  }
  return tolerance;
}

// A wrong kernel errs by the size of the values; rounding, Winograd's included, stays far below this.
double tolerance(const Problem& problem) {
  double tolerance = problem.tf32 ? 4e-3 : 5e-4;
  // Bf16 has two bits less than TF32.
  const std::optional<DType> factors = problem.attributes ? factors_of(*problem.attributes) : std::nullopt;
  if (factors == DType::bf16) tolerance = 4 * 4e-3;
  // A weight near the middle of two 8-bit floats is rounded to either of them: by a part of 16, of one of many weights.
  if (factors == DType::f8e4m3fn) tolerance = 4e-3;
  for (const auto* list : {&problem.inputs, &problem.operands, &problem.outputs})
    for (const Operand& operand : *list)
      tolerance = std::max({tolerance, tolerance_of(operand.dtype), tolerance_of(operand.program)});
  return std::max(tolerance, tolerance_of(problem.program));
}

}  // namespace

Tuner::Tuner(const TunerOptions& options) : options_(options), modules_(options.compiler) {
  if (!options_.log) options_.log = &null_log();
  if (options_.weights_from_memory) options_.timing_key += ", weights from memory";
}

std::string describe(const Tactic& tactic, const Config& config) {
  return std::string(tactic.name()) + (config.text.empty() ? "" : ": " + config.text);
}

Tuner::~Tuner() = default;

Result<std::vector<Choice>> Tuner::choose(std::span<Matches* const> problems, const Progress& progress) {
  std::vector<Job> jobs;
  std::vector<std::string> texts;
  std::unordered_map<std::string, double> steps;  // that have a problem
  for (Matches* matches : problems) {
    const std::string& text = texts.emplace_back(to_text(matches->problem()));
    if (++steps[text] > 1 || known_.contains(text)) continue;
    Job job;
    job.matches = matches;
    job.text = text;
    add_candidates(job);
    look_up(job);
    jobs.push_back(std::move(job));
  }
  std::stable_sort(jobs.begin(), jobs.end(), [&](const Job& a, const Job& b) {
    const auto predicted = [&](const Job& job) {
      return job.candidates.empty() ? 0 : job.candidates[0].config.predicted_us * steps.at(job.text);
    };
    return predicted(a) > predicted(b);
  });
  LATHE_TRY(decide(jobs, progress));
  std::vector<Choice> choices;
  for (const std::string& text : texts) choices.push_back(known_.at(text));
  return choices;
}

bool Tuner::is_predicted_faster(const Candidate& a, const Candidate& b) {
  return a.config.predicted_us < b.config.predicted_us;
}

// All candidates of the tactics that match.
void Tuner::add_candidates(Job& job) {
  for (const Tactic* tactic : job.matches->tactics())
    if (const Matched& match = job.matches->of(*tactic))
      for (Config& config : (*match)->configs()) job.candidates.push_back({tactic, std::move(config)});
  job.choice.refusals = job.matches->refusals();
  std::stable_sort(job.candidates.begin(), job.candidates.end(), is_predicted_faster);
}

// The timing cache's answer becomes the only candidate.
void Tuner::look_up(Job& job) const {
  job.key = TimingCache::key_of(job.text, options_.timing_key);
  const std::optional<TimingCache::Entry> cached = options_.cache ? options_.cache->find(job.key) : std::nullopt;
  const auto it = std::find_if(job.candidates.begin(), job.candidates.end(), [&](const Candidate& c) {
    return cached && c.tactic->name() == cached->chosen.tactic && c.config.text == cached->chosen.config;
  });
  if (it != job.candidates.end() && !excess_of(job, *it)) {
    job.choice.from_cache = true;
    job.candidates = {*it};
    job.candidates[0].microseconds = cached->chosen.microseconds;
    return;
  }
  const size_t most = finalists_of(job);
  while (drop_too_large(job, most)) {
  }
  keep_finalists(job.candidates, most);
}

Result<> Tuner::decide(std::span<Job> jobs, const Progress& progress) {
  const auto start = Clock::now();
  const double before = seconds_;
  const auto note_time = [&] { seconds_ = before + seconds_since(start); };
  const bool measures = may_measure();
  LATHE_TRY(compile(jobs, progress));
  note_time();
  for (size_t i = 0; i < jobs.size(); ++i) {
    LATHE_TRY(progress("tuning", 0.5 + 0.4 * static_cast<double>(i) / static_cast<double>(jobs.size())));
    if (!jobs[i].choice.from_cache && !jobs[i].candidates.empty() && measures && may_measure()) {
      const auto begin = Clock::now();
      LATHE_ASSIGN(jobs[i].measured, measure(jobs[i]));
      jobs[i].choice.seconds = seconds_since(begin);
    }
    note_time();
  }
  for (size_t begin = 0, count; begin < jobs.size(); begin += count) {
    count = checked_together(jobs.subspan(begin));
    const std::span<Job> some = jobs.subspan(begin, count);
    LATHE_TRY(
        prepare_checks(some, 0.9 + 0.05 * static_cast<double>(begin) / static_cast<double>(jobs.size()), progress));
    for (Job& job : some) {
      if (job.measured) LATHE_TRY(check(job));
      drop_unbuildable(job);
      settle(job);
    }
  }
  note_time();
  return {};
}

// Makes the smaller problems of the first jobs: of as many as give work to all cores, and whose operands are within
// what measuring may take.
size_t Tuner::checked_together(std::span<Job> jobs) const {
  size_t count = 0;
  for (size_t bytes = 0; count < std::min(kCheckedAtOnce, jobs.size()); ++count) {
    Job& job = jobs[count];
    if (!job.measured) continue;
    job.small = std::make_unique<Matches>(cut_down(job.problem()), job.matches->tactics());
    bytes += operand_bytes(job.small->problem());
    if (count > 0 && bytes > options_.most_measuring) break;
  }
  return count;
}

// What the fastest candidates are checked with: plain evaluations, and their device code for the smaller problems.
Result<> Tuner::prepare_checks(std::span<Job> jobs, double done, const Progress& progress) {
  std::vector<Job*> wanted;
  for (Job& job : jobs) {
    if (!job.measured) continue;
    LATHE_ASSIGN(const QueueTurn turn, QueueTurn::take(*queue_));
    LATHE_ASSIGN(job.data, TrialData::make(job.small->problem(), TrialData::Use::check, *options_.device, *queue_));
    wanted.push_back(&job);
  }
  const auto prepare = [&](size_t i) {
    Job& job = *wanted[i];
    if (options_.compiler && !job.candidates.empty()) (void)compile(*job.small, job.candidates[0]);
    job.expected = std::make_unique<Result<std::vector<Expected>>>(job.data->expected(tolerance(job.small->problem())));
  };
  return on_all_cores(
      wanted.size(), prepare, kUnlimited, [&](double) { return progress("checking kernels", done); },
      options_.most_threads);
}

void Tuner::leave_out(Job& job, size_t candidate, const Error& error) const {
  const auto it = job.candidates.begin() + static_cast<ptrdiff_t>(candidate);
  options_.log->print(Severity::warning, "{} {} is left out for {}: {}", it->tactic->name(), it->config.text, job.text,
                      error.message);
  job.choice.refusals.push_back(fmt::format("{} {}: {}", it->tactic->name(), it->config.text, error.message));
  job.candidates.erase(it);
}

// Of the candidates from `first` on that compile and run, and whose memory is within what measuring may take, as many
// as may be held at one time. The others are gone.
Result<std::vector<std::unique_ptr<Trial>>> Tuner::make_trials(Job& job, size_t first, const TrialData& data,
                                                               std::vector<Candidate>& too_large) {
  Device& device = *options_.device;
  std::vector<std::unique_ptr<Trial>> trials;
  const size_t operands = operand_bytes(job.problem());
  size_t held = operands, largest = 0;
  const auto make = [&](const Candidate& candidate) -> Result<std::unique_ptr<Trial>> {
    LATHE_ASSIGN(Emission emission, job.matches->emit(*candidate.tactic, candidate.config));
    LATHE_ASSIGN(const size_t bytes, trial_bytes(job.problem(), emission, &device));
    if (bytes > options_.most_measuring || held > options_.most_measuring - bytes)
      return fail(ErrorCode::out_of_memory, "{} bytes of memory for measuring, {} are allowed", held + bytes,
                  options_.most_measuring);
    held += bytes;
    largest = std::max(largest, bytes);
    const size_t spread = options_.weights_from_memory ? static_cast<size_t>(2 * options_.target.cache_bytes) : 0;
    return Trial::make(device, modules_, std::move(emission), data, *queue_,
                       std::min(spread, options_.most_measuring - held));
  };
  const auto has_room = [&] { return trials.empty() || held - operands + largest <= options_.most_at_once; };
  while (first + trials.size() < job.candidates.size() && has_room()) {
    const auto candidate = job.candidates.begin() + static_cast<ptrdiff_t>(first + trials.size());
    Result<std::unique_ptr<Trial>> trial = make(*candidate);
    if (trial) {
      trials.push_back(*std::move(trial));
    } else if (trial.error().code == ErrorCode::out_of_memory) {
      log_skipped(job, *candidate, trial.error().message);
      too_large.push_back(*candidate);
      job.candidates.erase(candidate);
    } else {
      leave_out(job, first + trials.size(), trial.error());
    }
  }
  return trials;
}

// Times the candidates and sorts them. False when none can be timed, or the problem's operands are such as trials
// cannot make, or empty: the cost model decides.
Result<bool> Tuner::measure(Job& job) {
  const auto is_empty = [](const Operand& operand) { return !operand.omitted && volume_of(operand.opt_dims) == 0; };
  if (std::ranges::any_of(job.problem().inputs, is_empty) || std::ranges::any_of(job.problem().outputs, is_empty))
    return false;
  Device& device = *options_.device;
  if (!queue_) {
    LATHE_ASSIGN(queue_, options_.stream ? device.make_stream_queue(options_.stream) : device.make_queue());
  }
  LATHE_ASSIGN(const QueueTurn turn, QueueTurn::take(*queue_));
  if (const size_t bytes = operand_bytes(job.problem()); bytes > options_.most_measuring) {
    for (const Candidate& candidate : job.candidates)
      log_skipped(job, candidate,
                  fmt::format("{} bytes of memory for measuring, {} are allowed", bytes, options_.most_measuring));
    return false;
  }
  const Result<std::unique_ptr<TrialData>> data = TrialData::make(job.problem(), TrialData::Use::time, device, *queue_);
  if (!data) return false;
  options_.log->print(Severity::verbose, "timing {}", job.text);
  std::vector<Candidate> too_large;
  for (size_t timed = 0; timed < job.candidates.size();) {
    LATHE_ASSIGN(const std::vector<std::unique_ptr<Trial>> trials, make_trials(job, timed, **data, too_large));
    const int rounds = job.candidates.size() > 1 ? kRounds : 1;
    LATHE_TRY(time(trials, std::span(job.candidates).subspan(timed, trials.size()), rounds));
    timed += trials.size();
  }
  if (job.candidates.empty()) return job.candidates = std::move(too_large), false;
  std::stable_sort(job.candidates.begin(), job.candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.microseconds < b.microseconds; });
  return true;
}

// Leaves out fast candidates until the first one's result, on a smaller problem, is the plain evaluation's; where the
// others may be chosen later, too, each one's.
Result<> Tuner::check(Job& job) {
  LATHE_ASSIGN(const QueueTurn turn, QueueTurn::take(*queue_));
  if (!*job.expected) return fail(job.expected->error());
  for (size_t i = 0; i < job.candidates.size();) {
    const Result<> checked = check_candidate(job, job.candidates[i]);
    if (!checked)
      leave_out(job, i, checked.error());
    else if (options_.keeps_candidates)
      ++i;
    else
      break;
  }
  job.expected.reset();
  job.data.reset();
  job.small.reset();
  return {};
}

Result<> Tuner::check_candidate(const Job& job, const Candidate& candidate) {
  const TrialData& data = *job.data;
  Device& device = *options_.device;
  LATHE_ASSIGN(Emission emission, job.small->emit(*candidate.tactic, candidate.config));
  for (const Packed& packed : emission.packed) packed.content(threads_of(options_.most_threads));
  LATHE_ASSIGN(const auto trial, Trial::make(device, modules_, std::move(emission), data, *queue_));
  LATHE_TRY(data.poison_outputs(device, *queue_));
  LATHE_TRY(trial->run(*queue_));
  LATHE_TRY(device.wait(*queue_));
  const std::vector<Operand>& outputs = data.problem().outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    LATHE_ASSIGN(const Tensor got, data.gather_output(i, device, *queue_));
    const double levels = is_integer(outputs[i].dtype) ? 1 : 0;
    if (!agrees(got, (**job.expected)[i], tolerance(data.problem()), levels))
      return fail(ErrorCode::no_tactic, "its result{} differs from the plain evaluation",
                  outputs.size() > 1 ? fmt::format(" {}", i) : "");
  }
  return {};
}

// Empty where the timing cache is not editable, or the job has no entry in it.
std::string Tuner::entry_text(const Job& job) const {
  if (!options_.keeps_candidates || !(job.measured || job.choice.from_cache)) return {};
  const auto digits = [](uint64_t half) {  // as the bytes lie in the key
    std::string text;
    for (int i = 0; i < 8; ++i) text += fmt::format("{:02x}", half >> 8 * i & 0xff);
    return text;
  };
  return fmt::format("(key: 0x{}{}): {}", digits(job.key.high), digits(job.key.low), job.text);
}

TimingCache::Entry Tuner::entry_of(const Job& job) const {
  TimingCache::Entry entry;
  for (const Candidate& candidate : job.candidates)
    entry.candidates.push_back(
        {std::string(candidate.tactic->name()), candidate.config.text, static_cast<float>(candidate.microseconds)});
  entry.chosen = entry.candidates[0];
  if (!options_.keeps_candidates) entry.candidates.clear();
  return entry;
}

void Tuner::settle(Job& job) {
  from_cache_ += job.choice.from_cache;
  measured_ += job.measured;
  if (!job.candidates.empty()) {  // every candidate may have failed its check
    const Candidate& best = job.candidates[0];
    job.choice.tactic = best.tactic;
    job.choice.config = best.config;
    job.choice.microseconds = best.microseconds;
    for (const Candidate& candidate : job.candidates)
      job.choice.finalists.push_back(
          {describe(*candidate.tactic, candidate.config), candidate.config.predicted_us, candidate.microseconds});
    if (job.measured && options_.cache) options_.cache->insert(job.key, entry_of(job));
    job.choice.cache_entry = entry_text(job);
  }
  known_[job.text] = std::move(job.choice);
}

Result<> Tuner::time(const std::vector<std::unique_ptr<Trial>>& trials, std::span<Candidate> candidates, int rounds) {
  std::vector<std::vector<double>> times(trials.size());
  for (const auto& trial : trials) LATHE_TRY(trial->run(*queue_));  // warm-up
  double fastest = kUnlimited;                                      // of the first round
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < trials.size(); ++i) {
      if (round > 0 && times[i][0] > kOutOfTheRunning * fastest) continue;
      LATHE_ASSIGN(const std::vector<double> sample,
                   options_.device->time(
                       *queue_, [&](Queue& queue) { return trials[i]->run(queue); }, options_.repeats));
      times[i].insert(times[i].end(), sample.begin(), sample.end());
      if (round == 0) fastest = std::min(fastest, times[i][0]);
    }
  for (size_t i = 0; i < trials.size(); ++i) {
    std::sort(times[i].begin(), times[i].end());
    // A low quantile, for noise only ever adds; rounded as the timing cache keeps it, so that both give the same plan.
    candidates[i].microseconds = static_cast<float>(times[i][times[i].size() / 3]);
    options_.log->print(Severity::verbose, "  {} {}: {:.1f} us, predicted {:.1f}", candidates[i].tactic->name(),
                        candidates[i].config.text, candidates[i].microseconds, candidates[i].config.predicted_us);
  }
  return {};
}

}  // namespace lathe
