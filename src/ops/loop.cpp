// SPDX-License-Identifier: Apache-2.0
#include "ops/rules.h"

namespace lathe {
namespace {

constexpr size_t kControls = 2;  // trip count and condition, before the carried values

bool is_one(const Shape& shape) { return shape.empty() || (shape.size() == 1 && shape[0] == Expr(1)); }

Result<> check_control(InferContext& context, size_t i, DType dtype, std::string_view what) {
  if (!context.has(i) || (context.dtype(i) == dtype && is_one(context.shape(i)))) return {};
  return fail(ErrorCode::type_mismatch, "loop: the {} must be one {}, but is {}{}", what, name_of(dtype),
              name_of(context.dtype(i)), to_string(context.shape(i)));
}

// How many rounds there are where nothing ends the loop early: nullopt where that is computed.
std::optional<Expr> rounds_of(InferContext& context, const LoopAttrs& attrs) {
  std::optional<Expr> rounds;
  const auto at_most = [&](const Expr& count) { rounds = rounds ? min(*rounds, count) : count; };
  if (context.has(0)) {
    const std::vector<Expr>* trip_count = context.elements(0);
    if (!trip_count) return std::nullopt;
    at_most(max(trip_count->at(0), Expr(0)));
  }
  for (size_t i = 0; i < attrs.scan_axes.size(); ++i) {
    const size_t input = kControls + static_cast<size_t>(attrs.carried) + i;
    const Expr& extent = context.shape(input)[static_cast<size_t>(attrs.scan_axes[i])];
    if (i > 0 && rounds && *rounds == extent) continue;
    at_most(extent);
  }
  return rounds;
}

}  // namespace

Result<> infer_loop(InferContext& context) {
  const auto& attrs = context.attrs<LoopAttrs>();
  const auto carried = static_cast<size_t>(attrs.carried);
  LATHE_TRY(check_control(context, 0, DType::i64, "trip count"));
  LATHE_TRY(check_control(context, 1, DType::boolean, "condition"));
  if (context.bodies().size() != 1) return fail(ErrorCode::graph_invalid, "loop: it has no body");
  const InferContext::Results& results = context.bodies()[0];
  if (results.size() != 1 + carried + attrs.stack_axes.size() ||
      context.num_outputs() != carried + attrs.stack_axes.size())
    return fail(ErrorCode::graph_invalid,
                "loop: its body yields {} values and it has {} results, for {} carried and {} stacked", results.size(),
                context.num_outputs(), carried, attrs.stack_axes.size());
  auto outside = [&, place = size_t{0}](const Expr& dim, std::string_view what) mutable {
    ++place;
    return dim.is_valid() ? dim : context.new_symbol(what, place - 1);
  };
  for (size_t i = 0; i < carried; ++i) {
    Shape shape;
    for (const Expr& dim : results[1 + i].shape) shape.push_back(outside(dim, "carried"));
    context.set(i, results[1 + i].dtype, std::move(shape));
  }
  const bool may_end_early = context.has(1);
  const std::optional<Expr> known = may_end_early ? std::nullopt : rounds_of(context, attrs);
  std::optional<Expr> rounds;
  for (size_t i = 0; i < attrs.stack_axes.size(); ++i) {
    if (!rounds) rounds = known ? *known : context.new_symbol("rounds");
    const ValueType& slice = results[1 + carried + i];
    Shape shape;
    for (const Expr& dim : slice.shape) shape.push_back(outside(dim, "stacked"));
    if (attrs.stack_axes[i] < 0 || attrs.stack_axes[i] > slice.rank())
      return fail(ErrorCode::graph_invalid, "loop: result {} has no axis {}", carried + i, attrs.stack_axes[i]);
    shape.insert(shape.begin() + attrs.stack_axes[i], *rounds);
    context.set(carried + i, slice.dtype, std::move(shape));
  }
  return {};
}

Result<> eval_loop(EvalContext&) {
  return fail(ErrorCode::op_unsupported, "a loop has no evaluation of its own: its body is run");
}

}  // namespace lathe
