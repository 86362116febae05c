// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "ops/rules.h"

namespace lathe {
namespace {

// Every dim of an operand carries a label. Letters stand for themselves; the dims of an ellipsis get labels from
// kEllipsis on, counted from the last one, so that ellipses align at the right.
using Label = int;
constexpr Label kEllipsis = 256;

struct Subscripts {
  std::vector<std::vector<Label>> operands;
  std::vector<Label> output;
};

Result<std::vector<Label>> parse_term(std::string_view term, int64_t ellipsis_rank) {
  std::vector<Label> labels;
  bool seen = false;
  for (size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      labels.push_back(c);
    } else if (term.substr(i, 3) == "..." && !seen) {
      seen = true;
      i += 2;
      for (int64_t d = ellipsis_rank; d-- > 0;) labels.push_back(kEllipsis + static_cast<Label>(d));
    } else {
      return fail(ErrorCode::attribute_invalid, "equation has the term '{}': only letters and one '...' are allowed",
                  term);
    }
  }
  return labels;
}

std::vector<std::string> split_terms(const std::string& text) {
  std::vector<std::string> terms(1);
  for (char c : text)
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  return terms;
}

// Without "->": the ellipsis, then the letters that occur once, in order.
std::vector<Label> implicit_output(const std::vector<std::vector<Label>>& operands) {
  std::vector<Label> all, out;
  for (const std::vector<Label>& labels : operands) all.insert(all.end(), labels.begin(), labels.end());
  std::sort(all.begin(), all.end());
  for (Label label : all)
    if (label >= kEllipsis && (out.empty() || out.front() != label)) out.insert(out.begin(), label);
  for (Label label : all)
    if (label < kEllipsis && std::count(all.begin(), all.end(), label) == 1) out.push_back(label);
  return out;
}

Result<Subscripts> parse(std::string equation, const std::vector<int64_t>& ranks) {
  std::erase(equation, ' ');
  const size_t arrow = equation.find("->");
  const std::vector<std::string> terms = split_terms(equation.substr(0, arrow));
  if (terms.size() != ranks.size())
    return fail(ErrorCode::attribute_invalid, "equation '{}' has {} terms, but there are {} inputs", equation,
                terms.size(), ranks.size());
  Subscripts subscripts;
  int64_t widest = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    const bool ellipsis = terms[i].find("...") != std::string::npos;
    const int64_t letters = static_cast<int64_t>(terms[i].size()) - (ellipsis ? 3 : 0);
    if (ellipsis ? ranks[i] < letters : ranks[i] != letters)
      return fail(ErrorCode::shape_mismatch, "the term '{}' of the equation does not fit input {} of rank {}", terms[i],
                  i, ranks[i]);
    if (ellipsis) widest = std::max(widest, ranks[i] - letters);
    LATHE_ASSIGN(subscripts.operands.emplace_back(), parse_term(terms[i], ellipsis ? ranks[i] - letters : 0));
  }
  if (arrow == std::string::npos) {
    subscripts.output = implicit_output(subscripts.operands);
  } else {
    LATHE_ASSIGN(subscripts.output, parse_term(equation.substr(arrow + 2), widest));
  }
  return subscripts;
}

// Labels in the order of evaluation: those of the output, then the summed ones.
Result<std::vector<Label>> all_labels(const Subscripts& subscripts, std::string_view equation) {
  std::vector<Label> labels;
  for (Label label : subscripts.output) {
    const bool known = std::any_of(subscripts.operands.begin(), subscripts.operands.end(), [&](const auto& operand) {
      return std::find(operand.begin(), operand.end(), label) != operand.end();
    });
    if (!known || std::find(labels.begin(), labels.end(), label) != labels.end())
      return fail(ErrorCode::attribute_invalid,
                  "equation '{}': each output label must occur in an input, and once in the output", equation);
    labels.push_back(label);
  }
  for (const std::vector<Label>& operand : subscripts.operands)
    for (Label label : operand)
      if (std::find(labels.begin(), labels.end(), label) == labels.end()) {
        if (label >= kEllipsis)
          return fail(ErrorCode::attribute_invalid, "equation '{}': the output lacks the '...' of the inputs",
                      equation);
        labels.push_back(label);
      }
  return labels;
}

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
  LATHE_ASSIGN(const Subscripts subscripts, parse(equation, ranks));
  LATHE_ASSIGN(const std::vector<Label> labels, all_labels(subscripts, equation));
  Shape extents(labels.size(), 1);
  for (size_t i = 0; i < ranks.size(); ++i)
    for (size_t d = 0; d < subscripts.operands[i].size(); ++d) {
      Expr& extent = extents[static_cast<size_t>(std::find(labels.begin(), labels.end(), subscripts.operands[i][d]) -
                                                 labels.begin())];
      const Result<Shape> joined = broadcast({extent}, {context.shape(i)[d]});
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
  LATHE_ASSIGN(const Subscripts subscripts, parse(equation, ranks_of(context)));
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
