// SPDX-License-Identifier: Apache-2.0
// Einsums of one or two operands, and matrix products of types other than f32: kernel "contraction".
#include <algorithm>

#include "kernels/cpu/contraction/contraction.h"
#include "kernels/cpu/cost_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "ops/subscripts.h"

namespace lathe::cpu {
namespace {

// Of operands and result, with a label for each dimension.
using Labels = std::vector<std::vector<Label>>;

constexpr Label kRow = 1, kColumn = 2, kSummed = 3;  // of a matrix product

Labels labels_of_matmul(const Problem& problem) {
  const auto& attrs = problem.attrs<MatmulAttrs>();
  // Batch dimensions are aligned at the last: their labels count from there.
  const auto batch = [](int rank) {
    std::vector<Label> labels;
    for (int d = rank - 2; d-- > 0;) labels.push_back(kEllipsis + d);
    return labels;
  };
  Labels labels = {batch(problem.inputs[0].rank()), batch(problem.inputs[1].rank())};
  std::vector<Label> result = labels[0].size() > labels[1].size() ? labels[0] : labels[1];
  const auto add = [](std::vector<Label>& to, Label row, Label column, bool transposed, bool is_vector) {
    if (is_vector)
      to.push_back(kSummed);
    else
      to.insert(to.end(), {transposed ? column : row, transposed ? row : column});
  };
  const bool left_vector = problem.inputs[0].rank() == 1, right_vector = problem.inputs[1].rank() == 1;
  add(labels[0], kRow, kSummed, attrs.transpose_a, left_vector);
  add(labels[1], kSummed, kColumn, attrs.transpose_b, right_vector);
  if (!left_vector) result.push_back(kRow);
  if (!right_vector) result.push_back(kColumn);
  labels.push_back(std::move(result));
  return labels;
}

// Nothing where an einsum has more operands than the kernel.
std::optional<Labels> labels_of(const Problem& problem) {
  if (problem.is(OpKind::matmul)) return labels_of_matmul(problem);
  std::vector<int64_t> ranks;
  for (const Operand& input : problem.inputs) ranks.push_back(input.rank());
  const Result<Subscripts> subscripts = parse_subscripts(problem.attrs<EinsumAttrs>().equation, ranks);
  if (!subscripts || ranks.size() > 2) return std::nullopt;
  Labels labels = subscripts->operands;
  labels.resize(2);  // a second operand without dimensions
  labels.push_back(subscripts->output);
  return labels;
}

// Bit sets of dimensions for each label, as the kernel's params have them.
std::vector<int64_t> params_of(const Labels& labels) {
  std::vector<Label> axes;
  for (const std::vector<Label>& own : {labels[2], labels[0], labels[1]})
    for (const Label label : own)
      if (std::find(axes.begin(), axes.end(), label) == axes.end()) axes.push_back(label);
  std::vector<int64_t> params = {static_cast<int64_t>(axes.size())};
  for (const Label axis : axes)
    for (const std::vector<Label>& own : labels) {
      int64_t bits = 0;
      for (size_t d = 0; d < own.size(); ++d) bits |= own[d] == axis ? int64_t{1} << d : 0;
      params.push_back(bits);
    }
  return params;
}

class ContractionTactic final : public Tactic {
 public:
  std::string_view name() const override { return "contraction"; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::matmul) && !problem.is(OpKind::einsum)) return "no sum of products";
    const DType type = problem.outputs[0].dtype;
    if (problem.is(OpKind::matmul) && type == DType::f32) return "matrix products of f32 have a kernel of their own";
    if (!contraction::is_supported(type) || problem.inputs[0].dtype != type)
      return fmt::format("it makes {} of {}", name_of(type), name_of(problem.inputs[0].dtype));
    if (!problem.program.is_identity()) return "this kernel has no epilogue";
    const std::optional<Labels> labels = labels_of(problem);
    if (!labels) return "more than two operands";
    if (params_of(*labels)[0] > contraction::kMaxAxes) return "more axes than the kernel takes";
    return std::nullopt;
  }

  std::vector<Config> configs(const Problem& problem) const override { return only_config(problem); }

  Result<Emission> emit(const Problem& problem, const Config&) const override {
    Emission emission;
    emission.kernel = "contraction";
    emission.params = params_of(*labels_of(problem));
    for (size_t i = 0; i < problem.inputs.size(); ++i) emission.inputs.push_back({StepInput::input, i});
    if (problem.inputs.size() == 2) return emission;
    LATHE_ASSIGN(Tensor one, Tensor::allocate(problem.inputs[0].dtype, {}));
    dispatch(one.dtype(), [&](auto zero) { *one.mutable_as<decltype(zero)>() = decltype(zero)(1); });
    emission.packed.push_back(std::move(one));
    emission.inputs.push_back({StepInput::packed, 0});
    return emission;
  }
};

}  // namespace

const Tactic& contraction_tactic() {
  static const ContractionTactic tactic;
  return tactic;
}

}  // namespace lathe::cpu
