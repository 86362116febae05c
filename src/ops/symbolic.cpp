// SPDX-License-Identifier: Apache-2.0
#include "ops/symbolic.h"

#include "ops/rules.h"

namespace lathe {
namespace {

constexpr int64_t kMaxElements = 1024;  // contents of larger tensors are not tracked

// Shape as numbers when there are few elements.
std::optional<Dims> small_dims(const Shape& shape) {
  std::optional<Dims> dims = as_constant(shape);
  if (!dims) return std::nullopt;
  const std::optional<int64_t> count = checked_volume(*dims);
  if (!count || *count > kMaxElements) return std::nullopt;
  return dims;
}

// The tensor of input i for the evaluation: element numbers for a data input, also where the elements are not known,
// else its constant.
std::optional<Tensor> stand_in(const InferContext& context, size_t i, bool data, std::vector<Expr>& numbered) {
  if (!data && context.constant(i)) return *context.constant(i);
  const std::optional<Dims> dims = small_dims(context.shape(i));
  if (!dims) return std::nullopt;
  Result<Tensor> tensor = Tensor::allocate(DType::i64, *dims);
  if (!tensor) return std::nullopt;
  for (size_t e = 0; e < static_cast<size_t>(tensor->volume()); ++e) {
    const Expr element = context.element(i, e).value_or(Expr::invalid());
    if (!data && !element.is_constant()) return std::nullopt;
    tensor->mutable_as<int64_t>()[e] = data ? static_cast<int64_t>(numbered.size()) : *element.as_constant();
    if (data) numbered.push_back(element);
  }
  return *std::move(tensor);
}

}  // namespace

Expr smaller(const InferContext& context, const Expr& a, const Expr& b) {
  const Range difference = context.range(a - b);
  if (difference.max <= 0) return a;
  if (difference.min >= 0) return b;
  return min(a, b);
}

Expr larger(const InferContext& context, const Expr& a, const Expr& b) {
  const Range difference = context.range(a - b);
  if (difference.min >= 0) return a;
  if (difference.max <= 0) return b;
  return max(a, b);
}

Result<> require_list(const InferContext& context, size_t i, std::string_view what) {
  if (!is_integer(context.dtype(i)))
    return fail(ErrorCode::type_mismatch, "{} (input {}) must be integers, but is {}", what, i,
                name_of(context.dtype(i)));
  if (context.rank(i) != 1)
    return fail(ErrorCode::shape_mismatch, "{} (input {}) must be a list, but has shape {}", what, i,
                to_string(context.shape(i)));
  return {};
}

Result<int64_t> list_length(const InferContext& context, size_t i, std::string_view what) {
  LATHE_TRY(require_list(context, i, what));
  const std::optional<int64_t> length = context.shape(i)[0].as_constant();
  if (!length)
    return fail(ErrorCode::shape_unknown,
                "the number of entries of {} (input {}) is only known while running; give it a fixed length", what, i);
  return *length;
}

void move_elements(InferContext& context, size_t num_data) {
  bool any = false;
  for (size_t i = 0; i < num_data; ++i) any |= context.partial_elements(i) != nullptr;
  if (!any) return;
  std::vector<Expr> numbered;
  std::vector<Tensor> inputs(context.num_inputs()), outputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!context.has(i)) continue;
    std::optional<Tensor> tensor = stand_in(context, i, i < num_data, numbered);
    if (!tensor) return;
    inputs[i] = *std::move(tensor);
  }
  std::vector<ValueType> types;
  for (const InferContext::Output& output : context.outputs()) {
    const std::optional<Dims> dims = small_dims(output.type.shape);
    if (!dims) return;
    Result<Tensor> tensor = Tensor::allocate(DType::i64, *dims);
    if (!tensor) return;
    outputs.push_back(*std::move(tensor));
    types.push_back({DType::i64, output.type.shape});
  }
  const Attributes& attributes = context.attrs<Attributes>();
  EvalContext eval(attributes, inputs, outputs, types);
  if (!op_info(attributes.kind()).eval(eval)) return;  // the run itself will report it
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::vector<Expr> elements;
    for (int64_t number : to_ints(outputs[i])) elements.push_back(numbered[static_cast<size_t>(number)]);
    context.set_elements(i, std::move(elements));
  }
}

}  // namespace lathe
