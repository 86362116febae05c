// SPDX-License-Identifier: Apache-2.0
#include "base/for_size.h"
#include "ops/rules.h"

namespace lathe {
namespace {

// Element i of contents that broadcast to a 0-D or 1-D result.
const Expr& element(const std::vector<Expr>& contents, size_t i) { return contents[contents.size() == 1 ? 0 : i]; }

void infer_elements(InferContext& context, const Shape& shape) {
  const std::vector<Expr>* operands[] = {context.partial_elements(0), context.partial_elements(1),
                                         context.partial_elements(2)};
  size_t count = 1;
  if (shape.size() > 1 || !operands[0] || !operands[1] || !operands[2]) return;
  for (const std::vector<Expr>* operand : operands)
    if (operand->size() != 1) count = operand->size();
  for (const std::vector<Expr>* operand : operands)
    if (operand->size() != 1 && operand->size() != count) return;
  std::vector<Expr> out;
  for (size_t i = 0; i < count; ++i) {
    const Expr &condition = element(*operands[0], i), &yes = element(*operands[1], i), &no = element(*operands[2], i);
    if (condition.is_constant())
      out.push_back(*condition.as_constant() ? yes : no);
    else
      out.push_back(yes == no ? yes : Expr::invalid());
  }
  context.set_elements(0, std::move(out));
}

// T is any type of the element's size: selection moves bits.
template <class T>
void select(EvalContext& context) {
  const bool* condition = context.input(0).as<bool>();
  const auto* yes = static_cast<const T*>(context.input(1).data());
  const auto* no = static_cast<const T*>(context.input(2).data());
  auto* out = static_cast<T*>(context.output(0).mutable_data());
  const Dims operands[] = {context.input(0).dims(), context.input(1).dims(), context.input(2).dims()};
  Runs runs(context.output(0).dims(), operands);
  for (int64_t run = 0; run < runs.total(); ++run, runs.next()) {
    const bool* c = condition + runs.offset(0);
    const T *a = yes + runs.offset(1), *b = no + runs.offset(2);
    for (int64_t i = 0; i < runs.count(); ++i) *out++ = c[i * runs.step(0)] ? a[i * runs.step(1)] : b[i * runs.step(2)];
  }
}

}  // namespace

Result<> infer_select(InferContext& context) {
  if (context.dtype(0) != DType::boolean)
    return fail(ErrorCode::type_mismatch, "input 0 has type {}, but a condition must be bool; compare or cast first",
                name_of(context.dtype(0)));
  LATHE_TRY(require_same_dtype(context, 1, 2));
  LATHE_ASSIGN(Shape shape, broadcast(context, context.shape(1), context.shape(2)));
  LATHE_ASSIGN(shape, broadcast(context, shape, context.shape(0)));
  context.set(0, context.dtype(1), shape);
  infer_elements(context, shape);
  return {};
}

Result<> eval_select(EvalContext& context) {
  for_size(size_of(context.output(0).dtype()), [&](auto zero) { select<decltype(zero)>(context); });
  return {};
}

}  // namespace lathe
