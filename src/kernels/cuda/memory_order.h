// SPDX-License-Identifier: Apache-2.0
// Problems with their dimensions in the order in which the output lies in memory: neighbouring threads of kernels that
// count output elements then work on neighbouring elements, whatever the layout.
#pragma once

#include "tuning/tactic.h"

namespace lathe::cuda {

// The dimensions from the slowest to the fastest.
std::vector<size_t> memory_order(const Operand& operand);
Operand permuted(const Operand& operand, const std::vector<size_t>& order);
// What Source::fusion() needs, permuted: the output and the program with its operands.
Problem permuted_epilogue(const Problem& problem, const std::vector<size_t>& order);
// A function of a dimension in device code, a member of a struct: "static constexpr long name(int i)".
std::string dim_function(std::string_view name, const std::vector<int64_t>& values);

// Runs of W neighbours along the last dimension of `y`, the last of them short if need be: how many there are, and how
// many blocks of `threads` take one each.
Expr run_blocks(const Operand& y, int64_t width, int64_t threads);

// A way to share runs among threads: Config::values is {threads, width}.
struct RunShape {
  int64_t threads = 256, width = 1;
  static RunShape of(const Config& config) { return {config.values[0], config.values[1]}; }
};
// Configurations for runs that are at most `widest` long; `taps` input elements are read for each element of `y`.
std::vector<Config> run_configs(const Target& target, const Operand& y, int64_t widest, int64_t taps);
// The length for gathering kernels: by vectors of x where the last dimension stays as it is, else some.
int64_t widest_run(const Operand& x, const Operand& y, bool last_stays);

}  // namespace lathe::cuda
