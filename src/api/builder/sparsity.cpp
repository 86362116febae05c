// SPDX-License-Identifier: Apache-2.0
#include "api/builder/sparsity.h"

#include "ir/builder.h"
#include "ops/sparsity.h"

namespace lathe::api {
namespace {

std::string names_of(const BuildReport& report, bool RegionReport::*which, size_t& count) {
  std::string names;
  for (const RegionReport& region : report.regions)
    if (region.*which) names += (count++ == 0 ? "" : ", ") + region.name;
  return names;
}

// The constant that a product or convolution has for its weights, perhaps by levels that are dequantised.
ir::Value* weights_of(const ir::Node& node) {
  ir::Value* weights = node.num_inputs() > 1 ? node.input(1) : nullptr;
  if (weights && weights->producer() && weights->producer()->is(OpKind::dequantize))
    weights = weights->producer()->input(0);
  return weights && weights->constant() ? weights : nullptr;
}

}  // namespace

bool uses_sparsity(const BuilderConfig& settings, const BackendBuild& backend, Log& log) {
  if (!settings.has(nv::BuilderFlag::kSPARSE_WEIGHTS)) return false;
  std::string reason = backend.no_sparsity;
  if (reason.empty() && settings.has(nv::BuilderFlag::kSTRICT_NANS))
    reason = "a zero that is left out makes no NaN of an infinity, which BuilderFlag::kSTRICT_NANS asks for";
  if (reason.empty()) return true;
  log.print(Severity::warning, "BuilderFlag::kSPARSE_WEIGHTS has no effect: {}", reason);
  return false;
}

Result<> force_sparsity(const BuilderConfig& settings, ir::Graph& graph, const BuildOptions& options) {
  if (!settings.forces_sparsity) return {};
  if (options.refit.kind != plan::RefitKind::none)
    return fail(ErrorCode::config_invalid,
                "setForcedSparsity() prunes weights, and flags of refitting let others take their place: clear the "
                "flags, or prune the model");
  PassContext context = options.passes;
  context.arithmetic = options.traits.arithmetic;
  LATHE_TRY(run_pass("fold_constants", graph, context));  // weights that are transposed, say
  size_t count = 0;
  for (const auto& node : graph.nodes()) {
    ir::Value* const weights = weights_of(*node);
    const auto dim = weights ? summed_dim(node->attributes(), weights->constant()->dims()) : std::nullopt;
    if (!dim || is_packed(weights->dtype()) || is_sparse(*weights->constant(), *dim)) continue;
    ir::GraphBuilder builder(graph, {weights->producer()->name(), weights->producer()->origin(), {}},
                             weights->producer());
    ir::Value* const pruned_weights = builder.constant(pruned(*weights->constant(), *dim));
    if (builder.failed()) return fail(*builder.error());
    LATHE_TRY(graph.replace_uses(weights, pruned_weights));
    ++count;
  }
  options.log->print(Severity::warning, "setForcedSparsity() has pruned the weights of {} layer(s): results are others",
                     count);
  return {};
}

void log_sparsity(const BuildReport& report, Log& log) {
  size_t eligible = 0, chosen = 0;
  const std::string all = names_of(report, &RegionReport::is_sparse, eligible);
  const std::string sparse = names_of(report, &RegionReport::leaves_out_zeros, chosen);
  log.print(Severity::info, "(Sparsity) Found {} layer(s) eligible to use sparse tactics: {}", eligible, all);
  log.print(Severity::info, "(Sparsity) Chose {} layer(s) using sparse tactics: {}", chosen, sparse);
}

}  // namespace lathe::api
