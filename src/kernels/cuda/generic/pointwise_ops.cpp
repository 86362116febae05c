// SPDX-License-Identifier: Apache-2.0
// Pointwise ops on all element types.
#include "kernels/cuda/generic/op_source.h"

namespace lathe::cuda {
namespace {

Result<Emission> emit_one(const Problem& problem, std::string_view op, std::string_view wide, bool raw = false) {
  Emission emission;
  OpSource source("generic/maps.cuh", problem, emission);
  const std::string fusion = source.fusion(), x = source.input(0, raw), out = source.output(0, raw);
  source.finish(fmt::format("map_one<{}, {}>({}, {}, {});", op, wide, fusion, x, out), volume(problem.outputs[0].dims));
  return emission;
}

Result<Emission> emit_two(const Problem& problem, std::string_view op, std::string_view wide) {
  Emission emission;
  OpSource source("generic/maps.cuh", problem, emission);
  const std::string fusion = source.fusion();
  const std::string x = source.input_as(0, broadcast(problem.inputs[0], problem.outputs[0]));
  const std::string y = source.input_as(1, broadcast(problem.inputs[1], problem.outputs[0]));
  source.finish(fmt::format("map_two<{}, {}>({}, {}, {}, {});", op, wide, fusion, x, y, source.output(0)),
                volume(problem.outputs[0].dims));
  return emission;
}

Result<Emission> emit_identity(const Problem& problem) {
  const bool raw = problem.program.is_identity();
  return emit_one(problem, "Identity", raw ? "uint64" : wide_type(problem.inputs[0].dtype), raw);
}

Result<Emission> emit_cast(const Problem& problem) {
  return emit_one(problem, "Identity", wide_type(problem.inputs[0].dtype));
}

Result<Emission> emit_unary(const Problem& problem) {
  const DType dtype = problem.inputs[0].dtype;
  return emit_one(problem, fmt::format("Unary<Attributes, {}>", class_of(dtype) == DTypeClass::signed_int),
                  is_floating(dtype) ? "double" : "int64");
}

Result<Emission> emit_activation(const Problem& problem) {
  const bool shrink = problem.attrs<ActivationAttrs>().op == ActivationOp::shrink;
  return emit_one(problem, "Activation<Attributes>", shrink ? "double" : wide_type(problem.inputs[0].dtype));
}

Result<Emission> emit_elementwise(const Problem& problem) {
  const DType a = problem.inputs[0].dtype, b = problem.inputs[1].dtype;
  return emit_two(problem, fmt::format("Elementwise<Attributes, {}>", size_of(a) * 8),
                  is_floating(b) ? "double" : wide_type(a));
}

Result<Emission> emit_prelu(const Problem& problem) {
  return emit_two(problem, "Prelu", wide_type(problem.inputs[0].dtype));
}

// The zero point, or 0, broadcast to the output.
Result<Emission> emit_quantization(const Problem& problem, std::string_view op) {
  Emission emission;
  OpSource source("generic/quantization.cuh", problem, emission);
  const Operand& out = problem.outputs[0];
  const std::string fusion = source.fusion(), x = source.input(0);
  const std::string scale = source.input_as(1, broadcast(problem.inputs[1], out));
  const std::string zero = source.has(2) ? source.input_as(2, broadcast(problem.inputs[2], out)) : "NoZeroPoint{}";
  source.finish(fmt::format("map_quantization<{}>({}, {}, {}, {}, {});", op, fusion, x, scale, zero, source.output(0)),
                volume(out.dims));
  return emission;
}

constexpr const char* kBlocks = "its scale is by blocks";

Result<Emission> emit_quantize(const Problem& problem) {
  if (!problem.attrs<QuantizeAttrs>().blocks.empty()) return fail(ErrorCode::op_unsupported, "{}", kBlocks);
  const DType to = problem.attrs<QuantizeAttrs>().to;
  return emit_quantization(problem,
                           fmt::format("Quantize<{}, {}>", device_type(to), device_type(problem.inputs[0].dtype)));
}

Result<Emission> emit_dequantize(const Problem& problem) {
  if (!problem.attrs<DequantizeAttrs>().blocks.empty()) return fail(ErrorCode::op_unsupported, "{}", kBlocks);
  return emit_quantization(problem, "Dequantize");
}

Result<Emission> emit_select(const Problem& problem) {
  Emission emission;
  OpSource source("generic/maps.cuh", problem, emission);
  std::string call = "select_elements(";
  for (size_t i = 0; i < 3; ++i)
    call += source.input_as(i, broadcast(problem.inputs[i], problem.outputs[0]), i > 0) + ", ";
  source.finish(call + source.output(0, true) + ");", volume(problem.outputs[0].dims));
  return emission;
}

}  // namespace

Result<Emission> emit_pointwise_program(const Problem& problem) {
  Emission emission;
  Source source("generic/element.cuh");
  std::string body = "for_each_element(Out0_, [&](const auto& c) {\n";
  for (size_t i = 0; i < problem.operands.size(); ++i) {
    emission.inputs.push_back({StepInput::operand, i});
    source.input(i, broadcast(problem.operands[i], problem.outputs[0]), fmt::format("Op{}", i));
    body += problem.operands[i].padding
                ? fmt::format(
                      "    float v{0}[1];\n    load<0>(Padded<Op{0}>{{Op{0}_}}, c, v{0}, 1);\n"
                      "    const double r{0} = v{0}[0];\n",
                      i)
                : fmt::format("    const double r{0} = widen_to<double>(element(Op{0}_, c));\n", i);
  }
  source.include("lib/math_f64.cuh");
  body += program_lines(problem.program, "double", "    ");
  for (size_t i = 0; i < problem.outputs.size(); ++i) {
    source.output(i, problem.outputs[i], fmt::format("Out{}", i));
    body += fmt::format("    element(Out{0}_, c) = narrow<Out{0}::Type>(r{1});\n", i, problem.program.outputs[i]);
  }
  constexpr int64_t kThreads = 256;
  emission.launches.push_back(
      source.finish(body + "  });", {ceildiv(volume(problem.outputs[0].dims), kThreads), 1, 1}, kThreads, 0));
  return emission;
}

std::span<const GenericOp> pointwise_ops() {
  static constexpr GenericOp kOps[] = {
      {OpKind::identity, emit_identity, true},
      {OpKind::cast, emit_cast, true},
      {OpKind::unary, emit_unary, true},
      {OpKind::activation, emit_activation, true},
      {OpKind::elementwise, emit_elementwise, true},
      {OpKind::prelu, emit_prelu, true},
      {OpKind::select, emit_select},
      {OpKind::quantize, emit_quantize, true},
      {OpKind::dequantize, emit_dequantize, true},
  };
  return kOps;
}

}  // namespace lathe::cuda
