// SPDX-License-Identifier: Apache-2.0
// A tactic: one way to run a kind of region. It refuses with a reason, or lists configurations, or turns one into a
// step.
#pragma once

#include <memory>
#include <string_view>

#include "device/launch.h"
#include "tuning/problem.h"

namespace lathe {

struct Config {
  std::string text;             // printable and unique within the tactic: what logs and timing caches show
  std::vector<int64_t> values;  // the tactic's own
  double predicted_us = 0;      // by the cost model
};

// Where a step's input comes from.
struct StepInput {
  // problem.inputs[index], problem.operands[index], packed[index], problem.prologue_operands[index]
  enum Kind { input, operand, packed, prologue } kind = input;
  size_t index = 0;
  bool transposed = false;  // read with its last two dimensions swapped
};

// One launch and the source text of the device code that it runs; of a library's function none.
struct SourceLaunch {
  std::string source;
  Launch launch;  // its code index is filled in once the source is compiled
};

struct Emission {
  std::string kernel;
  std::vector<int64_t> params;
  bool with_program = true;  // the region's program goes into the step
  std::vector<StepInput> inputs;
  std::vector<Tensor> packed;          // prepacked weights: stored in the plan
  std::vector<SourceLaunch> launches;  // device code, in order; their args refer to `inputs` and the problem's outputs
  Expr workspace;                      // bytes that the launches share
};

class Tactic {
 public:
  virtual ~Tactic() = default;
  virtual std::string_view name() const = 0;
  // Why this tactic cannot run the problem, in words for the user; nullopt = it can. Layout-dependent reasons included.
  virtual std::optional<std::string> refuse(const Problem& problem) const = 0;
  // Whether it also takes ops of several results; others are not asked.
  virtual bool makes_several_results() const { return false; }
  // Whether it computes that input as it reads; tactics that do not are not asked for problems with such a prologue.
  virtual bool takes_prologue(size_t /*input*/) const { return false; }
  // Whether it writes results whose dimensions have parts (Operand::parts); others are not asked.
  virtual bool writes_parts() const { return false; }
  // Whether it reads that input where it lies, by strides, though its dimensions have parts; others are not asked.
  virtual bool reads_parts(size_t /*input*/) const { return false; }
  // Whether its program's operands may have padding; others are not asked.
  virtual bool reads_padding() const { return false; }
  virtual std::vector<Config> configs(const Problem& problem) const = 0;  // best guess first
  virtual Result<Emission> emit(const Problem& problem, const Config& config) const = 0;
};

using TacticList = std::vector<const Tactic*>;

}  // namespace lathe
