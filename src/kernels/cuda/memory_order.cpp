// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/memory_order.h"

#include <algorithm>
#include <numeric>

#include "kernels/cuda/source.h"

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

Problem permuted_epilogue(const Problem& problem, const std::vector<size_t>& order) {
  Problem result;
  result.attributes = problem.attributes;
  result.program = problem.program;
  result.outputs = {permuted(problem.outputs[0], order)};
  for (const Operand& operand : problem.operands)
    result.operands.push_back(permuted(broadcast(operand, problem.outputs[0]), order));
  return result;
}

std::string dim_function(std::string_view name, const std::vector<int64_t>& values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i)
    text += i + 1 < values.size() ? fmt::format("i == {} ? {}L : ", i, values[i]) : fmt::format("{}L", values[i]);
  return fmt::format("  static constexpr LATHE_DEVICE_MEMBER long {}(int i) {{ return {}; }}\n", name, text);
}

Expr run_blocks(const Operand& y, int64_t width, int64_t threads) {
  Expr runs = ceildiv(y.dims.back(), width);
  for (size_t d = 0; d + 1 < y.dims.size(); ++d) runs *= y.dims[d];
  return ceildiv(runs, threads);
}

std::vector<Config> run_configs(const Target& target, const Operand& y, int64_t widest, int64_t taps) {
  constexpr double kElementsPerByte = 0.3125;  // of the memory's rate, whatever the type
  double elements = 1;
  for (const int64_t dim : y.opt_dims) elements *= static_cast<double>(dim);
  std::vector<Config> configs;
  for (int64_t width = widest; width >= 1 && width * 4 >= widest; width /= 2) {
    const double busy =
        std::min(1.0, elements / static_cast<double>(width) / static_cast<double>(target.busy_threads()));
    const double accesses = static_cast<double>(taps) / static_cast<double>(width) + 2;
    Config config;
    config.values = {128, width};
    config.text = fmt::format("{} threads of {}", config.values[0], width);
    config.predicted_us =
        target.launch_us + elements / (kElementsPerByte * target.memory_rate) * (1 + accesses / 8) / (0.5 + busy / 2);
    configs.push_back(std::move(config));
  }
  std::stable_sort(configs.begin(), configs.end(),
                   [](const Config& a, const Config& b) { return a.predicted_us < b.predicted_us; });
  return configs;
}

int64_t widest_run(const Operand& x, const Operand& y, bool last_stays) {
  const int last = x.rank() - 1;
  if (last_stays && unit_dim(x) == last) return vector_width(x);
  int64_t width = 4;
  while (width > 1 && y.opt_dims.back() < width) width /= 2;
  return width;
}

}  // namespace lathe::cuda
