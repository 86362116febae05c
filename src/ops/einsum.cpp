// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/rules.h"
#include "ops/subscripts.h"

namespace lathe {
namespace {

// Products of one element of each operand, summed over the labels that the output lacks. T is double, or uint64_t for
// integers (wraps).
template <class T>
std::vector<T> evaluate(const std::vector<std::vector<T>>& operands, const Dims& dims, const std::vector<Dims>& strides,
                        size_t output_size) {
  std::vector<T> out(output_size, T{0});
  const size_t count = operands.size();
  // The last label is an inner loop; the output's strides are the last entry.
  const int64_t inner = dims.empty() ? 1 : dims.back();
  std::vector<int64_t> steps;
  std::vector<Dims> outer_strides = strides;
  for (Dims& own : outer_strides) {
    steps.push_back(own.empty() ? 0 : own.back());
    if (!own.empty()) own.pop_back();
  }
  Dims outer(dims.begin(), dims.end() - (dims.empty() ? 0 : 1));
  int64_t total = 1;
  for (int64_t dim : outer) total *= dim;
  Walk walk(std::move(outer), std::move(outer_strides));
  for (int64_t at = 0; at < total; ++at, walk.next())
    for (int64_t i = 0; i < inner; ++i) {
      T product{1};
      for (size_t k = 0; k < count; ++k) product *= operands[k][walk.offset(k) + i * steps[k]];
      out[walk.offset(count) + i * steps[count]] += product;
    }
  return out;
}

// An operand's stride for each label: the sum over the dims that carry it, 0 for a dim of 1 that broadcasts.
Dims label_strides(const std::vector<Label>& labels, const Dims& extents, const std::vector<Label>& own,
                   const Dims& dims) {
  const Dims strides = row_major_strides(dims);
  Dims out(labels.size(), 0);
  for (size_t d = 0; d < own.size(); ++d) {
    const size_t at = static_cast<size_t>(std::find(labels.begin(), labels.end(), own[d]) - labels.begin());
    if (dims[d] != 1 || extents[at] == 1) out[at] += strides[d];
  }
  return out;
}

std::vector<int64_t> ranks_of(EvalContext& context) {
  std::vector<int64_t> ranks;
  for (size_t i = 0; i < context.num_inputs(); ++i) ranks.push_back(context.input(i).rank());
  return ranks;
}

// A label that one operand has twice walks along a diagonal, where nothing broadcasts: ii of [1, 3] is an error.
Result<> require_square_diagonals(InferContext& context, const Subscripts& subscripts, std::string_view equation) {
  for (size_t i = 0; i < subscripts.operands.size(); ++i) {
    const std::vector<Label>& own = subscripts.operands[i];
    for (size_t d = 0; d < own.size(); ++d) {
      const auto first = static_cast<size_t>(std::find(own.begin(), own.end(), own[d]) - own.begin());
      if (first != d && !context.assume_equal(context.shape(i)[first], context.shape(i)[d]))
        return fail(ErrorCode::shape_mismatch,
                    "equation '{}' gives dims {} and {} of input {} one label, but its shape is {}", equation, first, d,
                    i, to_string(context.shape(i)));
    }
  }
  return {};
}

}  // namespace

Result<> infer_einsum(InferContext& context) {
  const std::string& equation = context.attrs<EinsumAttrs>().equation;
  std::vector<int64_t> ranks;
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    if (!context.has(i)) return fail(ErrorCode::graph_invalid, "input {} is missing", i);
    LATHE_TRY(require_numeric(context, i));
    LATHE_TRY(require_same_dtype(context, 0, i));
    ranks.push_back(context.rank(i));
  }
  LATHE_ASSIGN(const Subscripts subscripts, parse_subscripts(equation, ranks));
  LATHE_TRY(require_square_diagonals(context, subscripts, equation));
  LATHE_ASSIGN(const std::vector<Label> labels, all_labels(subscripts, equation));
  Shape extents(labels.size(), 1);
  for (size_t i = 0; i < ranks.size(); ++i)
    for (size_t d = 0; d < subscripts.operands[i].size(); ++d) {
      Expr& extent = extents[static_cast<size_t>(std::find(labels.begin(), labels.end(), subscripts.operands[i][d]) -
                                                 labels.begin())];
      const Result<Shape> joined = broadcast(context, {extent}, {context.shape(i)[d]});
      if (!joined)
        return fail(ErrorCode::shape_mismatch,
                    "equation '{}' gives dim {} of input {} of shape {} a label that stands for {} elsewhere", equation,
                    d, i, to_string(context.shape(i)), extent.to_string());
      extent = (*joined)[0];
    }
  extents.resize(subscripts.output.size());
  context.set(0, context.dtype(0), std::move(extents));
  return {};
}

Result<> eval_einsum(EvalContext& context) {
  const std::string& equation = context.attrs<EinsumAttrs>().equation;
  LATHE_ASSIGN(const Subscripts subscripts, parse_subscripts(equation, ranks_of(context)));
  LATHE_ASSIGN(const std::vector<Label> labels, all_labels(subscripts, equation));
  Dims extents(labels.size(), 1);
  for (size_t k = 0; k < context.num_inputs(); ++k)
    for (size_t d = 0; d < subscripts.operands[k].size(); ++d) {
      const int64_t dim = context.input(k).dims()[d];
      const auto label = std::find(labels.begin(), labels.end(), subscripts.operands[k][d]);
      if (dim != 1) extents[static_cast<size_t>(label - labels.begin())] = dim;
    }
  std::vector<Dims> strides;
  for (size_t k = 0; k < context.num_inputs(); ++k)
    strides.push_back(label_strides(labels, extents, subscripts.operands[k], context.input(k).dims()));
  Tensor& y = context.output(0);
  strides.push_back(label_strides(labels, extents, subscripts.output, y.dims()));
  const auto size = static_cast<size_t>(y.volume());
  if (is_floating(y.dtype())) {
    std::vector<std::vector<double>> operands;
    for (size_t k = 0; k < context.num_inputs(); ++k) operands.push_back(to_doubles(context.input(k)));
    from_doubles(evaluate(operands, extents, strides, size), y);
  } else {
    std::vector<std::vector<uint64_t>> operands;
    for (size_t k = 0; k < context.num_inputs(); ++k) {
      const std::vector<int64_t> values = to_ints(context.input(k));
      operands.emplace_back(values.begin(), values.end());
    }
    const std::vector<uint64_t> sums = evaluate(operands, extents, strides, size);
    from_ints(std::vector<int64_t>(sums.begin(), sums.end()), y);
  }
  return {};
}

}  // namespace lathe
