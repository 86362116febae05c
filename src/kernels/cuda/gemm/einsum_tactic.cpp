// SPDX-License-Identifier: Apache-2.0
// An einsum of two operands as stacks of matrices, where their strides allow.
#include <algorithm>
#include <map>

#include "kernels/cuda/gemm/collapsed_tactic.h"
#include "kernels/cuda/source.h"
#include "ops/subscripts.h"

namespace lathe::cuda::gemm {
namespace {

struct Axis {
  Label name = 0;
  Expr extent = 1;
  int64_t opt_extent = 1;
  Expr a, b;  // strides; 0 = the operand has it not, or broadcasts
  bool in_a = false, in_b = false;
  size_t output = 0;  // its dimension of the output
};

using Axes = std::vector<Axis>;

Axis make_axis(const Problem& problem, const Subscripts& subscripts, Label name) {
  Axis label;
  label.name = name;
  for (size_t k = 0; k < 2; ++k) {
    const Operand& operand = problem.inputs[k];
    for (size_t d = 0; d < subscripts.operands[k].size(); ++d) {
      if (subscripts.operands[k][d] != name || operand.dims[d] == Expr(1)) continue;
      label.extent = operand.dims[d];
      label.opt_extent = operand.opt_dims[d];
      (k == 0 ? label.a : label.b) += operand.strides[d];  // of a diagonal: the sum
      (k == 0 ? label.in_a : label.in_b) = true;
    }
  }
  return label;
}

// Whether each label has one extent in all operands, but for those known to be 1.
bool extents_agree(const Problem& problem, const Subscripts& subscripts) {
  std::map<Label, Expr> extents;
  for (size_t k = 0; k < 2; ++k)
    for (size_t d = 0; d < subscripts.operands[k].size(); ++d) {
      const Expr& dim = problem.inputs[k].dims[d];
      if (dim != Expr(1) && extents.emplace(subscripts.operands[k][d], dim).first->second != dim) return false;
    }
  return true;
}

// The labels by what they are in the product.
struct Roles {
  Axes batch, m, n, k;
};

std::optional<std::string> assign_roles(const Problem& problem, const Subscripts& subscripts, Roles& roles) {
  if (!extents_agree(problem, subscripts)) return "dimensions of which only running tells whether they are repeated";
  const std::vector<Label>& output = subscripts.output;
  for (size_t d = 0; d < output.size(); ++d) {
    Axis label = make_axis(problem, subscripts, output[d]);
    label.output = d;
    (label.in_a == label.in_b ? roles.batch : label.in_a ? roles.m : roles.n).push_back(label);
  }
  std::vector<Label> seen;
  for (const auto& operand : subscripts.operands)
    for (Label name : operand) {
      if (std::count(output.begin(), output.end(), name) + std::count(seen.begin(), seen.end(), name) > 0) continue;
      seen.push_back(name);
      const Axis label = make_axis(problem, subscripts, name);
      if (label.in_a != label.in_b) return "a sum over one operand";
      if (label.in_a) roles.k.push_back(label);
    }
  return std::nullopt;
}

// Axes of which each continues the next as one dimension, in order; the rest become batch labels.
Axis join_rows(Roles& roles) {
  Axis rows;
  size_t first = roles.m.size();
  for (; first > 0; --first) {
    const Axis& label = roles.m[first - 1];
    if (first == roles.m.size())
      rows = label;
    else if (label.a != rows.a * rows.extent)
      break;
    else
      rows.extent *= label.extent, rows.opt_extent *= label.opt_extent;
  }
  const auto split = roles.m.begin() + static_cast<std::ptrdiff_t>(first);
  roles.batch.insert(roles.batch.end(), roles.m.begin(), split);
  roles.m.erase(roles.m.begin(), split);
  return rows;
}

// The columns: a label along which the output is contiguous, if there is one, else the last.
Axis take_columns(const Operand& output, Roles& roles) {
  if (roles.n.empty()) return {};
  auto chosen = roles.n.end() - 1;
  for (auto it = roles.n.begin(); it != roles.n.end(); ++it)
    if (output.strides[it->output] == Expr(1)) chosen = it;
  Axis columns = *chosen;
  roles.n.erase(chosen);
  roles.batch.insert(roles.batch.end(), roles.n.begin(), roles.n.end());
  return columns;
}

// All summed labels as one dimension of the second operand; in the first, `a` says where they lie.
bool join_k(Roles& roles, Axis& k, CollapsedDim& a) {
  std::stable_sort(roles.k.begin(), roles.k.end(), [](const Axis& l, const Axis& r) {
    const auto x = l.a.as_constant(), y = r.a.as_constant();
    return x && y && *x > *y;
  });
  for (size_t i = roles.k.size(); i-- > 0;) {
    const Axis& label = roles.k[i];
    if (i + 1 == roles.k.size())
      k = label;
    else if (label.b != k.b * k.extent)
      return false;
    else
      k.extent *= label.extent, k.opt_extent *= label.opt_extent;
    a.prepend({label.extent, label.a});
  }
  if (roles.k.empty()) k.a = k.b = 1;
  return true;
}

// `operand` with the dims of the product: batch, rows, columns.
Operand permuted(const Operand& operand, const Roles& roles, const Axis& columns, bool has_columns) {
  Operand out = operand;
  out.dims.clear(), out.strides.clear(), out.opt_dims.clear(), out.opt_strides.clear();
  for (const Axes* axes : {&roles.batch, &roles.m})
    for (const Axis& label : *axes) out.append_dim(operand.dim(label.output));
  if (roles.m.empty()) out.append_dim({});
  out.append_dim(has_columns ? operand.dim(columns.output) : OperandDim());
  return out;
}

}  // namespace

std::optional<std::string> describe_einsum(const Problem& problem, Product& out) {
  if (problem.inputs.size() != 2) return "not two operands";
  const auto subscripts =
      parse_subscripts(problem.attrs<EinsumAttrs>().equation, {problem.inputs[0].rank(), problem.inputs[1].rank()});
  if (!subscripts) return "the equation is not understood";
  Roles roles;
  if (auto reason = assign_roles(problem, *subscripts, roles)) return reason;
  const bool has_columns = !roles.n.empty();
  const Axis rows = join_rows(roles), columns = take_columns(problem.outputs[0], roles);
  Axis k;
  CollapsedDim k_of_a;
  if (!join_k(roles, k, k_of_a)) return "the summed dimensions are not one of the second operand";
  if (roles.batch.size() + roles.m.size() + 2 > 8) return "more than 8 dimensions";
  out.m = rows.extent, out.n = columns.extent, out.k = k.extent, out.opt_k = k.opt_extent;
  Shape a_strides, b_strides;
  out.batch.clear();
  for (const Axis& label : roles.batch) {
    out.batch.push_back(label.extent);
    a_strides.push_back(label.a), b_strides.push_back(label.b);
  }
  const Operand &a = problem.inputs[0], &b = problem.inputs[1];
  if (k_of_a.axes.size() > 1) {
    CollapsedDim m;
    m.prepend({out.m, rows.a});
    if (auto reason = describe_collapsed(a, m, k_of_a, a_strides, out.a)) return reason;
  } else if (!describe(a, out.m, rows.a, out.k, k.a, a_strides, out.a)) {
    return "neither dimension of the first operand's matrices is contiguous";
  }
  if (!describe(b, out.n, columns.b, out.k, k.b, b_strides, out.b))
    return "neither dimension of the second operand's matrices is contiguous";
  out.problem = problem;
  for (Operand& operand : out.problem.operands)
    operand = permuted(broadcast(operand, problem.outputs[0]), roles, columns, has_columns);
  out.problem.outputs[0] = permuted(problem.outputs[0], roles, columns, has_columns);
  return std::nullopt;
}

}  // namespace lathe::cuda::gemm
