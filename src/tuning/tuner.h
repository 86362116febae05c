// SPDX-License-Identifier: Apache-2.0
// Chooses a tactic and configuration for a problem: from the timing cache, by measuring, or by the cost model alone.
#pragma once

#include <functional>
#include <span>
#include <unordered_map>

#include "base/log.h"
#include "tuning/matches.h"
#include "tuning/modules.h"
#include "tuning/timing_cache.h"

namespace lathe {

struct TunerOptions {
  std::shared_ptr<Device> device;    // where candidates are measured; null = nowhere: the cost model decides
  Compiler* compiler = nullptr;      // of device code; null for devices whose kernels the library holds
  Target target;                     // what tactics choose for
  double budget_seconds = 60;        // after this, the cost model decides; 0 = never measure
  bool tf32 = false;                 // see Problem
  bool sparsity = false;             // kernels may leave out zeros of 2:4 sparse weights
  bool weights_from_memory = false;  // a run reads more of them than the last cache holds: none finds any there
  TimingCache* cache = nullptr;      // read and extended; may be null
  bool keeps_candidates = false;     // in the cache: each that was measured and is right, for somebody to choose from
  std::string timing_key;            // what timings depend on besides the problem: Device::timing_key()
  Log* log = nullptr;
  size_t most_workspace = SIZE_MAX;  // bytes; candidates that need more are refused
  size_t most_shared = SIZE_MAX;     // bytes of a block's shared memory, likewise
  size_t most_measuring = SIZE_MAX;  // bytes that the candidates of a problem take while they are measured
  size_t most_at_once = SIZE_MAX;    // bytes of the host that candidates of a problem have packed at one time
  std::vector<int64_t> largest;      // values of the graph's symbols that need most; empty = as when measured
  size_t most_finalists = 0;         // candidates of a problem that are measured; 0 = the tuner decides
  size_t finalists_factor = 1;       // times as many as the tuner decides; all where that is more than there are
  int repeats = 1;                   // measurements of a candidate in each round
  size_t most_threads = SIZE_MAX;    // that compile and evaluate; at most one for each core
  void* stream = nullptr;            // the application's, to measure on; null = one of the tuner's own
};

struct Choice {
  const Tactic* tactic = nullptr;  // null = every tactic refused
  Config config;
  double microseconds = 0;  // measured (also by an earlier build); 0 = not measured
  bool from_cache = false;
  double seconds = 0;  // that measuring took; 0 where this build did not measure
  std::vector<std::string> refusals;
  std::string cache_entry;  // "(key: 0x<32 digits>): <problem>" where somebody may change it there; else empty
  // The chosen one, and those that it was chosen from.
  struct Finalist {
    std::string tactic;  // "conv: 6x64 kb512"
    double predicted_us = 0;
    double microseconds = 0;  // measured; 0 = not measured
  };
  std::vector<Finalist> finalists;
};

// "conv: 6x64 kb512"
std::string describe(const Tactic& tactic, const Config& config);

class Trial;
class TrialData;
struct Expected;

class Tuner {
 public:
  // Told how far a long wait has come; an error ends it.
  using Progress = std::function<Result<>(std::string_view phase, double fraction)>;

  explicit Tuner(const TunerOptions& options);
  ~Tuner();
  // A choice for each problem. They are decided together, so that their device code is compiled on all cores; where
  // time runs out before the end, it went to what takes longest, in all its steps. A problem that was decided before
  // keeps its choice.
  Result<std::vector<Choice>> choose(std::span<Matches* const> problems, const Progress& progress);
  // Why the memory of a step for the problem is above a limit; nullopt = it is not.
  std::optional<std::string> excess_of(const Problem& problem, const Emission& emission,
                                       std::span<const int64_t> symbols) const;
  // The values of the graph's symbols for which memory is judged.
  const std::vector<int64_t>& largest(const Problem& problem) const {
    return options_.largest.empty() ? problem.symbols : options_.largest;
  }
  Modules& modules() { return modules_; }
  int measured() const { return measured_; }
  int from_cache() const { return from_cache_; }
  double seconds() const { return seconds_; }

 private:
  struct Candidate {
    const Tactic* tactic = nullptr;
    Config config;
    double microseconds = 0;
    bool fits = false;  // its memory is known to be within the limits
  };
  struct Job {
    Matches* matches = nullptr;
    const Problem& problem() const { return matches->problem(); }
    std::string text;
    TimingCache::Key key;
    Choice choice;
    std::vector<Candidate> candidates;  // best guess first
    bool measured = false;
    std::unique_ptr<Matches> small;                           // of a smaller problem, on which the fastest is checked
    std::unique_ptr<TrialData> data;                          // of that
    std::unique_ptr<Result<std::vector<Expected>>> expected;  // its plain evaluation, of each output
  };
  static void add_candidates(Job& job);
  static bool is_predicted_faster(const Candidate& a, const Candidate& b);
  void keep_finalists(std::vector<Candidate>& candidates, size_t most) const;
  size_t finalists_of(const Job& job) const;
  std::optional<std::string> excess_of(const Job& job, const Candidate& candidate) const;
  bool drop_too_large(Job& job, size_t most) const;
  void look_up(Job& job) const;
  Result<> decide(std::span<Job> jobs, const Progress& progress);
  Result<> compile(std::span<Job> jobs, const Progress& progress);
  size_t checked_together(std::span<Job> jobs) const;
  Result<> prepare_checks(std::span<Job> jobs, double done, const Progress& progress);
  Result<> compile(Matches& matches, const Candidate& candidate);
  Result<bool> measure(Job& job);
  Result<std::vector<std::unique_ptr<Trial>>> make_trials(Job& job, size_t first, const TrialData& data,
                                                          std::vector<Candidate>& too_large);
  void log_skipped(const Job& job, const Candidate& candidate, std::string_view why) const;
  Result<> time(const std::vector<std::unique_ptr<Trial>>& trials, std::span<Candidate> candidates, int rounds);
  Result<> check(Job& job);
  Result<> check_candidate(const Job& job, const Candidate& candidate);
  TimingCache::Entry entry_of(const Job& job) const;
  std::string entry_text(const Job& job) const;
  void drop_unbuildable(Job& job);
  void leave_out(Job& job, size_t candidate, const Error& error) const;
  void settle(Job& job);
  bool limits_memory() const { return options_.most_workspace != SIZE_MAX || options_.most_shared != SIZE_MAX; }
  bool may_measure() const { return options_.device && seconds_ < options_.budget_seconds; }

  TunerOptions options_;
  Modules modules_;
  std::unique_ptr<Queue> queue_;
  std::unordered_map<std::string, Choice> known_;  // problems of this build
  int measured_ = 0;
  int from_cache_ = 0;
  double seconds_ = 0;
};

}  // namespace lathe
