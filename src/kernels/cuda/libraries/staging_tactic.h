// SPDX-License-Identifier: Apache-2.0
// What tactics that call a library share: results that it leaves in the workspace for a pointwise launch to finish, and
// what it has answered.
#pragma once

#include <map>
#include <mutex>
#include <span>

#include "tuning/tactic.h"

namespace lathe::cuda {

// A region's program on results that a library left in the step's workspace, as a launch of its own.
class Finishing {
 public:
  // Results of `dtype`, dense in `layout`, of the dims of the problem's output.
  explicit Finishing(const Problem& problem, DType dtype = DType::f32, Layout layout = Layout::linear);
  Finishing(const Finishing&) = delete;  // the match refers to the region

  const std::optional<std::string>& refusal() const { return refusal_; }  // why there is no such launch
  const Operand& staged() const { return region_.operands[0]; }
  Expr bytes() const;  // from the workspace's start, a multiple of 256: where the library's own memory begins
  double predicted_us() const { return config_.predicted_us; }
  // Adds the launch. The problem's operands are the step's inputs from `first_operand` on.
  Result<> add(size_t first_operand, Emission& emission) const;

 private:
  Problem region_;
  std::optional<std::string> refusal_;
  std::unique_ptr<Match> match_;
  Config config_;
};

// An instruction of a program in which each takes what the one before it gave, and the problem's operand that it adds
// or multiplies: one number for each index of a dimension.
struct ChainLink {
  const Instruction* instruction;
  std::optional<size_t> operand;
};
// nullopt where the program is no such chain. `dimension`: of the output. Only constants surely lie apart from the
// result, so that a library may read them while it writes.
std::optional<std::vector<ChainLink>> chain_of(const Problem& problem, size_t dimension);

// The launch's numbers while tuning.
Result<> evaluate_numbers(const std::vector<LaunchArg>& args, std::span<const int64_t> symbols,
                          std::span<int64_t> values);

// What a library has answered to the numbers of a call.
template <class Values, class Answer>
class LibraryAnswers {
 public:
  // `ask(values)` gives its answers. The numbers are those under the symbols' values.
  template <class Ask>
  Result<std::vector<Answer>> find(const std::vector<LaunchArg>& args, std::span<const int64_t> symbols,
                                   const Ask& ask) {
    Values values{};
    LATHE_TRY(evaluate_numbers(args, symbols, values));
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find(values); known != known_.end()) return known->second;
    LATHE_ASSIGN(std::vector<Answer> answers, ask(values));
    return known_[values] = std::move(answers);
  }

 private:
  std::mutex mutex_;
  std::map<Values, std::vector<Answer>> known_;
};

// The bytes that the first element's address is surely a multiple of; 16 at most.
int64_t alignment_of(const Operand& operand);

LaunchArg number_arg(Expr value);
LaunchArg float_arg(float value);  // its bits

}  // namespace lathe::cuda
