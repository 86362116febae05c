// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/logits.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/divide.h"
#include "ops/seen_keys_of.h"

namespace lathe::cuda {
namespace {

std::string literal(double value) { return fmt::format("{:a}f", static_cast<float>(value)); }

// As a logit, in units of log 2: the lowest float where that would overflow, for only -inf is -inf.
std::string literal_of_hidden(double hidden) {
  if (std::isinf(hidden)) return "-infinity()";
  constexpr double kLowest = std::numeric_limits<float>::lowest();
  return literal(std::max(hidden * std::numbers::log2e, kLowest));
}

}  // namespace

// Heads that lie in another order are read by strides.
std::optional<std::string> refuse_order(const Problem& problem) {
  for (size_t i = 0; i < 3; ++i) {
    const Operand& operand = problem.inputs[i];
    if (operand.reassociation.empty()) continue;
    if (is_collapsed(operand)) return "collapsed dimensions of heads";
    Operand copy = operand;
    copy.strides = dense_strides(copy.dims, Layout::linear), copy.offset = 0;
    if (unit_dim(operand) != 3 || vector_width(operand) < vector_width(copy))
      return "heads in another order whose elements are not in vectors";
  }
  return std::nullopt;
}

std::optional<std::string> refuse_doubles(const Problem& problem) {
  constexpr std::pair<size_t, std::string_view> kRead[] = {{attention_input::kMask, "mask is"},
                                                           {attention_input::kSinks, "sinks are"},
                                                           {attention_input::kDistances, "distances are"}};
  for (const auto& [input, what] : kRead)
    if (problem.has_input(input) && problem.inputs[input].dtype == DType::f64) return fmt::format("its {} f64", what);
  return std::nullopt;
}

TileCounts seen_tiles(const Problem& problem, int64_t queries, int64_t keys) {
  const int64_t rows = problem.inputs[0].opt_dims[2], columns = problem.inputs[1].opt_dims[2];
  const SeenKeys seen = seen_keys_of(problem.attrs<AttentionAttrs>());
  const auto all = static_cast<double>(ceil_div(columns, keys));
  if (seen.is_all() || rows == 0) return {all, all};
  TileCounts counts;
  const int64_t tiles = ceil_div(rows, queries);
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t first = seen.of(i * queries, rows, columns).first;
    const int64_t end = seen.of(std::min((i + 1) * queries, rows) - 1, rows, columns).end;
    const int64_t of_tile = ceil_div(end, keys) - first / keys;
    const auto here = static_cast<double>(of_tile);
    counts.mean += here / static_cast<double>(tiles);
    counts.most = std::max(counts.most, here);
  }
  return counts;
}

Operand mask_of_scores(const Problem& problem) {
  const Operand &q = problem.inputs[0], &k = problem.inputs[1];
  Operand scores = q;
  scores.dims[3] = k.dims[2];
  scores.opt_dims[3] = k.opt_dims[2];
  return broadcast(problem.inputs[attention_input::kMask], scores);
}

Operand distances_of_heads(const Problem& problem) {
  const Operand& distances = problem.inputs[attention_input::kDistances];
  Operand of_heads = distances;
  of_heads.dims[0] = problem.inputs[0].dims[1];
  return broadcast(distances, of_heads);
}

std::string declare_logits(Source& source, const Problem& problem, Emission& emission) {
  const auto& attrs = problem.attrs<AttentionAttrs>();
  // Gives the name of its type, or what stands for none.
  const auto declare = [&](size_t input, std::string_view name, std::string_view none, const auto& view) {
    if (!problem.has_input(input)) return none;
    source.input(emission.inputs.size(), view(), name);
    emission.inputs.push_back({StepInput::input, input});
    return name;
  };
  const std::string_view mask =
      declare(attention_input::kMask, "Mask", "Unmasked", [&] { return mask_of_scores(problem); });
  const std::string_view sinks =
      declare(attention_input::kSinks, "Sinks", "Unsunk", [&] { return problem.inputs[attention_input::kSinks]; });
  const std::string_view distances =
      declare(attention_input::kDistances, "Distances", "Undistanced", [&] { return distances_of_heads(problem); });
  const auto object = [&](size_t input, std::string_view name) {
    return problem.has_input(input) ? fmt::format("{}_", name) : "{}";
  };
  return fmt::format(
      "Logits<{}, SeenKeys<{}, {}>, {}, {}, {}, {}, {}, {}>{{{}, {}, {}, {}, {{Q_.dim(2), K_.dim(2)}}, {}, {}}}", mask,
      attrs.causal, attrs.window, attrs.softcap != 0, attrs.mean_for_none, attrs.zeros_for_nan, sinks,
      attrs.factors == DType::f8e4m3fn, distances, object(attention_input::kMask, mask), literal(attrs.scale),
      literal(attrs.softcap), literal_of_hidden(attrs.hidden), object(attention_input::kSinks, sinks),
      object(attention_input::kDistances, distances));
}

}  // namespace lathe::cuda
