// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/data_dependent_tactic.h"

#include <algorithm>

#include "kernels/cpu/compress/compress.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/non_max_suppression/non_max_suppression.h"
#include "kernels/cpu/nonzero/nonzero.h"

namespace lathe::cpu {
namespace {

// Types of boxes, scores, the limit of each class and the two thresholds.
bool has_types_of_suppression(const Problem& problem) {
  const auto is = [&](size_t i, DType type, DType other) {
    if (!problem.has_input(i)) return true;
    return problem.inputs[i].dtype == type || problem.inputs[i].dtype == other;
  };
  for (const size_t i : {0, 1, 3, 4})
    if (!is(i, DType::f32, DType::f32)) return false;
  return is(2, DType::i64, DType::i32);
}

DataDependentMatched match_suppression(const Problem& problem) {
  if (!problem.is(OpKind::non_max_suppression)) return refuse("no suppression of boxes");
  if (!has_types_of_suppression(problem)) return refuse("boxes that are not of f32, or a limit that is no i64 or i32");
  const Shape& scores = problem.inputs[1].dims;
  const bool limited = problem.has_input(2);
  const Tensor* most = limited ? problem.inputs[2].constant : nullptr;
  Expr length = limited ? scores[2] : Expr(0);
  if (most) length = min(length, std::max<int64_t>(most->at(0), 0));
  const Expr slots = scores[0] * scores[1];
  DataDependentEmission emission;
  emission.count = slots * length + slots;
  emission.found = {emission.count + 1};
  const bool centered = problem.attrs<NonMaxSuppressionAttrs>().center_point_box;
  emission.find.params = encode_params(NonMaxSuppressionParams{false, centered});
  emission.write.params = encode_params(NonMaxSuppressionParams{true, centered});
  for (size_t i = 0; i < 5; ++i) emission.find.inputs.push_back({StepInput::input, i});
  emission.write.inputs = {{StepInput::input, 1}};
  return emission;
}

DataDependentMatched match_nonzero(const Problem& problem) {
  if (!problem.is(OpKind::nonzero)) return refuse("no positions of what is not 0");
  DataDependentEmission emission;
  emission.count = volume(problem.inputs[0].dims);
  emission.found = {emission.count + 1};
  emission.output_dim = 1;
  emission.find.params = encode_params(NonzeroParams{false});
  emission.write.params = encode_params(NonzeroParams{true});
  emission.find.inputs = emission.write.inputs = {{StepInput::input, 0}};
  return emission;
}

DataDependentMatched match_compress(const Problem& problem) {
  if (!problem.is(OpKind::compress)) return refuse("no choice by conditions");
  const auto& attrs = problem.attrs<CompressAttrs>();
  const Operand& x = problem.inputs[0];
  if (attrs.flat && !is_dense(x.dims, x.strides, Layout::linear))
    return refuse("positions in a flat tensor are offsets, and this one is not dense");
  const int axis = attrs.flat ? -1 : axis_from_start(attrs.axis, x);
  DataDependentEmission emission;
  emission.count = problem.inputs[1].dims[0];
  emission.found = {emission.count + 1};
  emission.output_dim = static_cast<size_t>(std::max(axis, 0));
  emission.find.params = encode_params(CompressParams{false, axis});
  emission.write.params = encode_params(CompressParams{true, axis});
  emission.find.inputs = {{StepInput::input, 0}, {StepInput::input, 1}};
  emission.write.inputs = {{StepInput::input, 0}};
  return emission;
}

// Ops whose results' sizes follow from the contents of small inputs (pads, a depth, k), by the first of the CPU's
// tactics that takes them. The shape rule reads all inputs of the op, in its order, and so the kernels are given those
// that only say sizes, too.
DataDependentMatched match_by_rule(const Problem& problem) {
  static constexpr OpKind kKinds[] = {OpKind::slice,  OpKind::pad,    OpKind::tile,    OpKind::expand,  OpKind::fill,
                                      OpKind::range,  OpKind::topk,   OpKind::one_hot, OpKind::reshape, OpKind::random,
                                      OpKind::choose, OpKind::resize, OpKind::col2im};
  if (!problem.attributes ||
      std::find(std::begin(kKinds), std::end(kKinds), problem.attributes->kind()) == std::end(kKinds))
    return refuse("no op whose sizes are the contents of small inputs");
  for (const Tactic* tactic : cpu_tactics()) {
    const Matched match = tactic->match(problem);
    if (!match) continue;
    Result<Emission> write = (*match)->emit((*match)->configs()[0]);
    if (!write) return refuse(write.error().message);
    DataDependentEmission emission;
    emission.by_rule = true;
    emission.write = *std::move(write);
    emission.write.kernel = tactic->name();
    emission.write.inputs.clear();
    for (size_t i = 0; i < problem.inputs.size(); ++i) emission.write.inputs.push_back({StepInput::input, i});
    return emission;
  }
  return refuse("no kernel takes it");
}

}  // namespace

const DataDependentTacticList& data_dependent_tactics() {
  static const DataDependentTacticList list = {{"non_max_suppression", match_suppression},
                                               {"nonzero", match_nonzero},
                                               {"compress", match_compress},
                                               {"sized", match_by_rule}};
  return list;
}

}  // namespace lathe::cpu
