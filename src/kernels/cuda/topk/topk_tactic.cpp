// SPDX-License-Identifier: Apache-2.0
// The k largest or smallest elements of rows, in order.
#include <algorithm>
#include <bit>
#include <cmath>

#include "base/divide.h"
#include "kernels/axes_tactic.h"
#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/index_space.h"
#include "kernels/cuda/match.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda {
namespace {

constexpr int64_t kMaxK = 2048;
constexpr int64_t kCountBytes = 4 * (3 * 256 + 1);  // kCounts in topk.cuh

size_t axis_of(const Problem& problem) {
  return static_cast<size_t>(axis_from_start(problem.attrs<TopkAttrs>().axis, problem.inputs[0]));
}

int64_t k_of(const Problem& problem) { return problem.outputs[0].dims[axis_of(problem)].as_constant().value_or(-1); }

// Tensor 0 is x, 1 are the values, 2 the indices. There is one reduced dimension, which is k long in the latter two.
IndexSpace space_of(const Problem& problem) {
  IndexSpace space(problem.inputs[0]);
  for (const Operand& output : problem.outputs) space.add(output);
  space.reduce(axis_of(problem));
  space.simplify();
  return space;
}

// The choice.
struct Split {
  int64_t threads = 256, splits = 1;  // of a row; where it is split, threads add up
};
constexpr int64_t kPartThreads = 256;

// How a block finds the best of at most so many keys, or of any number (topk.cuh).
struct Selection {
  int64_t k, keys, threads;

  // Twice as many maxima as are wanted: then some 1.4 * k keys are candidates.
  int64_t groups() const {
    return std::max<int64_t>(32, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * k))));
  }
  int64_t own() const { return ceil_div(keys, threads); }
  int64_t room() const { return k * own() * (threads / groups()); }
  bool is_by_maxima() const {
    constexpr int64_t kMostOwn = 16, kMostRoom = 2048;
    return keys > 0 && own() <= kMostOwn && groups() <= threads && room() <= kMostRoom;
  }
  std::string type() const {
    if (is_by_maxima()) return fmt::format("ByMaxima<{}, {}, {}, {}>", threads, k, groups(), own());
    return fmt::format("ByDigits<{}, {}>", threads, k);
  }
  int64_t shared_bytes() const { return is_by_maxima() ? 8 * (groups() + room() + 2) : kCountBytes; }
  double clocks(int64_t own) const;  // with so many keys
};

// Of a block whose threads take so many keys: each of some four passes reads all of them, and the best are sorted.
double clocks_of(int64_t keys, int64_t threads, int64_t sorted) {
  constexpr double kPassClocks = 250, kLoadClocks = 700, kKeyClocks = 40, kSortClocks = 60;
  const double own = std::ceil(static_cast<double>(keys) / static_cast<double>(threads));
  const double stages = std::log2(static_cast<double>(std::max<int64_t>(sorted, 1)));
  return 5 * (kPassClocks + kKeyClocks * own) + kLoadClocks * std::ceil(own / 4) +
         kSortClocks * stages * (stages + 1) / 2 *
             std::ceil(static_cast<double>(sorted) / (2 * static_cast<double>(threads)));
}

double Selection::clocks(int64_t own) const {
  if (!is_by_maxima()) return clocks_of(own, threads, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(k))));
  constexpr double kPassClocks = 300, kLoadClocks = 1000, kKeyClocks = 10, kRankClocks = 5;
  return 3 * kPassClocks + kLoadClocks + kKeyClocks * static_cast<double>(ceil_div(own, threads)) +
         kRankClocks * static_cast<double>(groups() + 2 * k);
}

struct Best {
  IndexSpace space;
  int64_t k;
  bool largest;

  int64_t room() const { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(k))); }
  // Of a row, or of each of so many parts of it; among what these leave.
  Selection selection(int64_t threads, int64_t parts) const {
    return {k, ceil_div(space.length().as_constant().value_or(0), parts), threads};
  }
  Selection among(int64_t threads, int64_t parts) const { return {k, parts * k, threads}; }
  Source begin() const {
    Source source("topk/topk.cuh");
    source.input(0, space.view(0), "X");
    return source;
  }
  Operand result_view(size_t index) const {
    Operand view = space.view(index);
    view.dims.back() = k;
    view.opt_dims.back() = k;
    return view;
  }
};

