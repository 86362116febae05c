// SPDX-License-Identifier: Apache-2.0
// Running sums and products along an axis that is known.
#include <cmath>

#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/index_space.h"
#include "kernels/cuda/match.h"
#include "kernels/cuda/source.h"
#include "ops/rules.h"

namespace lathe::cuda {
namespace {

constexpr int64_t kBlock = 256;        // threads, of lines that do not have a block each
constexpr double kElementClocks = 30;  // of each element that a thread takes, one after the other
constexpr double kScanClocks = 120;    // of each step of a warp
constexpr double kBarrierClocks = 60;  // on top, of a block's

// Tensor 0 is x, 1 the result; the one reduced dimension is the axis.
IndexSpace space_of(const Problem& problem, size_t axis) {
  IndexSpace space(problem.inputs[0]);
  space.add(problem.outputs[0]);
  space.reduce(axis);
  space.simplify();
  return space;
}

// The choice: threads of a line.
std::vector<Config> configs(const Problem& problem, const IndexSpace& space) {
  const Target& target = problem.target;
  const double lines = static_cast<double>(std::max<int64_t>(space.opt_rows(), 1));
  const double length = static_cast<double>(space.opt_length());
  std::vector<Config> configs;
  for (const int64_t threads : {1, 32, 128, 512}) {
    const double waves =
        std::max(1.0, lines * static_cast<double>(threads) / static_cast<double>(target.busy_threads()));
    const double steps = std::ceil(length / static_cast<double>(threads));
    const double clocks = threads == 1 ? kElementClocks : kScanClocks + (threads > 32 ? kBarrierClocks : 0);
    configs.push_back({.text = fmt::format("{} thread{} a line", threads, threads == 1 ? "" : "s"),
                       .predicted_us = target.launch_us + waves * steps * clocks / target.clock_mhz,
                       .choice = threads});
  }
  return best_first(std::move(configs));
}

Result<Emission> emit(const Problem& problem, const IndexSpace& space, const Config& config) {
  const auto threads = config.as<int64_t>();
  const auto& attrs = problem.attrs<CumulativeAttrs>();
  Emission emission;
  emission.inputs = {{StepInput::input, 0}};
  Source source("cumulative/cumulative.cuh");
  source.input(0, space.view(0), "X");
  source.output(0, space.view(1), "Y");
  const std::string options =
      fmt::format("{}, {}, {}, {}, {}", is_floating(problem.inputs[0].dtype) ? "double" : "uint64", space.kept(),
                  attrs.op == CumulativeOp::sum, attrs.exclusive, attrs.reverse);
  const int64_t block = std::max(threads, kBlock), lines = block / threads;
  const std::string call =
      threads == 1 ? fmt::format("scan_by_thread<{}>(X_, Y_, {});", options, source.number(space.rows()))
                   : fmt::format("scan_together<{}, {}>(X_, Y_, {});", options, threads, source.number(space.rows()));
  const int64_t in_block = threads > 32 ? threads : block;
  emission.launches.push_back(source.finish(call, {ceildiv(space.rows(), threads > 32 ? 1 : lines), 1, 1},
                                            static_cast<uint32_t>(in_block),
                                            static_cast<uint32_t>(threads > 32 ? threads / 32 * 8 : 0)));
  return emission;
}

}  // namespace

Matched match_cumulative(const Problem& problem) {
  if (!problem.is(OpKind::cumulative)) return refuse("not a running sum or product");
  if (auto reason = unsupported_feature(problem, {})) return refuse(*std::move(reason));
  if (!problem.program.is_identity()) return refuse("this kernel has no epilogue");
  const Operand &x = problem.inputs[0], &which = problem.inputs[1];
  if (!which.constant) return refuse("its axis is computed");
  if (x.rank() == 0) return refuse("a scalar");
  const Result<int64_t> axis = normalize_axis(which.constant->at(0), x.rank());
  if (!axis) return refuse("its axis is out of range");
  return match_form(problem, space_of(problem, static_cast<size_t>(*axis)), configs, emit);
}

}  // namespace lathe::cuda
