// SPDX-License-Identifier: Apache-2.0
// Pointwise expressions in f32 over 16- and 32-bit floats, small integers and booleans.
#include <algorithm>

#include "kernels/cuda/collapse.h"
#include "kernels/cuda/match.h"
#include "kernels/cuda/source.h"
#include "kernels/cuda/tiles.h"

namespace lathe::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr int kMaxWidth = 8;  // elements of a vector: more would take too many registers

bool is_exact_in_f32(DType dtype) { return is_floating(dtype) ? dtype != DType::f64 : size_of(dtype) <= 2; }

// All tensors in the same collapsed dims.
Problem collapsed_problem(const Problem& problem) {
  std::vector<Operand> tensors = problem.outputs;
  for (const Operand& operand : problem.operands) tensors.push_back(broadcast(operand, problem.outputs[0]));
  tensors = collapse(std::move(tensors));
  const auto first_operand = tensors.begin() + static_cast<ptrdiff_t>(problem.outputs.size());
  Problem collapsed;
  collapsed.program = problem.program;
  collapsed.outputs.assign(tensors.begin(), first_operand);
  collapsed.operands.assign(first_operand, tensors.end());
  return collapsed;
}

// The longest vector that no tensor has to read in more accesses than its alignment asks for.
int shared_width(const std::vector<Operand>& tensors) {
  int longest = 1, shortest = kMaxWidth;
  bool full = true;
  for (const Operand& tensor : tensors) {
    const int last = tensor.rank() - 1;
    if (tensor.strides[static_cast<size_t>(last)] == Expr(0)) continue;
    const int width = unit_dim(tensor) == last ? vector_width(tensor) : 1;
    full &= width * size_of(tensor.dtype) == 16;
    longest = std::max(longest, width);
    shortest = std::min(shortest, width);
  }
  return full ? std::min(longest, kMaxWidth) : shortest;
}

// Operands that are contiguous along another dimension than the output, as far as tiles bring them into its order.
struct TilePlan {
  Tiles tiles;
  std::vector<bool> staged;  // of the operands
  uint32_t shared_bytes = 0;
};

std::optional<TilePlan> plan_tiles(const Problem& collapsed) {
  constexpr size_t kMaxStaged = 4;  // for want of shared memory
  const auto is_padded = [](const Operand& operand) { return operand.padding.has_value(); };
  if (collapsed.outputs.size() != 1 || std::any_of(collapsed.operands.begin(), collapsed.operands.end(), is_padded))
    return std::nullopt;
  const Operand& output = collapsed.outputs[0];
  std::vector<Operand> crossing;
  TilePlan plan;
  for (const Operand& operand : collapsed.operands) {
    const bool staged = crossing.size() < kMaxStaged && crosses(operand, output) &&
                        (crossing.empty() || unit_dim(operand) == unit_dim(crossing[0]));
    plan.staged.push_back(staged);
    if (staged) crossing.push_back(operand);
  }
  const std::optional<Tiles> tiles = tiles_for(output, crossing);
  if (!tiles) return std::nullopt;
  plan.tiles = *tiles;
  for (const Operand& operand : crossing) plan.shared_bytes += tiles->bytes(operand.dtype);
  return plan;
}

// As it lies in a tile, whose rows are along the output's last dimension.
Operand staged_view(const Operand& operand, const Tiles& tiles) {
  Operand view = operand;
  view.offset = 0;
  view.strides.assign(view.dims.size(), Expr(0));
  view.strides.back() = tiles.pitch(operand.dtype);
  view.strides[static_cast<size_t>(tiles.fast)] = 1;
  return view;
}

class PointwiseMatch final : public Match {
 public:
  explicit PointwiseMatch(const Problem& problem)
      : problem_(problem), collapsed_(collapsed_problem(problem)), tiles_(plan_tiles(collapsed_)) {}

  // Whether operands are contiguous along another dimension than the outputs.
  bool crosses() const {
    return std::ranges::any_of(collapsed_.operands, [&](const Operand& operand) {
      return std::ranges::any_of(collapsed_.outputs,
                                 [&](const Operand& output) { return cuda::crosses(operand, output); });
    });
  }