std::vector<Config> configs(const Problem& problem, const Best& best) {
  const int64_t length = best.space.opt_length(), rows = std::max<int64_t>(best.space.opt_rows(), 1);
  const Target& target = problem.target;
  const auto waves = [&](int64_t blocks, int64_t threads) {
    return std::max(1.0, static_cast<double>(blocks * threads) / static_cast<double>(target.busy_threads()));
  };
  std::vector<Config> configs;
  for (const int64_t threads : {128, 256, 1024})
    configs.push_back(
        {.text = fmt::format("{} threads", threads),
         .predicted_us =
             target.launch_us + waves(rows, threads) * best.selection(threads, 1).clocks(length) / target.clock_mhz,
         .choice = Split{threads, 1}});
  constexpr int64_t kSumThreads = 512;
  int64_t before = 1;
  for (const int64_t blocks : {target.cores / 2, target.cores, 2 * target.cores}) {
    const int64_t splits = std::min<int64_t>({blocks / rows, length / (4 * std::max(best.k, kPartThreads)), 128});
    if (splits <= before) continue;
    before = splits;
    const double clocks =
        waves(rows * splits, kPartThreads) * best.selection(kPartThreads, splits).clocks(length / splits) +
        waves(rows, kSumThreads) * best.among(kSumThreads, splits).clocks(splits * best.k);
    configs.push_back({.text = fmt::format("{} splits", splits),
                       .predicted_us = 2 * target.launch_us + clocks / target.clock_mhz,
                       .choice = Split{kSumThreads, splits}});
  }
  return best_first(std::move(configs));
}

Result<Emission> emit(const Problem&, const Best& best, const Config& config) {
  const auto [threads, splits] = config.as<Split>();
  Emission emission;
  emission.inputs = {{StepInput::input, 0}};
  Source source = best.begin();
  if (splits > 1) {
    Source first = best.begin();
    first.workspace("candidates", 0, "uint64");
    source.workspace("candidates", 0, "uint64");
    const Selection part = best.selection(kPartThreads, splits);
    const std::string call = fmt::format("select_candidates<{}, {}, {}, {}, {}, {}>(X_, candidates);", part.type(),
                                         best.space.kept(), best.largest, kPartThreads, best.k, splits);
    emission.launches.push_back(
        first.finish(call, {best.space.rows(), splits, 1}, kPartThreads, static_cast<uint32_t>(part.shared_bytes())));
    emission.workspace = best.space.rows() * (splits * best.k * 8);
  }
  source.output(0, best.result_view(1), "Values");
  source.output(1, best.result_view(2), "Indices");
  const Selection selection = splits > 1 ? best.among(threads, splits) : best.selection(threads, 1);
  const std::string sizes = fmt::format("{}, {}, {}", threads, best.room(), best.k);
  const std::string call = splits > 1 ? fmt::format("select_among<{}, {}, {}, {}>(X_, candidates, Values_, Indices_);",
                                                    selection.type(), best.space.kept(), sizes, splits)
                                      : fmt::format("select_best<{}, {}, {}, {}>(X_, Values_, Indices_);",
                                                    selection.type(), best.space.kept(), best.largest, sizes);
  emission.launches.push_back(source.finish(call, {best.space.rows(), 1, 1}, static_cast<uint32_t>(threads),
                                            static_cast<uint32_t>(8 * best.room() + selection.shared_bytes())));
  return emission;
}

}  // namespace

Matched match_topk(const Problem& problem) {
  if (!problem.is(OpKind::topk)) return refuse("not a choice of the best");
  if (auto reason = unsupported_feature(problem, {.several_results = true})) return refuse(*std::move(reason));
  const DType dtype = problem.inputs[0].dtype;
  if (size_of(dtype) > 4) return refuse(fmt::format("its input is {}", name_of(dtype)));
  if (!problem.program.is_identity()) return refuse("this kernel has no epilogue");
  if (problem.inputs[0].rank() == 0) return refuse("a scalar");
  const int64_t k = k_of(problem);
  if (k < 0) return refuse("k is not constant");
  if (k == 0 || k > kMaxK) return refuse(fmt::format("k is {}, 1 to {} are handled", k, kMaxK));
  return match_form(problem, Best{space_of(problem), k, problem.attrs<TopkAttrs>().largest}, configs, emit);
}

}  // namespace lathe::cuda
