// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/pointwise.h"

namespace lathe {
namespace {

using Op = ReduceOp;

// Normalised axes: all of them when none are named, unless the op says that none means none.
Result<Ints> resolve_axes(const ReduceAttrs& attrs, std::span<const int64_t> named, int64_t rank) {
  if (!named.empty() || attrs.noop_with_empty_axes) return normalize_axes(named, rank, "axes");
  Ints all(static_cast<size_t>(rank));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

template <class D>
std::vector<D> reduced(const std::vector<D>& dims, const Ints& axes, bool keepdims) {
  std::vector<D> out;
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool drops = std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(i));
    if (!drops)
      out.push_back(dims[i]);
    else if (keepdims)
      out.push_back(D(1));
  }
  return out;
}

// The output shape when axes are only known while running.
Result<Shape> unknown_shape(InferContext& context, const ReduceAttrs& attrs) {
  const Shape& x = context.shape(0);
  Shape out;
  if (attrs.keepdims) {
    for (const Expr& dim : x) out.push_back(dim == Expr(1) ? dim : context.new_symbol("reduced", out.size()));
    return out;
  }
  const Expr length = context.rank(1) == 0 ? Expr(1) : context.shape(1)[0];
  const std::optional<int64_t> count = length.as_constant();
  if (!count)
    return fail(ErrorCode::shape_unknown,
                "axes come from input 1 of shape {}: their number, hence the rank of the output, is unknown; keep the "
                "dims or make the axes constant",
                to_string(context.shape(1)));
  const int64_t drops = *count == 0 && !attrs.noop_with_empty_axes ? context.rank(0) : *count;
  for (int64_t i = drops; i < context.rank(0); ++i) out.push_back(context.new_symbol("kept", out.size()));
  return out;
}

// Symbolic contents of a fully reduced list.
std::optional<Expr> symbolic_reduce(Op op, DType dtype, const std::vector<Expr>& elements) {
  const bool constant = std::all_of(elements.begin(), elements.end(), [](const Expr& e) { return e.is_constant(); });
  if (!may_hold_symbols(dtype) && !(constant && dtype != DType::u64)) return std::nullopt;
  if (op != Op::sum && op != Op::prod && (elements.empty() || (op != Op::max && op != Op::min))) return std::nullopt;
  Expr result = op == Op::sum ? Expr(0) : op == Op::prod ? Expr(1) : elements[0];
  for (const Expr& element : elements) {
    if (op == Op::sum)
      result += element;
    else if (op == Op::prod)
      result *= element;
    else
      result = op == Op::max ? max(result, element) : min(result, element);
  }
  if (!result.is_valid()) return std::nullopt;
  return constant ? Expr(wrap_to(dtype, *result.as_constant())) : result;
}

double accumulate(Op op, double total, double x) {
  switch (op) {
    case Op::sum:
    case Op::mean:
    case Op::log_sum:
    case Op::log_sum_exp:
      return total + x;  // log_sum_exp: x is already exp(x - max)
    case Op::prod:
      return total * x;
    case Op::max:
      return std::isnan(total) || total > x ? total : x;
    case Op::min:
      return std::isnan(total) || total < x ? total : x;
    case Op::l1:
      return total + std::fabs(x);
    case Op::l2:
    case Op::sum_square:
      return total + x * x;
  }
  return total;
}

int64_t accumulate(Op op, int64_t total, int64_t x) {
  const auto a = static_cast<uint64_t>(total), b = static_cast<uint64_t>(x);
  switch (op) {
    case Op::prod:
      return static_cast<int64_t>(a * b);
    case Op::max:
      return std::max(total, x);
    case Op::min:
      return std::min(total, x);
    case Op::l1:
      return static_cast<int64_t>(x < 0 ? a - b : a + b);
    case Op::sum_square:
      return static_cast<int64_t>(a + b * b);
    default:
      return static_cast<int64_t>(a + b);
  }
}

// What an empty set reduces to.
double start_of(Op op) { return op == Op::prod ? 1 : op == Op::max ? -HUGE_VAL : op == Op::min ? HUGE_VAL : 0; }

int64_t integer_start(Op op, DType dtype) {
  if (op == Op::prod) return 1;
  if (op != Op::max && op != Op::min) return 0;
  int64_t start = dispatch(dtype, [&](auto zero) -> int64_t {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T>)
      return static_cast<int64_t>(op == Op::max ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max());
    else
      return 0;
  });
  order_bits(dtype, {&start, 1});
  return start;
}

// Calls f(run's input values, totals' offset, its step) for all of x in order.
template <class T, class F>
void for_each_block(const Tensor& x, const Dims& kept, F f) {
  std::array<T, kPointwiseBlock> block;
  const Dims operands[] = {kept};
  Runs runs(x.dims(), operands);
  int64_t position = 0;
  for (int64_t run = 0; run < runs.total(); ++run, runs.next())
    for (int64_t begin = 0; begin < runs.count(); begin += kPointwiseBlock) {
      const std::span<T> values(block.data(), static_cast<size_t>(std::min(kPointwiseBlock, runs.count() - begin)));
      BlockAccess<T>::read(x, position, values);
      f(values, runs.offset(0) + begin * runs.step(0), runs.step(0));
      position += static_cast<int64_t>(values.size());
    }
}

