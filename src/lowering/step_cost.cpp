// SPDX-License-Identifier: Apache-2.0
#include "lowering/step_cost.h"

#include <algorithm>
#include <map>

#include "base/tactic_value.h"
#include "lowering/cost.h"
#include "tuning/work.h"

namespace lathe {
namespace {

// Multiplications: for each element of the result as many as its weights have for one column or output channel.
double products(const plan::Step& step, std::span<const Dims> inputs, std::span<const Dims> outputs) {
  const double results = volume_of(outputs[0]);
  if (inputs.size() < 2) return 0;
  if (step.op == "matmul") return inputs[0].empty() ? 0 : results * static_cast<double>(inputs[0].back());
  if (step.op != "convolution" && step.op != "deconvolution" && step.op != "einsum") return 0;
  const double channels = outputs[0].size() > 1 ? static_cast<double>(outputs[0][1]) : 1;
  return results * volume_of(inputs[1]) / std::max(channels, 1.0);
}

// Of a step that no tactic predicts, which moves so many bytes, and whose operands have these dims.
double estimated_microseconds(const plan::Step& step, double bytes, std::span<const Dims> inputs,
                              std::span<const Dims> outputs, const Target& target) {
  if (outputs.empty()) return 0;
  if (step.is<plan::Copy>()) return microseconds({bytes, 0, 1}, target);
  double elements = 0;
  for (const Dims& dims : outputs) elements += volume_of(dims);
  // What is gathered from is not read as a whole.
  for (const Dims& dims : inputs) elements += std::min(volume_of(dims), volume_of(outputs[0]));
  if (!step.is<plan::Evaluation>()) return microseconds({sizeof(float) * elements, 0, 1}, target);
  constexpr double kElementUs = 3e-3, kProductUs = 1.5e-3;  // of one core of the host
  return kElementUs * elements + kProductUs * products(step, inputs, outputs);
}

std::vector<Dims> dims_of(std::span<const plan::TensorId> ids, const LoweringContext& context) {
  std::vector<Dims> list;
  for (const plan::TensorId id : ids) {
    Dims& dims = list.emplace_back();
    if (id == plan::kNoTensor)
      dims = {0};
    else
      for (const Expr& dim : context.out.plan.tensors[id].dims)
        dims.push_back(dim.evaluate(context.optimum).value_or(1));
  }
  return list;
}

// That a step without a problem reads and writes.
double bytes_of(std::span<const plan::TensorId> ids, const LoweringContext& context) {
  const std::vector<Dims> dims = dims_of(ids, context);
  double bytes = 0;
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] != plan::kNoTensor) bytes += bits_of(context.out.plan.tensors[ids[i]].dtype) / 8.0 * volume_of(dims[i]);
  return bytes;
}

double time_of(const RegionReport& region) {
  return region.microseconds > 0 ? region.microseconds : region.estimated_microseconds;
}

// Ops of sizes alone, and the draw of a seed, read no element: the host answers them in less time than a kernel starts.
bool lacks_kernel(const RegionReport& region) {
  return region.kind == "eval" && region.op != "shape" && region.op != "size" && region.op != "fresh_seed";
}

// The ops that are evaluated, the slowest first: "3 x gather, topk".
std::string evaluated_ops(const BuildReport& report) {
  std::map<std::string, std::pair<int, double>> ops;
  for (const RegionReport& region : report.regions)
    if (lacks_kernel(region)) {
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

RegionReport describe_step(const plan::Step& step, std::string kind, const Choice& choice, const Problem* problem,
                           const LoweringContext& context) {
  RegionReport report;
  report.name = step.name;
  report.kind = std::move(kind);
  report.origin = step.origin;
  report.tactic = step.tactic;
  report.microseconds = step.milliseconds * 1000;
  report.operations = problem ? operations_of(*problem) : 0;
  report.bytes = problem ? moved_bytes(*problem) : bytes_of(step.inputs, context) + bytes_of(step.outputs, context);
  report.estimated_microseconds = choice.config.predicted_us;
  if (report.estimated_microseconds <= 0)
    report.estimated_microseconds =
        estimated_microseconds(step, report.bytes, dims_of(step.inputs, context), dims_of(step.outputs, context),
                               context.options.tuner.target);
  report.is_sparse = problem && problem->sparse;
  report.leaves_out_zeros = choice.config.sparse;
  report.op = step.is<plan::Copy>() ? "copy" : step.op;
  report.refusals = choice.refusals;
  report.candidates = choice.finalists;
  report.cache_entry = choice.cache_entry;
  return report;
}

void log_editable_tactics(const BuildReport& report, Log& log) {
  for (const RegionReport& region : report.regions) {
    if (region.cache_entry.empty()) continue;
    const auto print = [&](const std::string& line) { log.print(Severity::info, "[EditableTimingCache] {}", line); };
    print(fmt::format("Autotuning op {}{}", region.name, region.cache_entry));
    print("tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash");
    const double fastest = region.candidates.front().microseconds;
    for (size_t i = 0; i < region.candidates.size(); ++i) {
      const Choice::Finalist& one = region.candidates[i];
      print(fmt::format("{}, {:.5f}, {:.2f}, {:.3f}, {}, 0x{:016x}", i, one.microseconds / 1000,
                        one.microseconds / fastest, one.predicted_us / one.microseconds, one.tactic,
                        tactic_value(one.tactic)));
    }
    print(fmt::format("The selected tactic is (tactic hash, cost(in ms)):0x{:016x}, {:.5f}",
                      tactic_value(region.candidates.front().tactic), fastest / 1000));
  }
}

double evaluated_share(const BuildReport& report) {
  double evaluated = 0, all = 0;
  for (const RegionReport& region : report.regions) {
    all += time_of(region);
    if (lacks_kernel(region)) evaluated += time_of(region);
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
