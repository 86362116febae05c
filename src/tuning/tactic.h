// SPDX-License-Identifier: Apache-2.0
// A tactic: one way to run a kind of region. Asked for a problem, it refuses with a reason or gives a match, which
// lists the configurations that there are, with predicted times, and writes the step of one.
#pragma once

#include <any>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>

#include "device/launch.h"
#include "tuning/problem.h"

namespace lathe {

struct Config {
  std::string text = {};    // printable and unique within the tactic: what logs and timing caches show
  double predicted_us = 0;  // by the cost model
  std::any choice = {};     // of the tactic's own type
  bool sparse = false;      // leaves out zeros of the weights (Problem::sparse)

  template <class T>
  const T& as() const {
    return *std::any_cast<T>(&choice);
  }
};

// Where a step's input comes from.
struct StepInput {
  // problem.inputs[index], problem.operands[index], packed[index], problem.inputs[index].operands[of_program]; of the
  // problem of an inlined step, where it is that step's
  enum Kind { input, operand, packed, input_operand } kind = input;
  size_t index = 0;
  bool transposed = false;                       // read with its last two dimensions swapped
  size_t of_program = 0;                         // which operand, of an input_operand
  std::optional<size_t> inlined = std::nullopt;  // problem.inlined[*inlined]
};
// What of the problem is read; not of what is packed.
const Operand& operand_of(const Problem& problem, const StepInput& input);

// Elements of weights in another order, and zeros between them.
struct WeightsOrder {
  Packing packing;
  Known weights;
};
// Weights as a kernel reads them: stored in the plan.
class Packed {
 public:
  Packed() = default;
  Packed(Tensor packed, std::optional<WeightsOrder> as_elements = std::nullopt)
      : order(std::move(as_elements)), content_(std::move(packed)) {}
  // What the order makes of its weights when somebody asks for the elements: of most candidates nobody does. Fails
  // where the order does not fit them.
  static Result<Packed> later(WeightsOrder order);

  DType dtype() const { return content_.dtype(); }
  const Dims& dims() const { return content_.dims(); }
  size_t bytes() const { return content_.bytes(); }
  const Tensor& content(int threads = 1) const;  // on so many threads, where the elements are not there yet
  void reshape(const Dims& dims);                // the same elements under other dims

  std::optional<WeightsOrder> order;  // none = they are computed

 private:
  Tensor content_;                           // memory alone, unless the elements are there
  std::shared_ptr<std::once_flag> pending_;  // of what copies share; null = the elements are there
};

// One launch and the source text of the device code that it runs; of a library's function none.
struct SourceLaunch {
  std::string source;
  Launch launch;  // its code index is filled in once the source is compiled
};

struct Emission {
  std::string kernel;           // empty = the tactic's name
  std::vector<int64_t> params;  // encode_params() of the kernel's own type
  bool with_program = true;     // the region's program goes into the step
  std::vector<StepInput> inputs;
  std::vector<Packed> packed;
  std::vector<SourceLaunch> launches;  // device code, in order; their args refer to `inputs` and the problem's outputs
  Expr workspace;                      // bytes that the launches share
};

// What is packed, its elements too, and what it follows from where the weights can be replaced.
Known known_of(const Packed& packed);

// The program that the step's record has; null = none.
const Program* program_of(const Problem& problem, const Emission& emission);

// A problem that a tactic takes. Refers to it, and is used while it lives.
class Match {
 public:
  virtual ~Match() = default;
  virtual std::vector<Config> configs() const = 0;  // best guess first
  // `config`: from this tactic's match of this problem, or of one that differs in sizes alone.
  virtual Result<Emission> emit(const Config& config) const = 0;
};

// Why a tactic cannot run a problem, in words for the user. Layout-dependent reasons included.
struct Refusal {
  std::string reason;
};
using Matched = tl::expected<std::unique_ptr<Match>, Refusal>;
inline tl::unexpected<Refusal> refuse(std::string reason) { return tl::unexpected(Refusal{std::move(reason)}); }

// A match without a choice. Where its step is work, it is made when it is asked for.
Matched match_one(Emission emission, double predicted_us);
Matched match_later(std::function<Result<Emission>()> emit, double predicted_us);

class Tactic {
 public:
  virtual ~Tactic() = default;
  virtual std::string_view name() const = 0;
  virtual Matched match(const Problem& problem) const = 0;
};

// A tactic that is no more than a function.
class FunctionTactic final : public Tactic {
 public:
  FunctionTactic(std::string_view name, Matched (*match)(const Problem&)) : name_(name), match_(match) {}
  std::string_view name() const override { return name_; }
  Matched match(const Problem& problem) const override { return match_(problem); }

 private:
  std::string_view name_;
  Matched (*match_)(const Problem&);
};

using TacticList = std::vector<const Tactic*>;

}  // namespace lathe
