// SPDX-License-Identifier: Apache-2.0
// The k largest or smallest elements of rows, in order.
#include <algorithm>
#include <bit>

#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/index_space.h"
#include "kernels/cuda/source.h"

namespace lathe::cuda {
namespace {

constexpr int64_t kMaxK = 2048;
constexpr double kStepClocks = 255;  // of each element that a thread takes

size_t axis_of(const Problem& problem) {
  const int64_t axis = problem.attrs<TopkAttrs>().axis;
  return static_cast<size_t>(axis < 0 ? axis + problem.inputs[0].rank() : axis);
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

class TopkTactic final : public Tactic {
 public:
  std::string_view name() const override { return "topk"; }
  bool makes_several_results() const override { return true; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::topk)) return "not a choice of the best";
    const DType dtype = problem.inputs[0].dtype;
    if (size_of(dtype) > 4) return fmt::format("its input is {}", name_of(dtype));
    if (!problem.program.is_identity()) return "this kernel has no epilogue";
    if (problem.inputs[0].rank() == 0) return "a scalar";
    const int64_t k = k_of(problem);
    if (k < 0) return "k is not constant";
    if (k == 0 || k > kMaxK) return fmt::format("k is {}, 1 to {} are handled", k, kMaxK);
    return std::nullopt;
  }

  // Config::values: threads, parts of a row.
  std::vector<Config> configs(const Problem& problem) const override {
    const IndexSpace space = space_of(problem);
    const int64_t length = space.opt_length(), rows = std::max<int64_t>(space.opt_rows(), 1);
    std::vector<Config> configs;
    const int64_t parts =
        std::min<int64_t>({problem.target.cores * 2 / rows, length / (8 * half_of(problem, 256)), 128});
    const auto add = [&](int64_t threads, int64_t split) {
      Config config;
      config.values = {threads, split};
      config.text = fmt::format("{} threads", threads) + (split > 1 ? fmt::format(", {} parts", split) : "");
      const double waves = std::max(1.0, static_cast<double>(rows * split) * static_cast<double>(threads) /
                                             static_cast<double>(problem.target.busy_threads()));
      const double steps = static_cast<double>(length) / static_cast<double>(split * threads) + 20;
      config.predicted_us =
          (split > 1 ? 3 : 1) * problem.target.launch_us + kStepClocks * waves * steps / problem.target.clock_mhz;
      configs.push_back(std::move(config));
    };
    for (const int64_t threads : {128, 256, 1024}) add(threads, 1);
    if (parts > 1) add(256, parts);
    std::stable_sort(configs.begin(), configs.end(),
                     [](const Config& a, const Config& b) { return a.predicted_us < b.predicted_us; });
    return configs;
  }

  Result<Emission> emit(const Problem& problem, const Config& config) const override {
    const IndexSpace space = space_of(problem);
    const int64_t threads = config.values[0], parts = config.values[1], k = k_of(problem);
    const int64_t half = half_of(problem, threads);
    const auto shared = static_cast<uint32_t>(16 * half + 16);
    const auto block = static_cast<uint32_t>(threads);
    const std::string sizes = fmt::format("{}, {}, {}", threads, half, k);
    const bool largest = problem.attrs<TopkAttrs>().largest;
    Emission emission;
    emission.inputs = {{StepInput::input, 0}};
    Source source = begin(space);
    if (parts > 1) {
      Source first = begin(space);
      first.workspace("candidates", 0, "uint64");
      source.workspace("candidates", 0, "uint64");
      const std::string call =
          fmt::format("select_candidates<{}, {}, {}, {}>(X_, candidates);", space.kept(), largest, sizes, parts);
      emission.launches.push_back(first.finish(call, {space.rows(), parts, 1}, block, shared));
      emission.workspace = space.rows() * (parts * k * 8);
    }
    source.output(0, result_view(space, 1, k), "Values");
    source.output(1, result_view(space, 2, k), "Indices");
    const std::string call =
        parts > 1
            ? fmt::format("select_among<{}, {}, {}>(X_, candidates, Values_, Indices_);", space.kept(), sizes, parts)
            : fmt::format("select_best<{}, {}, {}>(X_, Values_, Indices_);", space.kept(), largest, sizes);
    emission.launches.push_back(source.finish(call, {space.rows(), 1, 1}, block, shared));
    return emission;
  }

 private:
  static int64_t half_of(const Problem& problem, int64_t threads) {
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(k_of(problem), 2 * threads))));
  }
  static Source begin(const IndexSpace& space) {
    Source source("topk/topk.cuh");
    source.input(0, space.view(0), "X");
    return source;
  }
  static Operand result_view(const IndexSpace& space, size_t index, int64_t k) {
    Operand view = space.view(index);
    view.dims.back() = k;
    view.opt_dims.back() = k;
    return view;
  }
};

}  // namespace

const Tactic& topk_tactic() {
  static const TopkTactic tactic;
  return tactic;
}

}  // namespace lathe::cuda
