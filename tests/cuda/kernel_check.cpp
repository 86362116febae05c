// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernel_check.h"

#include <cmath>
#include <cstring>
#include <random>

#include "ops/rules.h"

namespace lathe::cuda {
namespace {

Result<Tensor> random_tensor(const Operand& operand, std::mt19937& generator) {
  LATHE_ASSIGN(Tensor tensor, Tensor::allocate(operand.dtype, operand.opt_dims));
  std::normal_distribution<float> normal;
  const bool is_signed = class_of(operand.dtype) == DTypeClass::signed_int;
  std::uniform_int_distribution<int> integer(is_signed ? -8 : 0, 8);
  dispatch(operand.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < tensor.volume(); ++i) {
      if constexpr (std::is_same_v<T, bool>)
        tensor.mutable_as<T>()[i] = integer(generator) > 4;
      else if constexpr (std::is_integral_v<T>)
        tensor.mutable_as<T>()[i] = static_cast<T>(integer(generator));
      else
        tensor.mutable_as<T>()[i] = static_cast<T>(normal(generator));
    }
  });
  return tensor;
}

Result<Tensor> as_f32(const Tensor& tensor) {
  if (tensor.dtype() != DType::f16 && tensor.dtype() != DType::bf16) return tensor;
  LATHE_ASSIGN(Tensor result, Tensor::allocate(DType::f32, tensor.dims()));
  for (int64_t i = 0; i < tensor.volume(); ++i) result.mutable_as<float>()[i] = static_cast<float>(tensor.at_double(i));
  return result;
}

// Element `index` (flat, of the output's dims) of an operand that is broadcast to them.
float operand_at(const Tensor& tensor, const Dims& dims, int64_t index) {
  int64_t offset = 0, stride = 1;
  const size_t lead = dims.size() - tensor.dims().size();
  for (size_t d = dims.size(); d-- > 0; index /= std::max<int64_t>(dims[d], 1)) {
    if (d < lead) continue;
    const int64_t extent = tensor.dims()[d - lead];
    if (extent != 1) offset += index % dims[d] * stride;
    stride *= extent;
  }
  return static_cast<float>(tensor.at_double(offset));
}

// What the program makes of the root's result (if there is one) and its operands: f32, one tensor per output.
Result<std::vector<Tensor>> apply_program(const Problem& problem, const Tensor* root,
                                          const std::vector<Tensor>& operands) {
  const Dims& dims = problem.outputs[0].opt_dims;
  std::vector<Tensor> results;
  for (size_t k = 0; k < problem.program.outputs.size(); ++k) {
    LATHE_ASSIGN(results.emplace_back(), Tensor::allocate(DType::f32, dims));
  }
  std::vector<float> in(problem.program.num_inputs), out(problem.program.outputs.size());
  for (int64_t i = 0; i < results[0].volume(); ++i) {
    size_t k = 0;
    if (root) in[k++] = static_cast<float>(root->at_double(i));
    for (const Tensor& operand : operands) in[k++] = operand_at(operand, dims, i);
    evaluate(problem.program, in, out);
    for (size_t o = 0; o < results.size(); ++o) results[o].mutable_as<float>()[i] = out[o];
  }
  return results;
}

Result<std::vector<Tensor>> expected_outputs(const Problem& problem, const std::vector<Tensor>& inputs,
                                             const std::vector<Tensor>& operands, bool as_typed) {
  if (!problem.attributes) return apply_program(problem, nullptr, operands);
  std::vector<Tensor> converted;
  for (const Tensor& input : inputs) {
    LATHE_ASSIGN(converted.emplace_back(), as_typed ? Result<Tensor>(input) : as_f32(input));
  }
  LATHE_ASSIGN(std::vector<Tensor> roots, run_op(*problem.attributes, converted, problem.outputs.size()));
  if (problem.program.is_identity() || problem.program.outputs.empty()) return roots;
  return apply_program(problem, &roots[0], operands);
}

