// SPDX-License-Identifier: Apache-2.0
// Chooses a tactic and configuration for a problem: from the timing cache, by measuring, or by the cost model alone.
#pragma once

#include <unordered_map>

#include "base/log.h"
#include "tuning/modules.h"
#include "tuning/tactic.h"
#include "tuning/timing_cache.h"

namespace lathe {

struct TunerOptions {
  std::shared_ptr<Device> device;  // where finalists are measured; null = nowhere: the cost model decides
  Compiler* compiler = nullptr;    // of device code; null for devices whose kernels the library holds
  int threads = 1;
  double budget_seconds = 60;    // after this, the cost model decides; 0 = never measure
  bool tf32 = false;             // see Problem
  TimingCache* cache = nullptr;  // read and extended; may be null
  std::string timing_key;        // what timings depend on besides the problem: Device::timing_key()
  Log* log = nullptr;
};

struct Choice {
  const Tactic* tactic = nullptr;  // null = every tactic refused
  Config config;
  double microseconds = 0;  // measured (also by an earlier build); 0 = not measured
  bool from_cache = false;
  std::vector<std::string> refusals;
};

class Trial;
class TrialData;

class Tuner {
 public:
  explicit Tuner(const TunerOptions& options);
  ~Tuner();
  Result<Choice> choose(const Problem& problem, const TacticList& tactics);
  Modules& modules() { return modules_; }
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
  struct Emissions {
    Emission small, full;
  };
  static Result<Emissions> emit(const Finalist& finalist, const TrialData& data, const TrialData& small);
  std::vector<Result<Emissions>> emit_and_compile(const std::vector<Finalist>& finalists, const TrialData& data,
                                                  const TrialData& small);
  Result<std::unique_ptr<Trial>> make_trial(Result<Emissions> emitted, const TrialData& data, const TrialData& small,
                                            const Tensor& expected);
  Result<> time(const std::vector<std::unique_ptr<Trial>>& trials, std::vector<Finalist>& finalists);

  TunerOptions options_;
  Modules modules_;
  std::unique_ptr<Queue> queue_;
  std::unordered_map<std::string, Choice> known_;  // problems met in this build
  int measured_ = 0;
  int from_cache_ = 0;
  double seconds_ = 0;
};

}  // namespace lathe
