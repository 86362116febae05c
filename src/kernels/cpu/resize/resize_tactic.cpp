// SPDX-License-Identifier: Apache-2.0
// Separable resizing: kernel "resize".
#include "kernels/cpu/byte_scale_tactic.h"
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/resize/resize.h"
#include "kernels/cpu/resize/sample_rule_tactic.h"
#include "kernels/resize_tables_tactic.h"

namespace lathe::cpu {
namespace {

// Tables that are made while running: the taps of one output element must be few, whatever the extents.
std::optional<std::string> refuse_samples(const Problem& problem) {
  const auto& attrs = problem.attrs<ResizeAttrs>();
  if (attrs.coordinates == CoordinateMode::tf_crop_and_resize) return "cropping";
  if (attrs.aspect != AspectPolicy::stretch) return "an aspect policy";
  if (attrs.antialias && attrs.mode != ResizeMode::nearest) return "antialiasing between dynamic dimensions";
  if (!problem.has_input(3) && !problem.inputs[2].constant) return "its scales are not constant";
  if (attrs.mode == ResizeMode::cubic && resized_dims(problem).size() > 4) return "cubic in too many dimensions";
  return std::nullopt;
}

// Levels are dequantised, and what is interpolated of them may become levels; bytes are copied.
std::optional<std::string> refuse_types(const Problem& problem) {
  const auto& attrs = problem.attrs<ResizeAttrs>();
  const Operand &x = problem.inputs[0], &y = problem.outputs[0];
  if (!x.is_computed()) {
    if (auto reason = refuse_epilogue(problem)) return reason;
    const bool fits = x.dtype == DType::f32 || (is_byte_integer(x.dtype) && attrs.mode == ResizeMode::nearest);
    return fits ? std::nullopt : std::optional(fmt::format("its input is {}", name_of(x.dtype)));
  }
  if (!byte_scale_of(x)) return "its input is computed otherwise than from levels";
  if (!problem.operands.empty()) return "its epilogue reads tensors";
  if (attrs.antialias) return "antialiasing of levels";
  if (resized_dims(problem).size() > 2) return "levels in more than two dimensions";
  if (x.rank() < 2 || x.strides[1] != Expr(1) || y.strides[1] != Expr(1))
    return "channels of levels are not contiguous";
  return y.dtype == DType::f32 || is_byte_integer(y.dtype) ? std::nullopt
                                                           : std::optional<std::string>("its result has another type");
}

float scale_of(const Problem& problem, size_t dimension) {
  if (problem.has_input(3)) return 0;
  const auto at = static_cast<int64_t>(resize_position(problem, dimension));
  return static_cast<float>(problem.inputs[2].constant->at_double(at));
}

Result<Emission> emit_tables(const Problem& problem, const ResizeParams& params) {
  Emission emission = emission_of(problem, params, {0});
  for (const size_t d : resized_dims(problem)) {
    LATHE_ASSIGN(ResizeTables tables, resize_tables(problem, d, params.levels.is_given() ? DType::f64 : DType::f32));
    for (Tensor* table : {&tables.index, &tables.weights}) {
      emission.inputs.push_back({StepInput::packed, emission.packed.size()});
      emission.packed.push_back(std::move(*table));
    }
  }
  return emission;
}

}  // namespace

Matched match_resize(const Problem& problem) {
  if (!problem.is(OpKind::resize)) return refuse("not a resize");
  if (auto reason = unsupported_feature(problem, {.prologues = 1})) return refuse(*std::move(reason));
  if (auto reason = refuse_types(problem)) return refuse(*std::move(reason));
  ResizeParams params;
  if (problem.inputs[0].is_computed()) params.levels = *byte_scale_of(problem.inputs[0]);
  for (const size_t d : resized_dims(problem)) params.axes |= 1u << d;
  const bool by_pixels = problem.outputs[0].rank() > 1 && problem.outputs[0].strides[1] == Expr(1);
  const double us = predicted_us(problem, {.clocks = by_pixels ? 0 : 3.5});
  if (!refuse_resize_tables(problem))
    return match_later([&problem, params] { return emit_tables(problem, params); }, us);
  if (auto reason = refuse_samples(problem)) return refuse(*std::move(reason));
  params.makes_tables = true;
  params.rule = sample_rule(problem.attrs<ResizeAttrs>());
  for (const size_t d : resized_dims(problem)) params.scales.push_back(scale_of(problem, d));
  return match_one(emission_of(problem, params, {0}), us);
}

}  // namespace lathe::cpu
