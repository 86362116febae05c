// SPDX-License-Identifier: Apache-2.0
#include "base/encoding.h"
#include "ops/copy_box.h"
#include "ops/symbolic.h"

namespace lathe {

Result<> infer_fill(InferContext& context) {
  const Tensor& value = context.attrs<FillAttrs>().value;
  if (value.defined() && value.volume() != 1)
    return fail(ErrorCode::attribute_invalid, "fill: the value must be one element, but has shape {}",
                to_string(to_shape(value.dims())));
  const DType dtype = value.defined() ? value.dtype() : DType::f32;
  LATHE_ASSIGN(const int64_t rank, list_length(context, 0, "fill: shape"));
  Shape output(static_cast<size_t>(rank));
  for (size_t i = 0; i < output.size(); ++i) {
    const std::optional<Expr> known = context.element(0, i);
    output[i] = known ? *known : context.new_symbol("fill_dim", i);
    if (output[i].is_constant() && *output[i].as_constant() < 0)
      return fail(ErrorCode::shape_mismatch, "fill: dimension {} is {}, expected 0 or more", i,
                  *output[i].as_constant());
  }
  const std::optional<int64_t> count = volume(output).as_constant();
  if (count && *count <= 1024 && is_integral(dtype))
    context.set_elements(0,
                         std::vector<Expr>(static_cast<size_t>(*count), value.defined() ? Expr(value.at(0)) : Expr(0)));
  context.set(0, dtype, std::move(output));
  return {};
}

Result<> eval_fill(EvalContext& context) {
  const Tensor& value = context.attrs<FillAttrs>().value;
  Tensor& output = context.output(0);
  if (is_storage_only(output.dtype())) {
    const uint8_t code = load_code(output.dtype(), value.data(), 0);
    for (int64_t i = 0; i < output.volume(); ++i) store_code(output.dtype(), output.mutable_data(), i, code);
    return {};
  }
  static constexpr uint64_t kZero = 0;
  fill_elements(size_of(output.dtype()), value.defined() ? value.data() : &kZero, output.mutable_data(),
                output.volume());
  return {};
}

}  // namespace lathe
