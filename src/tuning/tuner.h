// SPDX-License-Identifier: Apache-2.0
// Chooses a tactic and configuration for a problem: from the timing cache, by measuring, or by the cost model alone.
#pragma once

#include <unordered_map>

#include "base/log.h"
#include "device/cpu/kernel.h"
#include "tuning/tactic.h"
#include "tuning/timing_cache.h"

namespace lathe {

struct TunerOptions {
  int threads = 1;
  double budget_seconds = 60;    // after this, the cost model decides; 0 = never measure
  TimingCache* cache = nullptr;  // read and extended; may be null
  std::string device;            // what timings depend on: CPU model, ISA level, library version
  Result<std::unique_ptr<cpu::Kernel>> (*find_kernel)(std::string_view name, const cpu::Record& record) = nullptr;
  cpu::ThreadPool* pool = nullptr;  // null = never measure
  Log* log = nullptr;
};

struct Choice {
  const Tactic* tactic = nullptr;  // null = every tactic refused
  Config config;
  double microseconds = 0;  // measured (also by an earlier build); 0 = not measured
  bool from_cache = false;
  std::vector<std::string> refusals;
};

class Tuner {
 public:
  explicit Tuner(const TunerOptions& options);
  Result<Choice> choose(const Problem& problem, const TacticList& tactics);
  int measured() const { return measured_; }
  int from_cache() const { return from_cache_; }
  double seconds() const { return seconds_; }

 private:
  struct Finalist {
    const Tactic* tactic;
    Config config;
    double microseconds = 0;
  };
  Result<bool> measure(const Problem& problem, std::vector<Finalist>& finalists);

  TunerOptions options_;
  std::unordered_map<std::string, Choice> known_;  // problems met in this build
  int measured_ = 0;
  int from_cache_ = 0;
  double seconds_ = 0;
};

}  // namespace lathe
