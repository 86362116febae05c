// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cost_tactic.h"

#include <algorithm>

#include "tuning/work.h"

namespace lathe::cpu {
namespace {

constexpr double kReached = 0.8;  // of the cores' multiplications

}  // namespace

double predicted_us(const Problem& problem, const Effort& effort) {
  const Target& target = problem.target;
  const double bytes = moved_bytes(problem);
  const bool is_cached = bytes <= target.cache_bytes * target.cores;
  const double moving = effort.passes * bytes / (is_cached ? target.cache_rate() : target.memory_rate);
  const bool doubles = problem.outputs[0].dtype == DType::f64;
  const double in_a_clock = kReached * (doubles ? target.products.f64 : target.products.f32);
  const double elements = bytes / static_cast<double>(size_of(problem.outputs[0].dtype));
  const double clocks =
      products_of(problem) * (effort.vectors / in_a_clock + effort.clocks) + elements * effort.elements;
  return target.launch_us + std::max(moving, clocks / (target.cores * target.clock_mhz));
}

double packing_us(const Problem& problem) {
  constexpr double kElementClocks = 1;  // of a core
  const Target& target = problem.target;
  return target.launch_us + volume_of(problem.inputs[1].opt_dims) * kElementClocks / (target.cores * target.clock_mhz);
}

}  // namespace lathe::cpu
