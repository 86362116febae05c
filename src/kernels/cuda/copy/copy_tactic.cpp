// SPDX-License-Identifier: Apache-2.0
// Copies between tensors of any strides: changes of layout, parts of concatenations, slices, expansions. As a problem:
// a pointwise one with one operand and the identity program. Floats are converted when the types differ.
#include <algorithm>

#include "kernels/cuda/collapse.h"
#include "kernels/cuda/source.h"
#include "kernels/cuda/tiles.h"

namespace lathe::cuda {
namespace {

constexpr uint32_t kThreads = 256;  // kCopyThreads of the header

struct Plan {
  Operand in, out;  // collapsed; the output's dims are ordered by its strides
  std::optional<Tiles> tiles;
  int width = 1;  // of vectors
};

int access_width(const Operand& operand, int dim) { return unit_dim(operand) == dim ? vector_width(operand) : 1; }

Plan make_plan(const Problem& problem) {
  Operand in = broadcast(problem.operands[0], problem.outputs[0]), out = problem.outputs[0];
  if (in.dtype == out.dtype) in.dtype = out.dtype = raw_type(in.dtype);
  std::vector<Operand> tensors = collapse({out, in});
  Plan plan{tensors[1], tensors[0], {}};
  const int last = plan.out.rank() - 1;
  plan.tiles = tiles_for(plan.out, {&plan.in, 1});
  if (plan.tiles) {
    // Four bytes at once: what a lane can take from shared memory without waiting for others.
    const int pack = std::max(1, 4 / static_cast<int>(size_of(plan.in.dtype)));
    plan.width = std::min({pack, vector_width(plan.in), vector_width(plan.out)});
    return plan;
  }
  const int in_width = access_width(plan.in, last), out_width = access_width(plan.out, last);
  const bool is_broadcast = plan.in.strides[static_cast<size_t>(last)] == Expr(0);
  plan.width = is_broadcast ? out_width : std::min(in_width, out_width);
  return plan;
}

class CopyTactic final : public Tactic {
 public:
  std::string_view name() const override { return "copy"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (problem.attributes || problem.operands.size() != 1 || problem.outputs.size() != 1 ||
        !problem.program.is_identity())
      return "not a copy";
    const DType from = problem.operands[0].dtype, to = problem.outputs[0].dtype;
    if (from != to && (!is_floating(from) || !is_floating(to)))
      return fmt::format("does not convert {} to {}", name_of(from), name_of(to));
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem& problem) const override {
    const double bytes = opt_bytes(problem.operands[0]) + opt_bytes(problem.outputs[0]),
                 us = memory_bound_us(problem.target, bytes);
    if (make_plan(problem).tiles) return {{"tiles", {1}, us}};
    std::vector<Config> configs;
    constexpr double kSmallBytes = 2e6;  // there is no work for more than one vector per thread
    for (const int64_t unroll : {1, 2, 4})
      if (unroll == 1 || bytes >= kSmallBytes) configs.push_back({fmt::format("unroll={}", unroll), {unroll}, us});
    return configs;
  }

  Result<Emission> emit(const Problem& problem, const Config& config) const override {
    const Plan plan = make_plan(problem);
    Emission emission;
    emission.inputs.push_back({StepInput::operand, 0});
    Source source("copy/copy.cuh");
    source.input(0, plan.in, "In");
    source.output(0, plan.out, "Out");
    emission.launches.push_back(plan.tiles ? tiles(source, plan) : rows(source, plan, config));
    return emission;
  }

 private:
  static SourceLaunch tiles(Source& source, const Plan& plan) {
    const Tiles& tiles = *plan.tiles;
    return source.finish(fmt::format("copy_tiles<{}, {}, {}>(In_, Out_);", tiles.size, tiles.fast, plan.width),
                         {tiles.blocks, 1, 1}, Tiles::kThreads, tiles.bytes(plan.in.dtype));
  }

  static SourceLaunch rows(Source& source, const Plan& plan, const Config& config) {
    const int64_t unroll = config.values.empty() ? 1 : config.values[0];
    Expr vectors = ceildiv(plan.out.dims.back(), plan.width);
    for (size_t d = 0; d + 1 < plan.out.dims.size(); ++d) vectors *= plan.out.dims[d];
    const std::string call = fmt::format("copy_rows<{}, {}, {}>(In_, Out_);", plan.width, unroll,
                                         fits_32_bits({plan.in, plan.out}) ? "unsigned" : "unsigned long");
    return source.finish(call, {ceildiv(vectors, static_cast<int64_t>(kThreads) * unroll), 1, 1}, kThreads, 0);
  }
};

}  // namespace

const Tactic& copy_tactic() {
  static const CopyTactic tactic;
  return tactic;
}

}  // namespace lathe::cuda
