// SPDX-License-Identifier: Apache-2.0
#include "lowering/build.h"

#include <algorithm>
#include <chrono>

#include "lowering/constraints.h"
#include "lowering/deflate_code.h"
#include "lowering/duplicate.h"
#include "lowering/estimated_sizes.h"
#include "lowering/profiles.h"
#include "lowering/refit.h"
#include "lowering/region_lowering.h"
#include "lowering/step_cost.h"
#include "lowering/tensor_report.h"
#include "lowering/weights_digests.h"
#include "passes/match.h"
#include "passes/pins.h"
#include "passes/quantization.h"
#include "passes/stays_packed.h"
#include "tuning/all_cores.h"

namespace lathe {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// A quantised network on a target that multiplies floats: what becomes of it.
void warn_of_quantization(const ir::Graph& graph, const Arithmetic& arithmetic, Log& log) {
  int64_t weights = 0, bytes = 0, others = 0;
  for (const auto& node : graph.nodes()) {
    if (!node->is(OpKind::dequantize) || stays_packed(*node, arithmetic)) continue;
    const Tensor* constant = node->input(0)->constant();
    (constant ? weights : others) += 1;
    bytes += constant ? static_cast<int64_t>(constant->bytes()) : 0;
  }
  if (weights + others == 0) return;
  log.print(Severity::warning,
            "the network is quantised, but this target multiplies floats only: {} weights ({:.1f} MB) are dequantised "
            "while building, and {} tensors are rounded to their levels in f32. Results are those of the levels; the "
            "network that this one was quantised from is at least as fast here",
            weights, static_cast<double>(bytes) / 1e6, others);
}

void warn_of_widened(const WidenedWeights& widened, Log& log) {
  if (widened.count == 0) return;
  log.print(
      Severity::warning,
      "{} weights of 8-bit floats or of less than 8 bits ({:.1f} MB) are dequantised while building, for no kernel "
      "reads them as they are: the engine holds {:.1f} MB of floats in their place",
      widened.count, static_cast<double>(widened.stored) / 1e6, static_cast<double>(widened.floats) / 1e6);
}

// Of each symbol over all profiles; where there is no largest value, what is tuned for.
std::vector<int64_t> largest_of(const std::vector<plan::Profile>& profiles) {
  std::vector<int64_t> largest;
  for (size_t id = 0; id < profiles[0].symbols.size(); ++id) {
    int64_t most = 0;
    for (const plan::Profile& profile : profiles) {
      const plan::SymbolProfile& range = profile.symbols[id];
      most = std::max(most, range.max == Range::kUnbounded ? range.opt : range.max);
    }
    largest.push_back(most);
  }
  return largest;
}

// What running tells is tuned for as it will be with the sizes of the inputs' optimum.
void estimate_optimum(const ir::Graph& graph, plan::Profile& profile) {
  std::vector<int64_t> sizes;
  for (SymbolId id = 0; id < graph.symbols().size(); ++id)
    sizes.push_back(graph.symbols()[id].source == SymbolSource::computed ? Expr::kUnbound : profile.symbols[id].opt);
  sizes = estimate_sizes(graph, std::move(sizes));
  for (SymbolId id = 0; id < sizes.size(); ++id)
    if (sizes[id] != Expr::kUnbound) profile.symbols[id].opt = sizes[id];
}

Result<> report_progress(const BuildOptions& options, std::string_view phase, double fraction) {
  if (options.progress && !options.progress(phase, fraction))
    return fail(ErrorCode::cancelled, "the build was cancelled during {}", phase);
  return {};
}

// What passes have found about tensors that are still there.
void report_notes(const PassContext& context, Log& log, BuildReport& report) {
  for (TensorReport& tensor : report.tensors) {
    const auto note = context.notes.find(tensor.name);
    if (note == context.notes.end()) continue;
    log.print(Severity::verbose, "'{}': {}", tensor.name, note->second);
    tensor.why += note->second + "\n";
  }
}

// The passes, and what the target wants beside them. Bodies of control flow come after the graph that they are in.
Result<> optimize(ir::Graph& graph, const BuildOptions& options, PassContext& context, BuildReport& report) {
  LATHE_ASSIGN(const std::vector<PassReport> passes, run_passes(graph, context));
  if (report.passes.empty()) report.passes = passes;
  LATHE_TRY(duplicate_dequantization(graph, options.traits));
  if (options.traits.fuses_narrow_types && options.traits.fuses_prologues) LATHE_TRY(duplicate_widening(graph));
  if (options.traits.fuses_movement) LATHE_TRY(duplicate_movement(graph, options.traits));
  const std::string dumps = std::exchange(context.dump_directory, {});  // show the network as a whole
  for (const auto& node : graph.nodes()) {
    for (const auto& body : node->bodies()) LATHE_TRY(optimize(*body, options, context, report));
    if (!node->bodies().empty()) LATHE_TRY(graph.infer(node.get()));
  }
  context.dump_directory = dumps;
  return {};
}

// Groups, places and lowers until tactics take all that is fused, then writes what the tuner has chosen.
Result<> lower_graph(const ir::Graph& graph, const std::vector<plan::Profile>& profiles, Tuner& tuner,
                     const BuildOptions& options, BuiltPlan& built) {
  double reached = 0;  // another round begins anew, but nobody is told that the work has become less
  const auto progress = [&](std::string_view phase, double fraction) {
    reached = std::max(reached, fraction);
    return report_progress(options, phase, reached);
  };
  std::vector<int64_t> optimum;
  for (const plan::SymbolProfile& symbol : profiles[0].symbols) optimum.push_back(symbol.opt);
  RefusedFusions refused;
  for (;;) {
    BuiltPlan round;
    round.plan.name = graph.name();
    round.plan.symbols = graph.symbols();
    round.plan.profiles = profiles;
    round.plan.constraints = built.plan.constraints;
    round.report = built.report;
    const size_t refused_before = refused.size(), asked_before = refused.asked();
    const LoweringContext context{options, optimum, tuner, refused, round};
    GraphLowering network(graph, context);
    LATHE_TRY(network.lowering.lower(network.regions));
    if (refused.asked() == asked_before) LATHE_TRY(network.lowering.choose(progress));
    if (refused.size() > refused_before) continue;
    if (refused.asked() > asked_before) return fail(ErrorCode::internal, "{}", refused.last_in_vain());
    round.report.tensors = describe_tensors(graph, network.regions, network.placement, network.costs, refused);
    LATHE_TRY(progress("writing the plan", 0.96));
    LATHE_TRY(network.lowering.write());  // which leaves the graph without its weights
    built = std::move(round);
    return {};
  }
}

// Whether a run reads more constants than the device's last cache holds, so that it finds none of them there. Of tables
// that elements are gathered from, few are read.
bool exceeds_cache(const ir::Graph& graph, const TunerOptions& tuner) {
  if (!tuner.device || tuner.device->is_host()) return false;
  const auto is_gather = [](const ir::Use& use) { return use.node->is(OpKind::gather) && use.index == 0; };
  double bytes = 0;
  for (const auto& node : graph.nodes())
    if (node->is(OpKind::constant) && !std::ranges::all_of(node->output()->uses(), is_gather))
      bytes += static_cast<double>(node->output()->content()->bytes());
  return bytes > tuner.target.cache_bytes;
}

}  // namespace

