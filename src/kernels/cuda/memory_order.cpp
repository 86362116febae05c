// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/memory_order.h"

#include <algorithm>
#include <numeric>

#include "kernels/cuda/match.h"

namespace lathe::cuda {

std::vector<size_t> memory_order(const Operand& operand) {
  std::vector<size_t> order(operand.dims.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return operand.opt_strides[a] > operand.opt_strides[b]; });
  // Of dimensions of extent 1 any stride is right: the one with stride 1 and many elements comes last.
  const int unit = unit_dim(operand);
  if (unit >= 0) {
    std::erase(order, static_cast<size_t>(unit));
    order.push_back(static_cast<size_t>(unit));
  }
  return order;
}

Operand permuted(const Operand& operand, const std::vector<size_t>& order) {
  Operand result;
  result.dtype = operand.dtype;
  result.offset = operand.offset;
  for (const size_t d : order) {
    result.dims.push_back(operand.dims[d]);
    result.strides.push_back(operand.strides[d]);
    result.opt_dims.push_back(d < operand.opt_dims.size() ? operand.opt_dims[d] : 0);
    result.opt_strides.push_back(d < operand.opt_strides.size() ? operand.opt_strides[d] : 0);
  }
  return result;
}

std::string dim_function(std::string_view name, const std::vector<int64_t>& values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i)
    text += i + 1 < values.size() ? fmt::format("i == {} ? {}L : ", i, values[i]) : fmt::format("{}L", values[i]);
  return fmt::format("  static constexpr LATHE_DEVICE_MEMBER long {}(int i) {{ return {}; }}\n", name, text);
}

namespace {

// The longest run: by vectors of x where the last dimension stays as it is, else some.
int64_t widest_run(const Operand& x, const Operand& y, bool last_stays) {
  const int last = x.rank() - 1;
  if (last_stays && unit_dim(x) == last) return vector_width(x);
  int64_t width = 4;
  while (width > 1 && y.opt_dims.back() < width) width /= 2;
  return width;
}

}  // namespace

RunMatch::RunMatch(const Problem& problem, const std::vector<bool>& changed, int64_t taps)
    : problem_(problem),
      order_(memory_order(problem.outputs[0])),
      x_(permuted(problem.inputs[0], order_)),
      y_(permuted(problem.outputs[0], order_)),
      taps_(taps),
      widest_(widest_run(x_, y_, !changed[order_.back()])) {}

std::vector<Config> RunMatch::configs() const {
  constexpr double kElementsPerByte = 0.3125;  // of the memory's rate, whatever the type
  const Target& target = problem_.target;
  double elements = 1;
  for (const int64_t dim : y_.opt_dims) elements *= static_cast<double>(dim);
  std::vector<Config> configs;
  for (int64_t width = widest_; width >= 1 && width * 4 >= widest_; width /= 2) {
    const double busy =
        std::min(1.0, elements / static_cast<double>(width) / static_cast<double>(target.busy_threads()));
    const double accesses = static_cast<double>(taps_) / static_cast<double>(width) + 2;
    const RunShape shape{.width = width};
    configs.push_back({.text = fmt::format("{} threads of {}", shape.threads, width),
                       .predicted_us = target.launch_us + elements / (kElementsPerByte * target.memory_rate) *
                                                              (1 + accesses / 8) / (0.5 + busy / 2),
                       .choice = shape});
  }
  return best_first(std::move(configs));
}

void RunMatch::declare_epilogue(Source& source, Emission& emission) const {
  std::vector<Operand> views;
  for (const Operand& operand : problem_.operands)
    views.push_back(permuted(broadcast(operand, problem_.outputs[0]), order_));
  source.fusion(problem_, y_, views, emission.inputs.size());
  add_operand_inputs(problem_, emission);
}

SourceLaunch RunMatch::finish(Source& source, std::string_view call, const RunShape& shape) const {
  Expr runs = ceildiv(y_.dims.back(), shape.width);
  for (size_t d = 0; d + 1 < y_.dims.size(); ++d) runs *= y_.dims[d];
  return source.finish(call, {ceildiv(runs, shape.threads), 1, 1}, static_cast<uint32_t>(shape.threads), 0);
}

}  // namespace lathe::cuda