double default_tolerance(DType dtype) {
  return dtype == DType::f16 ? 2e-3 : dtype == DType::bf16 ? 1.6e-2 : dtype == DType::f64 ? 1e-12 : 1e-5;
}

// The nearest value of the output's type, for floats.
double rounded(double value, DType dtype) {
  if (dtype == DType::f16) return static_cast<float>(Half(static_cast<float>(value)));
  if (dtype == DType::bf16) return static_cast<float>(BFloat16(static_cast<float>(value)));
  return value;
}

Result<> compare(const Tensor& got, const Tensor& want, double tolerance, size_t output) {
  if (got.volume() != want.volume())
    return fail(ErrorCode::shape_mismatch, "output {}: {} elements, expected {}", output, got.volume(), want.volume());
  if (tolerance < 0) tolerance = default_tolerance(got.dtype());
  for (int64_t i = 0; i < got.volume(); ++i) {
    bool equal;
    if (is_floating(got.dtype())) {
      const double x = got.at_double(i), y = rounded(want.at_double(i), got.dtype());
      equal = x == y || (std::isnan(x) && std::isnan(y)) || std::fabs(x - y) <= tolerance * (1 + std::fabs(y));
    } else if (is_floating(want.dtype())) {
      equal = got.dtype() == DType::boolean ? (got.at(i) != 0) == (want.at_double(i) != 0)
                                            : static_cast<double>(got.at(i)) == std::trunc(want.at_double(i));
    } else {
      equal = got.at(i) == want.at(i);
    }
    if (!equal)
      return fail(ErrorCode::execution_failed, "output {}, element {} of {}: {}, expected {}", output, i,
                  to_string(to_shape(got.dims())), got.at_double(i), want.at_double(i));
  }
  return {};
}

Dims evaluate_dims(const Shape& shape, std::span<const int64_t> symbols) {
  Dims dims;
  for (const Expr& dim : shape) dims.push_back(dim.evaluate(symbols).value_or(0));
  return dims;
}

// Contents of operands: given, constant, or random.
Result<std::vector<Tensor>> contents_of(const std::vector<Operand>& operands, const std::vector<Tensor>& given,
                                        std::mt19937& generator) {
  std::vector<Tensor> contents;
  for (size_t i = 0; i < operands.size(); ++i) {
    Operand operand = operands[i];
    contents.emplace_back();
    if (i < given.size()) contents[i] = given[i];
    if (operand.constant) contents[i] = *operand.constant;
    if (contents[i].defined()) continue;
    for (size_t d = 0; d < operand.opt_dims.size(); ++d)
      if (operand.opt_strides[d] == 0) operand.opt_dims[d] = std::min<int64_t>(operand.opt_dims[d], 1);
    LATHE_ASSIGN(contents[i], random_tensor(operand, generator));
  }
  return contents;
}

// What the root reads instead of x, in f32.
Result<Tensor> apply_prologue(const Program& program, const Tensor& x, std::span<const Tensor> operands, bool round) {
  LATHE_ASSIGN(Tensor result, Tensor::allocate(DType::f32, x.dims()));
  std::vector<float> in(program.num_inputs);
  for (int64_t i = 0; i < x.volume(); ++i) {
    in[0] = static_cast<float>(x.at_double(i));
    for (size_t k = 0; k < operands.size(); ++k) in[k + 1] = operand_at(operands[k], x.dims(), i);
    float& element = result.mutable_as<float>()[i];
    evaluate(program, in, {&element, 1});
    if (round) element = static_cast<float>(rounded(element, x.dtype()));
  }
  return result;
}

// An error names the problem.
Result<> check_named(const Backend& backend, const Tactic& tactic, const Problem& problem, const Config& config,
                     const CheckOptions& options) {
  const Result<> checked = check_kernel(backend, tactic, problem, config, options);
  if (checked) return {};
  return fail(with_context(checked.error(), fmt::format("{} {}, {}", tactic.name(), config.text, to_text(problem))));
}

}  // namespace

