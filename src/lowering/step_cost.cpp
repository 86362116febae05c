// SPDX-License-Identifier: Apache-2.0
#include "lowering/step_cost.h"

#include <algorithm>
#include <map>

namespace lathe {
namespace {

// Of one core: what plain evaluations and kernels reach on products, and on elements that they read or write.
struct Rates {
  double ns_per_product, ns_per_element;
};
constexpr Rates kEvaluation = {1.5, 3}, kKernel = {0.02, 0.3};

double volume_of(const Dims& dims) {
  double product = 1;
  for (const int64_t dim : dims) product *= static_cast<double>(dim);
  return product;
}

// Multiplications: for each element of the result as many as its weights have for one column or output channel.
double products(const plan::Step& step, std::span<const Dims> inputs, std::span<const Dims> outputs) {
  const auto is = [&](std::string_view name) { return step.op == name || step.kernel() == name; };
  const double results = volume_of(outputs[0]);
  if (inputs.size() < 2) return 0;
  if (is("matmul") || is("gemm")) return inputs[0].empty() ? 0 : results * static_cast<double>(inputs[0].back());
  if (!is("convolution") && !is("conv") && !is("deconvolution") && !is("deconv") && !is("einsum")) return 0;
  const double channels = outputs[0].size() > 1 ? static_cast<double>(outputs[0][1]) : 1;
  return results * volume_of(inputs[1]) / std::max(channels, 1.0);
}

double time_of(const RegionReport& region) {
  return region.microseconds > 0 ? region.microseconds : region.estimated_microseconds;
}

// The ops that are evaluated, the slowest first: "3 x gather, topk".
std::string evaluated_ops(const BuildReport& report) {
  std::map<std::string, std::pair<int, double>> ops;
  for (const RegionReport& region : report.regions)
    if (region.kind == "eval") {
      auto& [count, time] = ops[region.op];
      ++count;
      time += time_of(region);
    }
  std::vector<std::pair<std::string, std::pair<int, double>>> sorted(ops.begin(), ops.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.second > b.second.second; });
  constexpr size_t kNamed = 6;
  std::string text;
  for (size_t i = 0; i < std::min(sorted.size(), kNamed); ++i)
    text += fmt::format("{}{} x {}", i ? ", " : "", sorted[i].second.first, sorted[i].first);
  return sorted.size() > kNamed ? text + " and others" : text;
}

}  // namespace

double estimated_microseconds(const plan::Step& step, std::span<const Dims> inputs, std::span<const Dims> outputs) {
  if (outputs.empty()) return 0;
  const Rates& rates = step.is<plan::Evaluation>() || step.is<plan::Copy>() ? kEvaluation : kKernel;
  double elements = 0;
  for (const Dims& dims : outputs) elements += volume_of(dims);
  // What is gathered from is not read as a whole.
  for (const Dims& dims : inputs) elements += std::min(volume_of(dims), volume_of(outputs[0]));
  constexpr double kLaunch = 300;
  return (kLaunch + rates.ns_per_element * elements + rates.ns_per_product * products(step, inputs, outputs)) / 1000;
}

double evaluated_share(const BuildReport& report) {
  double evaluated = 0, all = 0;
  for (const RegionReport& region : report.regions) {
    all += time_of(region);
    if (region.kind == "eval") evaluated += time_of(region);
  }
  return all > 0 ? evaluated / all : 0;
}

void warn_of_evaluations(const BuildReport& report, Log& log) {
  constexpr double kWorthSaying = 0.01;
  const double share = evaluated_share(report);
  if (share <= kWorthSaying) return;
  log.print(Severity::warning,
            "about {:.0f} % of the time goes to ops without a kernel, which run by their plain evaluation: {}. 'lathe "
            "inspect' shows which steps these are",
            share * 100, evaluated_ops(report));
}

}  // namespace lathe
