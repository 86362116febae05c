// SPDX-License-Identifier: Apache-2.0
// The k largest or smallest elements of rows, in order.
#include <algorithm>
#include <bit>

#include "kernels/axes_tactic.h"
#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/index_space.h"
#include "kernels/cuda/match.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda {
namespace {

constexpr int64_t kMaxK = 2048;
constexpr double kStepClocks = 255;  // of each element that a thread takes

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

// The choice. Parts of a row are taken by fewer threads: what they sort is shorter, and so are the waits between.
struct Split {
  int64_t threads = 256, splits = 1;  // of a row
};
constexpr int64_t kPartThreads = 128;

struct Best {
  IndexSpace space;
  int64_t k;
  bool largest;

  int64_t half_of(int64_t threads) const {
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(k, 2 * threads))));
  }
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
  const int64_t splits = std::min<int64_t>({target.cores * 2 / rows, length / (4 * best.half_of(kPartThreads)), 128});
  std::vector<Config> configs;
  const auto add = [&](const Split& split) {
    const int64_t threads = split.splits > 1 ? kPartThreads : split.threads;
    const double waves = std::max(1.0, static_cast<double>(rows * split.splits) * static_cast<double>(threads) /
                                           static_cast<double>(target.busy_threads()));
    const double steps = static_cast<double>(length) / static_cast<double>(split.splits * threads) + 20;
    configs.push_back(
        {.text = fmt::format("{} threads", split.threads) +
                 (split.splits > 1 ? fmt::format(", {} splits", split.splits) : ""),
         .predicted_us = (split.splits > 1 ? 3 : 1) * target.launch_us + kStepClocks * waves * steps / target.clock_mhz,
         .choice = split});
  };
  for (const int64_t threads : {128, 256, 1024}) add({threads, 1});
  if (splits > 1) add({256, splits});
  return best_first(std::move(configs));
}

Result<Emission> emit(const Problem&, const Best& best, const Config& config) {
  const auto [threads, splits] = config.as<Split>();
  const auto sizes = [&](int64_t count) { return fmt::format("{}, {}, {}", count, best.half_of(count), best.k); };
  const auto shared = [&](int64_t count) { return static_cast<uint32_t>(16 * best.half_of(count) + 16); };
  Emission emission;
  emission.inputs = {{StepInput::input, 0}};
  Source source = best.begin();
  if (splits > 1) {
    Source first = best.begin();
    first.workspace("candidates", 0, "uint64");
    source.workspace("candidates", 0, "uint64");
    const std::string call = fmt::format("select_candidates<{}, {}, {}, {}>(X_, candidates);", best.space.kept(),
                                         best.largest, sizes(kPartThreads), splits);
    emission.launches.push_back(first.finish(call, {best.space.rows(), splits, 1}, kPartThreads, shared(kPartThreads)));
    emission.workspace = best.space.rows() * (splits * best.k * 8);
  }
  source.output(0, best.result_view(1), "Values");
  source.output(1, best.result_view(2), "Indices");
  const std::string call = splits > 1 ? fmt::format("select_among<{}, {}, {}>(X_, candidates, Values_, Indices_);",
                                                    best.space.kept(), sizes(threads), splits)
                                      : fmt::format("select_best<{}, {}, {}>(X_, Values_, Indices_);",
                                                    best.space.kept(), best.largest, sizes(threads));
  emission.launches.push_back(
      source.finish(call, {best.space.rows(), 1, 1}, static_cast<uint32_t>(threads), shared(threads)));
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