Operand strided_operand(DType dtype, Dims dims, Dims strides) {
  Operand operand;
  operand.dtype = dtype;
  operand.dims = to_shape(dims);
  operand.strides = to_shape(strides);
  operand.opt_dims = std::move(dims);
  operand.opt_strides = std::move(strides);
  return operand;
}

Operand operand(DType dtype, Dims dims, Layout layout) {
  Dims strides = dense_strides(dims, layout);
  return strided_operand(dtype, std::move(dims), std::move(strides));
}

Operand symbolic_operand(DType dtype, Shape dims, std::span<const int64_t> symbols, Layout layout) {
  Operand operand;
  operand.dtype = dtype;
  operand.strides = dense_strides(dims, layout);
  operand.opt_dims = evaluate_dims(dims, symbols);
  operand.opt_strides = evaluate_dims(operand.strides, symbols);
  operand.dims = std::move(dims);
  return operand;
}

Problem pointwise_problem(std::string_view program, std::vector<Operand> operands, std::vector<Operand> outputs) {
  Problem problem;
  problem.operands = std::move(operands);
  problem.outputs = std::move(outputs);
  if (Result<Program> parsed = parse_program(program)) problem.program = *std::move(parsed);
  return problem;
}

Problem op_problem(const Attributes& attributes, std::vector<Operand> inputs, std::vector<Operand> outputs,
                   std::string_view program, std::vector<Operand> operands) {
  Problem problem =
      pointwise_problem(program.empty() ? "in=1; out r0" : program, std::move(operands), std::move(outputs));
  problem.attributes = &attributes;
  problem.inputs = std::move(inputs);
  return problem;
}

Result<> check_kernel(const Backend& backend, const Tactic& tactic, const Problem& problem, const Config& config,
                      const CheckOptions& options) {
  std::mt19937 generator(options.seed);
  std::vector<Tensor> inputs, operands;
  for (size_t i = 0; i < problem.inputs.size(); ++i) {
    const Operand& input = problem.inputs[i];
    inputs.emplace_back();
    if (i < options.inputs.size() && options.inputs[i].defined())
      inputs[i] = options.inputs[i];
    else if (input.constant)
      inputs[i] = *input.constant;
    else if (!input.omitted) {
      LATHE_ASSIGN(inputs[i], random_tensor(input, generator));
    }
  }
  LATHE_ASSIGN(operands, contents_of(problem.operands, options.operands, generator));
  LATHE_ASSIGN(const std::vector<Tensor> before,
               contents_of(problem.prologue_operands, options.prologue_operands, generator));
  LATHE_ASSIGN(const std::vector<Tensor> got,
               run_kernel(backend, tactic, problem, config, inputs, operands, options.symbols, before));
  for (const Problem::Prologue& prologue : problem.prologues) {
    const std::span own = std::span(before).subspan(prologue.first_operand, problem.operands_of(prologue).size());
    LATHE_ASSIGN(inputs[prologue.input],
                 apply_prologue(prologue.program, inputs[prologue.input], own, options.round_prologues));
  }
  LATHE_ASSIGN(const std::vector<Tensor> want, expected_outputs(problem, inputs, operands, options.evaluate_as_typed));
  for (size_t i = 0; i < got.size(); ++i) LATHE_TRY(compare(got[i], want[i], options.tolerance, i));
  return {};
}

Result<> check_first(const Backend& backend, const Tactic& tactic, const Problem& problem,
                     const CheckOptions& options) {
  if (const std::optional<std::string> refusal = tactic.refuse(problem))
    return fail(ErrorCode::invalid_argument, "{} refuses: {}", tactic.name(), *refusal);
  return check_named(backend, tactic, problem, tactic.configs(problem).at(0), options);
}

Result<> check_tactic(const Backend& backend, const Tactic& tactic, const Problem& problem,
                      const CheckOptions& options) {
  LATHE_TRY(check_first(backend, tactic, problem, options));
  const std::vector<Config> configs = tactic.configs(problem);
  for (size_t i = 1; i < configs.size(); ++i) LATHE_TRY(check_named(backend, tactic, problem, configs[i], options));
  return {};
}

}  // namespace lathe::cuda