// Totals of the log-sum-exp are sums of exp(x - largest), so that nothing overflows.
void reduce_exponentials(const Tensor& x, const Dims& kept, std::span<double> totals) {
  std::vector<double> largest(totals.size(), -HUGE_VAL);
  for_each_block<double>(x, kept, [&](std::span<const double> values, int64_t at, int64_t step) {
    for (size_t i = 0; i < values.size(); ++i, at += step) largest[at] = accumulate(Op::max, largest[at], values[i]);
  });
  for (double& value : largest)
    if (std::isinf(value)) value = 0;
  for_each_block<double>(x, kept, [&](std::span<const double> values, int64_t at, int64_t step) {
    for (size_t i = 0; i < values.size(); ++i, at += step) totals[at] += std::exp(values[i] - largest[at]);
  });
  for (size_t i = 0; i < totals.size(); ++i) totals[i] = std::log(totals[i]) + largest[i];
}

void reduce_doubles(Op op, const Tensor& x, const Dims& kept, Tensor& y) {
  std::vector<double> totals(static_cast<size_t>(y.volume()), start_of(op));
  if (op == Op::log_sum_exp) {
    reduce_exponentials(x, kept, totals);
  } else {
    for_each_block<double>(x, kept, [&](std::span<const double> values, int64_t at, int64_t step) {
      for (size_t i = 0; i < values.size(); ++i, at += step) totals[at] = accumulate(op, totals[at], values[i]);
    });
  }
  const double count = static_cast<double>(x.volume()) / static_cast<double>(totals.size());
  for (double& total : totals) {
    if (op == Op::mean) total /= count;
    if (op == Op::l2) total = std::sqrt(total);
    if (op == Op::log_sum) total = std::log(total);
  }
  from_doubles(totals, y);
}

void reduce_ints(Op op, const Tensor& x, const Dims& kept, Tensor& y) {
  std::vector<int64_t> totals(static_cast<size_t>(y.volume()), integer_start(op, x.dtype()));
  const bool ordered = op == Op::max || op == Op::min;
  for_each_block<int64_t>(x, kept, [&](std::span<int64_t> values, int64_t at, int64_t step) {
    if (ordered) order_bits(x.dtype(), values);
    for (size_t i = 0; i < values.size(); ++i, at += step) totals[at] = accumulate(op, totals[at], values[i]);
  });
  if (ordered) order_bits(x.dtype(), totals);
  const int64_t count = totals.empty() ? 0 : x.volume() / static_cast<int64_t>(totals.size());
  if (op == Op::mean)
    for (int64_t& total : totals) {
      if (count == 0)
        total = 0;
      else if (x.dtype() == DType::u64)
        total = static_cast<int64_t>(static_cast<uint64_t>(total) / static_cast<uint64_t>(count));
      else
        total /= count;
    }
  from_ints(totals, y);
}

bool exact_on_integers(Op op) { return op != Op::l2 && op != Op::log_sum && op != Op::log_sum_exp; }

}  // namespace

Result<> infer_reduce(InferContext& context) {
  const ReduceAttrs& attrs = context.attrs<ReduceAttrs>();
  const DType dtype = context.dtype(0);
  if (attrs.op != Op::max && attrs.op != Op::min) LATHE_TRY(require_numeric(context, 0));
  if (context.has(1)) {
    LATHE_TRY(require_integer(context, 1));
    LATHE_TRY(require_rank(context, 1, 0, 1));
  }
  const std::optional<Ints> from_input = context.constant_elements(1);
  if (context.has(1) && !from_input) {
    LATHE_ASSIGN(Shape shape, unknown_shape(context, attrs));
    context.set(0, dtype, std::move(shape));
    return {};
  }
  LATHE_ASSIGN(const Ints axes, resolve_axes(attrs, from_input ? *from_input : attrs.axes, context.rank(0)));
  context.set(0, dtype, reduced(context.shape(0), axes, attrs.keepdims));
  const std::vector<Expr>* elements = context.elements(0);
  if (!elements || context.rank(0) != 1 || axes.empty()) return {};
  if (std::optional<Expr> total = symbolic_reduce(attrs.op, dtype, *elements))
    context.set_elements(0, {*std::move(total)});
  return {};
}

Result<> eval_reduce(EvalContext& context) {
  const ReduceAttrs& attrs = context.attrs<ReduceAttrs>();
  const Tensor& x = context.input(0);
  const Ints named = context.has(1) ? to_ints(context.input(1)) : attrs.axes;
  LATHE_ASSIGN(const Ints axes, resolve_axes(attrs, named, x.rank()));
  const Dims kept = reduced(x.dims(), axes, true);
  if (is_floating(x.dtype()) || !exact_on_integers(attrs.op))
    reduce_doubles(attrs.op, x, kept, context.output(0));
  else
    reduce_ints(attrs.op, x, kept, context.output(0));
  return {};
}

}  // namespace lathe
