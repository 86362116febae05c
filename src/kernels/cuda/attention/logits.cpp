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

// The mask as one of the scores' dimensions.
Operand scores_of(const Problem& problem) {
  const Operand &q = problem.inputs[0], &k = problem.inputs[1];
  Operand scores = q;
  scores.dims[3] = k.dims[2];
  scores.opt_dims[3] = k.opt_dims[2];
  return scores;
}

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
  for (const size_t i : {kMaskInput, kSinksInput})
    if (problem.has_input(i) && problem.inputs[i].dtype == DType::f64)
      return i == kMaskInput ? "its mask is f64" : "its sinks are f64";
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

std::string declare_logits(Source& source, const Problem& problem, Emission& emission) {
  const auto& attrs = problem.attrs<AttentionAttrs>();
  const bool masked = problem.has_input(kMaskInput);
  if (masked) {
    source.input(emission.inputs.size(), broadcast(problem.inputs[kMaskInput], scores_of(problem)), "Mask");
    emission.inputs.push_back({StepInput::input, kMaskInput});
  }
  const bool has_sinks = problem.has_input(kSinksInput);
  if (has_sinks) {
    source.input(emission.inputs.size(), problem.inputs[kSinksInput], "Sinks");
    emission.inputs.push_back({StepInput::input, kSinksInput});
  }
  const bool is_float8 = attrs.factors == DType::f8e4m3fn;
  const std::string_view sinks = has_sinks ? ", Sinks" : is_float8 ? ", Unsunk" : "";
  return fmt::format("Logits<{}, SeenKeys<{}, {}>, {}, {}, {}{}{}>{{{}, {}, {}, {}, {{Q_.dim(2), K_.dim(2)}}{}}}",
                     masked ? "Mask" : "Unmasked", attrs.causal, attrs.window, attrs.softcap != 0, attrs.mean_for_none,
                     attrs.zeros_for_nan, sinks, is_float8 ? ", true" : "", masked ? "Mask_" : "{}",
                     literal(attrs.scale), literal(attrs.softcap), literal_of_hidden(attrs.hidden),
                     has_sinks ? ", Sinks_" : "");
}

}  // namespace lathe::cuda