void use_backend(const BackendBuild& backend, BuildOptions& options) {
  options.target = backend.target.name;
  options.code_form = backend.code_form;
  options.code_target = backend.code_target;
  options.source_target = backend.source_target;
  options.tactics = backend.tactics;
  options.data_dependent = backend.data_dependent;
  options.traits = backend.traits;
  options.join_launches = backend.join_launches;
  options.packing_source = backend.packing_source;
  options.tuner.target = backend.target;
  options.tuner.device = backend.device;
  options.tuner.compiler = backend.compiler.get();
  options.tuner.timing_key = backend.timing_key;
}

Result<std::unique_ptr<BuiltPlan>> build_plan(ir::Graph graph, const BuildOptions& options) {
  if (graph.outputs().empty())
    return fail(ErrorCode::graph_invalid, "network '{}' has no output: mark one", graph.name());
  LATHE_ASSIGN(std::vector<Constraint> constraints, settle_shapes(graph, options));
  return build_plan(SettledGraph{std::move(graph), std::move(constraints)}, options);
}

Result<std::unique_ptr<BuiltPlan>> build_plan(SettledGraph settled, const BuildOptions& options) {
  ir::Graph& graph = settled.graph;
  auto built = std::make_unique<BuiltPlan>();
  built->plan.constraints = std::move(settled.constraints);
  const Arithmetic& arithmetic = options.traits.arithmetic;
  Log& log = options.log ? *options.log : null_log();
  use_fast_digests();
  if (options.optimize && !arithmetic.integer_products) warn_of_quantization(graph, arithmetic, log);
  std::vector<plan::RefitWeights> weights;
  if (options.refit.kind != plan::RefitKind::none) {
    LATHE_ASSIGN(weights, mark_weights(graph, options.refit));
  }
  LATHE_TRY(report_progress(options, "optimizing the graph", 0));
  const auto start = std::chrono::steady_clock::now();
  PassContext context = options.passes;
  context.threads = threads_of(options.tuner.most_threads);
  if (options.optimize) {
    context.arithmetic = arithmetic;
    LATHE_TRY(apply_pins(graph, context));
    LATHE_TRY(optimize(graph, options, context, built->report));
    LATHE_TRY(report_unmet_pins(graph, context, log));
    warn_of_widened(context.widened, log);
  }
  graph.erase_dead_nodes();
  built->report.seconds_passes = seconds_since(start);
  LATHE_ASSIGN(std::vector<plan::Profile> profiles, resolve_profiles(graph, options));
  for (plan::Profile& profile : profiles) estimate_optimum(graph, profile);

  TunerOptions tuning = options.tuner;
  tuning.largest = largest_of(profiles);
  tuning.weights_from_memory = exceeds_cache(graph, tuning);
  Tuner tuner(tuning);
  LATHE_TRY(lower_graph(graph, profiles, tuner, options, *built));
  report_notes(context, log, built->report);
  log_editable_tactics(built->report, log);
  if (options.refit.kind != plan::RefitKind::none) {
    write_refit(*built, std::move(weights), options.refit);
    LATHE_TRY(add_packing(*built, options, tuner.modules()));
  }
  LATHE_TRY(deflate_code(*built, options.tuner.most_threads));
  built->plan.target = options.target;
  built->plan.tuned_on = options.tuner.timing_key;
  built->plan.threads = static_cast<uint32_t>(options.tuner.target.least_cores);
  if (!options.tactics.empty()) {
    warn_of_evaluations(built->report, log);
    built->plan.metadata.emplace_back(kEvaluatedShareKey, fmt::format("{:.4f}", evaluated_share(built->report)));
  }
  built->report.seconds_tuning = tuner.seconds();
  built->report.tuned = tuner.measured();
  built->report.from_cache = tuner.from_cache();
  LATHE_TRY(report_progress(options, "done", 1));
  return built;
}

}  // namespace lathe
