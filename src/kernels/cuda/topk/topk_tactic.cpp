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
constexpr int64_t kCountBytes = 4 * (3 * 256 + 4);  // kCounts in topk.cuh
constexpr int64_t kRanked = 512;                    // as there

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
struct Way {
  int64_t threads = 256;  // of a row; where there are two launches, of the second one
  int64_t splits = 1;     // of which the best are found first
  int64_t group = 0;      // neighbours of which the best one is found first
};
constexpr int64_t kPartThreads = 256;  // of the first launch

struct Best {
  IndexSpace space;
  int64_t k;
  bool largest;

  // For some keys more than are wanted, where they are put in order by counting.
  int64_t room() const {
    const auto power = [](int64_t n) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n))); };
    return std::max<int64_t>(power(2 * k) <= kRanked ? power(2 * k) : power(k), 64);
  }
  int64_t most() const { return k + (room() - k) / 4; }  // kMost in topk.cuh
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

constexpr double kPassClocks = 350, kLoadClocks = 700, kKeyClocks = 40;

// Of a pass of a block over so many keys.
double pass_clocks(int64_t keys, int64_t threads) {
  return kPassClocks + kKeyClocks * static_cast<double>(ceil_div(keys, threads));
}

// Of a block that selects of so many keys, which some four passes read; only the first one waits for memory.
double select_clocks(int64_t keys, int64_t threads) {
  return 4 * pass_clocks(keys, threads) + kLoadClocks * static_cast<double>(ceil_div(keys, 4 * threads));
}

double order_clocks(const Best& best, int64_t threads) {
  constexpr double kWriteClocks = 400, kRankClocks = 15, kSortClocks = 60;
  if (best.room() <= kRanked)
    return kWriteClocks +
           kRankClocks * static_cast<double>(ceil_div(best.k, threads / 32) * (2 + ceil_div(best.k, 32)));
  const double stages = std::log2(static_cast<double>(best.room()));
  return kWriteClocks +
         kSortClocks * stages * (stages + 1) / 2 * static_cast<double>(ceil_div(best.room(), 2 * threads));
}

// Neighbours in a group: as many keys are read again as there are groups.
int64_t group_of(int64_t length, int64_t k) {
  int64_t group = 32;
  while (group < 512 && 2 * group * group * k <= length) group *= 2;
  return group;
}

std::vector<Config> configs(const Problem& problem, const Best& best) {
  const int64_t length = best.space.opt_length(), rows = std::max<int64_t>(best.space.opt_rows(), 1);
  const Target& target = problem.target;
  const auto waves = [&](int64_t blocks, int64_t threads) {
    return std::max(1.0, static_cast<double>(blocks * threads) / static_cast<double>(target.busy_threads()));
  };
  std::vector<Config> configs;
  const auto add = [&](std::string text, int launches, double clocks, const Way& way) {
    configs.push_back({.text = std::move(text),
                       .predicted_us = launches * target.launch_us + clocks / target.clock_mhz,
                       .choice = way});
  };
  for (const int64_t threads : {128, 256, 1024}) {
    const double clocks = select_clocks(length, threads) + order_clocks(best, threads);
    add(fmt::format("{} threads", threads), 1, waves(rows, threads) * clocks, Way{.threads = threads});
  }
  constexpr int64_t kSumThreads = 512;
  int64_t before = 1;
  for (const int64_t blocks : {target.cores / 2, target.cores, 2 * target.cores}) {
    const int64_t splits = std::min<int64_t>({blocks / rows, length / (4 * std::max(best.k, kPartThreads)), 128});
    if (splits <= before) continue;
    before = splits;
    const double last = select_clocks(splits * best.k, kSumThreads) + order_clocks(best, kSumThreads);
    add(fmt::format("{} splits", splits), 2,
        waves(rows * splits, kPartThreads) * select_clocks(length / splits, kPartThreads) +
            waves(rows, kSumThreads) * last,
        Way{.threads = kSumThreads, .splits = splits});
  }
  const int64_t group = group_of(length, best.k), groups = ceil_div(length, group);
  if (best.room() > kRanked || groups < 4 * best.k) return best_first(std::move(configs));
  for (const int64_t threads : {512, 1024}) {
    const int64_t again = best.most() * group, own = group / 32;  // of a lane
    const double first = kLoadClocks + kKeyClocks * static_cast<double>(5 + own);
    const double last = select_clocks(groups, threads) + pass_clocks(again, threads) +
                        kLoadClocks * static_cast<double>(ceil_div(again, 4 * threads)) + order_clocks(best, threads);
    add(fmt::format("groups of {}, {} threads", group, threads), 2,
        waves(rows * groups, 32) * first + waves(rows, threads) * last, Way{.threads = threads, .group = group});
  }
  return best_first(std::move(configs));
}

// The first of two launches, which leaves keys in the workspace, and the memory for these.
void emit_first(const Best& best, const Way& way, Emission& emission) {
  Source source = best.begin();
  source.workspace("keys", 0, "uint64");
  const Expr rows = best.space.rows();
  const int kept = best.space.kept();
  if (way.group > 0) {
    const Expr groups = rows * ceildiv(best.space.length(), way.group);
    emission.launches.push_back(source.finish(
        fmt::format("best_of_groups<{}, {}, {}, {}>(X_, keys);", kept, best.largest, kPartThreads, way.group),
        {ceildiv(groups, kPartThreads / 32), 1, 1}, kPartThreads, 0));
    emission.workspace = groups * 8;
  } else {
    emission.launches.push_back(source.finish(fmt::format("select_candidates<{}, {}, {}, {}, {}>(X_, keys);", kept,
                                                          best.largest, kPartThreads, best.k, way.splits),
                                              {rows, way.splits, 1}, kPartThreads, static_cast<uint32_t>(kCountBytes)));
    emission.workspace = rows * (way.splits * best.k * 8);
  }
}

Result<Emission> emit(const Problem&, const Best& best, const Config& config) {
  const auto& way = config.as<Way>();
  const bool is_alone = way.group == 0 && way.splits == 1;
  Emission emission;
  emission.inputs = {{StepInput::input, 0}};
  Source source = best.begin();
  if (!is_alone) {
    emit_first(best, way, emission);
    source.workspace("keys", 0, "uint64");
  }
  source.output(0, best.result_view(1), "Values");
  source.output(1, best.result_view(2), "Indices");
  const int kept = best.space.kept();
  const std::string sizes = fmt::format("{}, {}, {}", way.threads, best.room(), best.k);
  const std::string call =
      is_alone        ? fmt::format("select_best<{}, {}, {}>(X_, Values_, Indices_);", kept, best.largest, sizes)
      : way.group > 0 ? fmt::format("select_in_groups<{}, {}, {}, {}>(X_, keys, Values_, Indices_);", kept,
                                    best.largest, sizes, way.group)
                      : fmt::format("select_among<{}, {}, {}>(X_, keys, Values_, Indices_);", kept, sizes, way.splits);
  const int64_t shared = 8 * best.room() + kCountBytes + (way.group > 0 ? 4 * best.most() : 0);
  emission.launches.push_back(source.finish(call, {best.space.rows(), 1, 1}, static_cast<uint32_t>(way.threads),
                                            static_cast<uint32_t>(shared)));
  return emission;
}

}  // namespace

Matched match_topk(const Problem& problem) {
  if (!problem.is(OpKind::topk)) return refuse("not a choice of the best");
  if (auto reason = unsupported_feature(problem, {.further_results = true})) return refuse(*std::move(reason));
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
