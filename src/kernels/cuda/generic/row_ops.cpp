// SPDX-License-Identifier: Apache-2.0
// Reductions, ops along one axis, and normalisations.
#include "kernels/cuda/generic/op_source.h"
#include "ops/rules.h"

namespace lathe::cuda {
namespace {

constexpr std::string_view kLines = "generic/lines.cuh", kNormalizations = "generic/normalizations.cuh";

Expr elements(const Operand& operand) { return volume(operand.dims); }

Expr lines_along(const Operand& operand, int64_t axis) {
  Expr count = 1;
  for (size_t d = 0; d < operand.dims.size(); ++d)
    if (static_cast<int64_t>(d) != axis) count *= operand.dims[d];
  return count;
}

Result<Emission> emit_reduce(const Problem& problem) {
  const auto& attrs = problem.attrs<ReduceAttrs>();
  const Operand& x = problem.inputs[0];
  const bool has_axes = problem.has_input(1);
  const std::optional<Ints> known = has_axes ? known_contents(problem, 1) : attrs.axes;
  if (!known) return fail(ErrorCode::no_tactic, "its axes are only known while running");
  uint32_t mask = 0;
  if (known->empty() && !attrs.noop_with_empty_axes) mask = (1u << x.rank()) - 1;
  for (const int64_t given : *known) {
    LATHE_ASSIGN(const int64_t axis, normalize_axis(given, x.rank()));
    mask |= 1u << axis;
  }
  const bool in_doubles = is_floating(x.dtype) || attrs.op == ReduceOp::l2 || attrs.op == ReduceOp::log_sum ||
                          attrs.op == ReduceOp::log_sum_exp;
  Emission emission;
  OpSource source("generic/reduce.cuh", problem, emission);
  const std::string fusion = source.fusion(), in = source.input(0), out = source.output(0);
  const std::string_view wide = in_doubles ? "double" : wide_type(x.dtype);
  constexpr uint32_t kThreads = 128;  // kReduceThreads of the header
  source.finish_blocks(
      fmt::format("reduce<Attributes, {}u, {}, {}>({}, {}, {});", mask, attrs.keepdims, wide, fusion, in, out),
      elements(problem.outputs[0]), kThreads, kThreads * sizeof(double));
  return emission;
}

// A call with one input and one output, a thread per line.
Result<Emission> emit_lines(const Problem& problem, std::string_view function, int64_t given_axis,
                            std::string_view arguments) {
  LATHE_ASSIGN(const int64_t axis, normalize_axis(given_axis, problem.inputs[0].rank()));
  Emission emission;
  OpSource source(kLines, problem, emission);
  const std::string in = source.input(0), out = source.output(0);
  source.finish(fmt::format("{}<{}{}>({}, {});", function, axis, arguments, in, out),
                lines_along(problem.inputs[0], axis));
  return emission;
}

Result<Emission> emit_softmax(const Problem& problem) {
  const auto& attrs = problem.attrs<SoftmaxAttrs>();
  return emit_lines(problem, "softmax", attrs.axis, attrs.log ? ", true" : ", false");
}

Result<Emission> emit_hardmax(const Problem& problem) {
  return emit_lines(problem, "hardmax", problem.attrs<HardmaxAttrs>().axis, "");
}

Result<Emission> emit_lp_normalization(const Problem& problem) {
  const auto& attrs = problem.attrs<LpNormalizationAttrs>();
  return emit_lines(problem, "lp_normalization", attrs.axis, fmt::format(", {}", attrs.p));
}

Result<Emission> emit_arg_reduce(const Problem& problem) {
  LATHE_ASSIGN(const int64_t axis, normalize_axis(problem.attrs<ArgReduceAttrs>().axis, problem.inputs[0].rank()));
  Emission emission;
  OpSource source(kLines, problem, emission);
  const std::string in = source.input(0), out = source.output(0);
  source.finish(fmt::format("arg_reduce<Attributes, {}>({}, {});", axis, in, out), elements(problem.outputs[0]));
  return emission;
}

Result<Emission> emit_topk(const Problem& problem) {
  LATHE_ASSIGN(const int64_t axis, normalize_axis(problem.attrs<TopkAttrs>().axis, problem.inputs[0].rank()));
  Emission emission;
  OpSource source(kLines, problem, emission);
  const std::string in = source.input(0), values = source.output(0), indices = source.output(1);
  source.finish(fmt::format("topk<Attributes, {}>({}, {}, {});", axis, in, values, indices),
                lines_along(problem.inputs[0], axis));
  return emission;
}

Result<Emission> emit_cumulative(const Problem& problem) {
  Emission emission;
  OpSource source(kLines, problem, emission);
  const std::string in = source.input(0), out = source.output(0), axis = source.contents(1, "Axis");
  const std::string_view wide = is_floating(problem.inputs[0].dtype) ? "double" : "uint64";
  Expr lines = elements(problem.inputs[0]);  // the most that there can be
  if (const std::optional<Ints> known = known_contents(problem, 1)) {
    LATHE_ASSIGN(const int64_t along, normalize_axis((*known)[0], problem.inputs[0].rank()));
    lines = lines_along(problem.inputs[0], along);
  }
  source.finish(fmt::format("cumulative<Attributes, {}>({}, {}, {});", wide, in, out, axis), lines);
  return emission;
}

// Statistics of the batch, the running ones, then the result.
Result<Emission> emit_batch_training(const Problem& problem) {
  const Operand& x = problem.inputs[0];
  const Expr channels = x.rank() < 2 ? Expr(1) : x.dims[1];
  Emission emission;
  emission.workspace = channels * static_cast<int64_t>(2 * sizeof(double));
  {
    OpSource source(kNormalizations, problem, emission);
    const std::string in = source.input(0);
    source.source().workspace("statistics", 0, "double");
    source.finish(fmt::format("channel_statistics({}, statistics);", in), channels);
  }
  for (size_t i = 1; i < problem.outputs.size(); ++i) {
    OpSource source(kNormalizations, problem, emission);
    const std::string old = source.input(i + 2), out = source.output(i);
    const Expr offset = i == 1 ? Expr(0) : channels * static_cast<int64_t>(sizeof(double));
    source.source().workspace("current", offset, "double");
    source.finish(fmt::format("update_running({}, {}, current, Attributes::momentum());", old, out), channels);
  }
  OpSource source(kNormalizations, problem, emission);
  const std::string in = source.input(0), scale = source.input(1), bias = source.input(2), out = source.output(0);
  source.source().workspace("statistics", 0, "double");
  source.finish(
      fmt::format("normalize_channels({}, {}, {}, {}, statistics, Attributes::epsilon());", in, scale, bias, out),
      elements(x));
  return emission;
}

Result<Emission> emit_batch_normalization(const Problem& problem) {
  if (problem.attrs<BatchNormalizationAttrs>().training) {
    if (!problem.program.is_identity()) return fail(ErrorCode::no_tactic, "nothing is fused to the training mode");
    return emit_batch_training(problem);
  }
  Emission emission;
  OpSource source(kNormalizations, problem, emission);
  std::string call = "batch_normalization(" + source.fusion();
  for (size_t i = 0; i < 5; ++i) call += ", " + source.input(i);
  source.finish(call + ", " + source.output(0) + ", Attributes::epsilon());", elements(problem.outputs[0]));
  return emission;
}

Result<Emission> emit_groups(const Problem& problem, const Expr& groups) {
  Emission emission;
  OpSource source(kNormalizations, problem, emission);
  std::string call = "group_normalization(" + source.fusion();
  for (size_t i = 0; i < 3; ++i) call += ", " + source.input(i);
  call += fmt::format(", {}, {}, Attributes::epsilon());", source.output(0), source.source().number(groups));
  source.finish(call, problem.inputs[0].dims[0] * groups);
  return emission;
}

Result<Emission> emit_group_normalization(const Problem& problem) {
  return emit_groups(problem, problem.attrs<GroupNormalizationAttrs>().groups);
}
Result<Emission> emit_instance_normalization(const Problem& problem) {
  return emit_groups(problem, problem.inputs[0].dims[1]);
}

Result<Emission> emit_row_normalization(const Problem& problem, int64_t given_axis, bool rms) {
  const Operand& x = problem.inputs[0];
  LATHE_ASSIGN(const int64_t axis, normalize_axis(given_axis, x.rank()));
  if (problem.outputs.size() > 1 && !problem.program.is_identity())
    return fail(ErrorCode::no_tactic, "nothing is fused to a normalisation of several results");
  Emission emission;
  OpSource source(kNormalizations, problem, emission);
  const std::string fusion = source.fusion(), in = source.input(0);
  const std::string scale = source.input_as(1, broadcast(problem.inputs[1], x));
  const bool biased = !rms && source.has(2);
  const std::string bias =
      biased ? fmt::format("row_bias({})", source.input_as(2, broadcast(problem.inputs[2], x))) : "NoBias{}";
  std::string finish = "[&](const auto& c, double mean, double inverse) {";
  const std::string out = source.output(0);
  static constexpr std::string_view kStatistics[] = {"", "mean", "inverse"};
  for (size_t i = 1; i < problem.outputs.size(); ++i)
    finish += fmt::format(" element({}, c) = narrow<Out{}::Type>({});", source.output(i), i, kStatistics[i]);
  Expr rows = 1;
  for (int64_t d = 0; d < axis; ++d) rows *= x.dims[static_cast<size_t>(d)];
  source.finish(fmt::format("row_normalization<{}, {}>({}, {}, {}, {}, {}, Attributes::epsilon(), {} }});", axis, rms,
                            fusion, in, scale, bias, out, finish),
                rows);
  return emission;
}

Result<Emission> emit_layer_normalization(const Problem& problem) {
  return emit_row_normalization(problem, problem.attrs<LayerNormalizationAttrs>().axis, false);
}
Result<Emission> emit_rms_normalization(const Problem& problem) {
  return emit_row_normalization(problem, problem.attrs<RmsNormalizationAttrs>().axis, true);
}

Result<Emission> emit_lrn(const Problem& problem) {
  Emission emission;
  OpSource source(kNormalizations, problem, emission);
  const std::string in = source.input(0), out = source.output(0);
  source.finish(fmt::format("lrn({}, {}, Attributes{{}});", in, out), elements(problem.outputs[0]));
  return emission;
}

}  // namespace

std::span<const GenericOp> row_ops() {
  static constexpr GenericOp kOps[] = {
      {OpKind::reduce, emit_reduce, true},
      {OpKind::arg_reduce, emit_arg_reduce},
      {OpKind::softmax, emit_softmax},
      {OpKind::hardmax, emit_hardmax},
      {OpKind::topk, emit_topk},
      {OpKind::cumulative, emit_cumulative},
      {OpKind::lp_normalization, emit_lp_normalization},
      {OpKind::batch_normalization, emit_batch_normalization, true},
      {OpKind::instance_normalization, emit_instance_normalization, true},
      {OpKind::layer_normalization, emit_layer_normalization, true},
      {OpKind::group_normalization, emit_group_normalization, true},
      {OpKind::rms_normalization, emit_rms_normalization, true},
      {OpKind::lrn, emit_lrn},
  };
  return kOps;
}

}  // namespace lathe::cuda