  // The choice: vectors of a thread, or kByTiles.
  std::vector<Config> configs() const override {
    double bytes = 0;
    for (const auto* list : {&problem_.operands, &problem_.outputs})
      for (const Operand& operand : *list) bytes += opt_bytes(operand);
    const double us = memory_bound_us(problem_.target, bytes);
    std::vector<Config> configs;
    if (tiles_) configs.push_back({.text = "tiles", .predicted_us = us, .choice = kByTiles});
    const double scattered = tiles_ ? 2 : 1;  // single elements are read from as many lines
    // A thread with more than one vector has more loads in flight, which pays when there is work for all threads.
    constexpr double kSmallBytes = 2e6, kLargeBytes = 32e6;
    for (const int64_t unroll : {1, 2, 4}) {
      if (unroll > 1 && bytes < kSmallBytes) break;
      const double factor = ((unroll > 1) == (bytes > kLargeBytes) ? 1.0 : 1.05) * scattered;
      configs.push_back({.text = fmt::format("unroll={}", unroll), .predicted_us = factor * us, .choice = unroll});
    }
    return best_first(std::move(configs));
  }

  Result<Emission> emit(const Config& config) const override {
    Emission emission;
    add_operand_inputs(problem_, emission);
    const auto unroll = config.as<int64_t>();
    emission.launches.push_back(tiles_ && unroll == kByTiles ? by_tiles() : by_rows(std::max<int64_t>(unroll, 1)));
    return emission;
  }

 private:
  static constexpr int64_t kByTiles = 0;

  SourceLaunch by_rows(int64_t unroll) const {
    Source source("pointwise/pointwise.cuh");
    source.rounding_fusion(collapsed_, 0);
    std::vector<Operand> tensors = collapsed_.outputs;
    tensors.insert(tensors.end(), collapsed_.operands.begin(), collapsed_.operands.end());
    std::string outputs;
    for (size_t i = 0; i < collapsed_.outputs.size(); ++i) {
      source.output(i, collapsed_.outputs[i], fmt::format("Out{}", i));
      outputs += fmt::format(", Out{}_", i);
    }
    const int width = shared_width(tensors);
    const Operand& space = collapsed_.outputs[0];
    Expr vectors = ceildiv(space.dims.back(), width);
    for (int d = 0; d + 1 < space.rank(); ++d) vectors *= space.dims[static_cast<size_t>(d)];
    const std::string call = fmt::format("pointwise<{}, {}, {}>(fusion_, Out0_{});", width, unroll,
                                         fits_32_bits(tensors) ? "unsigned" : "unsigned long", outputs);
    return source.finish(call, {ceildiv(vectors, static_cast<int64_t>(kThreads) * unroll), 1, 1}, kThreads, 0);
  }

  SourceLaunch by_tiles() const {
    Source source("pointwise/pointwise.cuh");
    const Tiles& tiles = tiles_->tiles;
    Problem staged = collapsed_;
    std::string reads;
    for (size_t k = 0; k < tiles_->staged.size(); ++k) {
      reads += tiles_->staged[k] ? fmt::format("reader.stage(fusion.op{0}, In{0}_); ", k)
                                 : fmt::format("reader.shift(fusion.op{}); ", k);
      if (!tiles_->staged[k]) continue;
      source.input(k, collapsed_.operands[k], fmt::format("In{}", k));
      staged.operands[k] = staged_view(collapsed_.operands[k], tiles);
    }
    source.rounding_fusion(staged, 0);
    const Operand& out = collapsed_.outputs[0];
    source.output(0, out, "Out");
    const int width = std::min(vector_width(out), std::max(1, 4 / static_cast<int>(size_of(out.dtype))));
    const std::string call =
        fmt::format("pointwise_tiles<{}, {}, {}>(fusion_, Out_, [&](auto& reader, auto& fusion) {{ {}}});", tiles.size,
                    tiles.fast, width, reads);
    return source.finish(call, {tiles.blocks, 1, 1}, Tiles::kThreads, tiles_->shared_bytes);
  }

  const Problem& problem_;
  Problem collapsed_;
  std::optional<TilePlan> tiles_;
};

}  // namespace

Matched match_pointwise(const Problem& problem) {
  if (problem.attributes) return refuse("not a pointwise expression");
  if (auto reason = unsupported_feature(problem, {.further_results = true, .fill = true, .float8 = true}))
    return refuse(*std::move(reason));
  for (const Operand& operand : problem.operands)
    if (!is_exact_in_f32(operand.dtype))
      return refuse(fmt::format("f32 does not hold every {}", name_of(operand.dtype)));
  for (size_t i = 0; i < problem.outputs.size(); ++i) {
    const Operand& output = problem.outputs[i];
    if (output.dims != problem.outputs[0].dims) return refuse("outputs differ in shape");
    if (is_integer(output.dtype) ? !is_quantized(problem.program, i, output.dtype) : !is_exact_in_f32(output.dtype))
      return refuse(fmt::format("{} is no result of f32 arithmetic", name_of(output.dtype)));
  }
  auto match = std::make_unique<PointwiseMatch>(problem);
  if (problem.outputs.size() > 1 && match->crosses()) return refuse("further results, of operands in another order");
  return match;
}

}  // namespace lathe::cuda
