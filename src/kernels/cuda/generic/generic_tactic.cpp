// SPDX-License-Identifier: Apache-2.0
// Every op on all its element types, a thread per element, line or result: what runs when no faster kernel does.
// Results are those of the plain evaluation.
#include "kernels/cuda/generic/op_source.h"

namespace lathe::cuda {
namespace {

const GenericOp* find_generic(OpKind kind) {
  for (const auto group :
       {pointwise_ops(), movement_ops(), indexing_ops(), row_ops(), window_ops(), contraction_ops(), sampling_ops()})
    for (const GenericOp& op : group)
      if (op.kind == kind) return &op;
  return nullptr;
}

Result<Emission> emit_op(const Problem& problem) {
  if (!problem.attributes) return emit_pointwise_program(problem);
  const OpKind kind = problem.attributes->kind();
  const OpInfo& info = op_info(kind);
  if (info.traits & kDataDependent) return fail(ErrorCode::no_tactic, "the size of its result depends on its data");
  const GenericOp* op = find_generic(kind);
  if (!op) return fail(ErrorCode::no_tactic, "{} has no device code", info.name);
  if (!op->takes_program && !problem.program.is_identity())
    return fail(ErrorCode::no_tactic, "nothing can be fused to {} here", info.name);
  LATHE_ASSIGN(Emission emission, op->emit(problem));
  for (const SourceLaunch& each : emission.launches)
    if (each.launch.args.size() > kMaxLaunchArgs)
      return fail(ErrorCode::no_tactic, "it needs {} kernel arguments, {} are possible", each.launch.args.size(),
                  kMaxLaunchArgs);
  return emission;
}

class GenericTactic final : public Tactic {
 public:
  std::string_view name() const override { return "generic"; }
  bool makes_several_results() const override { return true; }
  bool reads_padding() const override { return true; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    const Result<Emission> emission = emit_op(problem);
    if (emission) return std::nullopt;
    return emission.error().message;
  }

  // Slower than anything that was made for the op.
  std::vector<Config> configs(const Problem&) const override {
    constexpr double kSlow = 1e6;
    return {{"", {}, kSlow}};
  }

  Result<Emission> emit(const Problem& problem, const Config&) const override { return emit_op(problem); }
};

}  // namespace

const Tactic& generic_tactic() {
  static const GenericTactic tactic;
  return tactic;
}

}  // namespace lathe::cuda
