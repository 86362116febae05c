// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/generic/op_source.h"

#include <algorithm>
#include <cmath>

namespace lathe::cuda {
namespace {

constexpr uint32_t kThreads = 256;

// The struct Attributes. Lists of numbers are left out: they go to kernels as lists of the launch.
class AttributeText final : public FieldVisitor {
 public:
  void field(std::string_view name, bool& value) override { line("bool", name, value ? "true" : "false"); }
  void field(std::string_view name, int64_t& value) override {
    if (value != INT64_MIN) line("long", name, fmt::format("{}L", value));
  }
  // A function, for infinities are no constants.
  void field(std::string_view name, double& value) override {
    text += fmt::format("  LATHE_DEVICE_MEMBER static double {}() {{ return {}; }}\n", name, double_text(value));
  }
  void field(std::string_view, std::string&) override {}
  void field(std::string_view, Ints&) override {}
  void field(std::string_view, DType&) override {}
  void field(std::string_view, Tensor&) override {}
  void enumeration(std::string_view name, int& value, const EnumInfo& info) override {
    text += fmt::format("  enum class {}_type {{", name);
    for (const std::string_view each : info.values) text += fmt::format(" {},", each);
    text += " };\n";
    line(fmt::format("{}_type", name), name, fmt::format("{}_type::{}", name, info.values[static_cast<size_t>(value)]));
  }

  std::string text = "struct Attributes {\n";

 private:
  void line(std::string_view type, std::string_view name, std::string_view value) {
    text += fmt::format("  static constexpr {} {} = {};\n", type, name, value);
  }
};

}  // namespace

std::string double_text(double value) {
  if (std::isnan(value)) return "bit_cast<double>(uint64{0x7ff8000000000000})";
  if (std::isinf(value)) return value < 0 ? "-infinite()" : "infinite()";
  return fmt::format("{:a}", value);
}

std::string_view wide_type(DType dtype) {
  return is_floating(dtype) ? "double" : dtype == DType::u64 ? "uint64" : "int64";
}

std::string_view sum_type(DType dtype) {
  return is_floating(dtype) ? "double" : size_of(dtype) == 1 ? "int32" : "uint64";
}

std::optional<Ints> known_contents(const Problem& problem, size_t input) {
  if (input >= problem.inputs.size() || !problem.inputs[input].constant) return std::nullopt;
  const Tensor& tensor = *problem.inputs[input].constant;
  Ints values;
  for (int64_t i = 0; i < tensor.volume(); ++i) values.push_back(tensor.at(i));
  return values;
}

OpSource::OpSource(std::string_view header, const Problem& problem, Emission& emission)
    : problem_(problem), emission_(emission), source_(header) {
  if (!problem.attributes) return;
  AttributeText attributes;
  problem.attributes->clone()->visit(attributes);
  source_.declare(attributes.text + "};");
}

size_t OpSource::step_input(StepInput input) {
  std::vector<StepInput>& inputs = emission_.inputs;
  const auto known = std::find_if(inputs.begin(), inputs.end(), [&](const StepInput& each) {
    return each.kind == input.kind && each.index == input.index;
  });
  if (known != inputs.end()) return static_cast<size_t>(known - inputs.begin());
  inputs.push_back(input);
  return inputs.size() - 1;
}

std::string OpSource::input_as(size_t i, Operand view, bool raw) {
  if (raw) view.dtype = raw_type(view.dtype);
  const std::string name = fmt::format("In{}", i);
  source_.input(step_input({StepInput::input, i}), view, name);
  return name + "_";
}

std::string OpSource::output(size_t i, bool raw) {
  Operand view = problem_.outputs[i];
  if (raw) view.dtype = raw_type(view.dtype);
  const std::string name = fmt::format("Out{}", i);
  source_.output(i, view, name);
  return name + "_";
}

std::string OpSource::list(std::string_view name, const Shape& values) {
  source_.list(name, values);
  return fmt::format("{}_", name);
}

std::string OpSource::contents(size_t i, std::string_view name) {
  if (const std::optional<Ints> known = known_contents(problem_, i)) return list(name, to_shape(*known));
  return fmt::format("stored({})", input(i));
}

std::string OpSource::fusion() {
  size_t first = emission_.inputs.size();
  for (size_t k = 0; k < problem_.operands.size(); ++k) first = std::min(first, step_input({StepInput::operand, k}));
  source_.fusion(problem_, first);
  return "fusion_";
}

void OpSource::finish(std::string_view call, const Expr& count) {
  finish_blocks(call, ceildiv(count, static_cast<int64_t>(kThreads)), kThreads, 0);
}

void OpSource::finish_blocks(std::string_view call, const Expr& blocks, uint32_t threads, uint32_t shared_bytes) {
  emission_.launches.push_back(source_.finish(call, {blocks, 1, 1}, threads, shared_bytes));
}

}  // namespace lathe::cuda
