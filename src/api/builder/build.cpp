// SPDX-License-Identifier: Apache-2.0
// From network and configuration to a plan.
#include "lowering/build.h"

#include "api/builder/bound_types.h"
#include "api/builder/branches.h"
#include "api/builder/builder.h"
#include "api/builder/builder_config.h"
#include "api/builder/calibration.h"
#include "api/builder/compatible_plan.h"
#include "api/builder/composed_attention.h"
#include "api/builder/debug_marks.h"
#include "api/builder/direct_io.h"
#include "api/builder/hardware.h"
#include "api/builder/io_formats.h"
#include "api/builder/layer_types.h"
#include "api/builder/measured_device.h"
#include "api/builder/memory_monitor.h"
#include "api/builder/plan_costs.h"
#include "api/builder/plan_output.h"
#include "api/builder/plugins.h"
#include "api/builder/profile_shapes.h"
#include "api/builder/refit_weights.h"
#include "api/builder/sparsity.h"
#include "api/builder/weight_streaming.h"
#include "api/json.h"
#include "api/network/network.h"
#include "api/network/unread_weights.h"
#include "api/plan_keys.h"
#include "api/progress.h"
#include "api/runtime/cuda_engine.h"
#include "api/runtime/engine_inspector.h"
#include "api/runtime/gpu_allocator.h"
#include "api/runtime/libraries.h"
#include "api/runtime/memory_log.h"
#include "lathe.h"
#include "lowering/step_cost.h"
#include "plan/amend.h"
#include "plan/arena.h"
#include "plan/variants.h"
#include "plan/writer.h"
#include "tuning/all_cores.h"

namespace lathe::api {
namespace {

// How long the builder measures at each optimization level, in seconds.
constexpr double kBudgets[] = {0, 5, 15, 60, 300, 3600};

// Bytes that candidates may have packed at one time, where an eighth of the network's weights is less.
constexpr size_t kLeastAtOnce = size_t{16} << 20;

Json describe(const RegionReport& region) {
  Json candidates = Json::array();
  for (const Choice::Finalist& finalist : region.candidates)
    candidates.push_back(
        json_object({{"tactic", finalist.tactic},
                     {"milliseconds", finalist.microseconds > 0 ? Json(finalist.microseconds / 1000) : Json(nullptr)},
                     {"predicted_milliseconds", finalist.predicted_us / 1000}}));
  return json_object({{"name", region.name},
                      {"kind", region.kind},
                      {"origin", region.origin},
                      {"tactic", region.tactic},
                      {"milliseconds", region.microseconds / 1000},
                      {"predicted_milliseconds", region.estimated_microseconds / 1000},
                      {"operations", region.operations},
                      {"bytes", region.bytes},
                      {"candidates", std::move(candidates)},
                      {"refusals", region.refusals}});
}

// Of the profile that needs most; null when some size has no limit.
Json arena_bytes(const plan::Plan& plan) {
  size_t most = 0;
  for (size_t i = 0; i < plan.profiles.size(); ++i) {
    const std::optional<plan::Arena> arena = plan::largest_arena(plan, i);
    if (!arena) return nullptr;
    most = std::max(most, arena->bytes);
  }
  return most;
}

Json describe(const MemoryMonitor& memory) {
  Json phases = Json::array();
  for (const MemoryMonitor::Phase& phase : memory.phases())
    phases.push_back(json_object({{"phase", phase.name},
                                  {"resident_bytes", phase.resident},
                                  {"peak_bytes", phase.peak},
                                  {"device_bytes", phase.device},
                                  {"device_peak_bytes", phase.device_peak}}));
  return phases;
}

std::string describe(const BuildReport& report, const plan::Plan& plan, const MemoryMonitor& memory, double seconds) {
  Json passes = Json::array(), layers = Json::array(), tensors = Json::array();
  for (const PassReport& pass : report.passes)
    passes.push_back(
        json_object({{"name", pass.name}, {"milliseconds", pass.milliseconds}, {"changed", pass.changes}}));
  for (const RegionReport& region : report.regions) layers.push_back(describe(region));
  for (const TensorReport& tensor : report.tensors)
    tensors.push_back(
        json_object({{"name", tensor.name}, {"type", tensor.type}, {"layout", tensor.layout}, {"why", tensor.why}}));
  const Json json = json_object({{"seconds", seconds},
                                 {"seconds_passes", report.seconds_passes},
                                 {"seconds_tuning", report.seconds_tuning},
                                 {"target", plan.target},
                                 {"threads", plan.threads},
                                 {"measured", report.tuned},
                                 {"from_cache", report.from_cache},
                                 {"weights_bytes", report.weights_bytes},
                                 {"arena_bytes", arena_bytes(plan)},
                                 {kEvaluatedShareKey.data(), evaluated_share(report)},
                                 {"memory", describe(memory)},
                                 {"passes", std::move(passes)},
                                 {"layers", std::move(layers)},
                                 {"tensors", std::move(tensors)}});
  return json.indented();
}

// Bytes, which a build holds once besides the network's own.
size_t weights_of(const ir::Graph& graph) {
  size_t bytes = 0;
  for (const auto& node : graph.nodes())
    if (const Tensor* content = node->is(OpKind::constant) ? node->output()->constant() : nullptr)
      bytes += content->bytes();
  return bytes;
}

// How many tilings of a layer are measured, and for which cache tiles are chosen: the last one before memory.
void set_tiling(const BuilderConfig& settings, TunerOptions& tuner) {
  constexpr size_t kFactors[] = {1, 2, 4, 1000};  // by level
  const auto level = static_cast<size_t>(settings.getTilingOptimizationLevel());
  tuner.finalists_factor = kFactors[level];
  const int64_t limit = settings.getL2LimitForTiling();
  if (limit < 0) return;
  if (level > 0)
    tuner.target.cache_bytes = std::min(tuner.target.cache_bytes, static_cast<double>(limit));
  else
    tuner.log->print(Severity::warning,
                     "setL2LimitForTiling({}) has no effect with TilingOptimizationLevel::kNONE: set a level, or leave "
                     "the limit out",
                     limit);
}

// Of candidates of one problem, and of the build as a whole where the application limits it; a warning where there is
// little.
Result<> limit_host_memory(const BuilderConfig& settings, size_t weights, TunerOptions& tuner) {
  const auto budget = static_cast<size_t>(settings.host_budget);
  const size_t needed = 2 * weights;
  warn_of_host_memory(weights, available_bytes(), *tuner.log);
  if (budget > 0 && needed > budget)
    return fail(ErrorCode::out_of_memory,
                "the build holds its weights about twice, {} bytes, and setHostMemoryBudget() allows {}: allow "
                "more, or build where there is more",
                needed, budget);
  if (!tuner.device || !tuner.device->is_host()) return {};
  tuner.most_at_once = std::max<size_t>(kLeastAtOnce, weights / 8);
  if (budget > 0) tuner.most_at_once = std::min(tuner.most_at_once, budget - needed);
  return {};
}

// Where products of f32 do not round to TF32, the log says which of its conditions does not hold.
bool uses_tf32(const BuilderConfig& settings, const BackendBuild& backend, Log& log) {
  if (!backend.traits.narrows_precision) return false;
  const bool is_asked_for = settings.has(nv::BuilderFlag::kTF32);
  if (!is_asked_for)
    log.print(Severity::info, "TF32 is off: BuilderFlag::kTF32 is cleared");
  else if (!backend.no_tf32.empty())
    log.print(Severity::info, "TF32 is off, although BuilderFlag::kTF32 is set: {}", backend.no_tf32);
  return is_asked_for && backend.no_tf32.empty();
}

void set_passes(const BuilderConfig& settings, const OwnSettings& types, PassContext& passes) {
  passes.dump_directory = settings.pass_dump;
  passes.skip = settings.skipped_passes;
  passes.obey_pins = types.constraints == PrecisionConstraints::kOBEY;
}

// What the target gains by, of what the application allows.
DType narrowed_to(const OwnSettings& types, const BackendTraits& traits) {
  if (traits.narrows_precision) return types.precision;
  const bool is_bf16 = types.precision == DType::bf16 || types.bf16_too;
  return traits.arithmetic.bf16_factors && is_bf16 ? DType::bf16 : DType::f32;
}

void set_tuner(const BuilderConfig& settings, const BuilderCore& core, const BackendBuild& backend,
               BuildOptions& options) {
  TunerOptions& tuner = options.tuner;
  tuner.tf32 = uses_tf32(settings, backend, *options.log);
  tuner.sparsity = uses_sparsity(settings, backend, *options.log);
  tuner.budget_seconds =
      settings.budget_seconds >= 0 ? settings.budget_seconds : kBudgets[settings.getBuilderOptimizationLevel()];
  tuner.log = options.log;
  tuner.repeats = settings.getAvgTimingIterations();
  tuner.most_finalists = static_cast<size_t>(std::max(0, settings.getMaxNbTactics()));
  tuner.most_threads = static_cast<size_t>(core.max_threads);
  tuner.stream = settings.getProfileStream();
  if (tuner.device && !tuner.device->is_host() && !settings.is_limited(nv::MemoryPoolType::kWORKSPACE))
    tuner.log->print(
        Severity::info,
        "MemoryPoolType::kWORKSPACE has no limit: the scratch memory of a layer may take all that the device "
        "has. setMemoryPoolLimit() gives it one where others use the device, too");
  tuner.most_workspace = settings.pool_limit(nv::MemoryPoolType::kWORKSPACE);
  tuner.most_measuring = settings.pool_limit(nv::MemoryPoolType::kTACTIC_DRAM);
  tuner.most_shared = settings.pool_limit(nv::MemoryPoolType::kTACTIC_SHARED_MEMORY);
  int64_t& shared = tuner.target.limits.shared_bytes;  // tactics choose configurations by it
  shared = static_cast<int64_t>(std::min<size_t>(static_cast<size_t>(shared), tuner.most_shared));
  set_tiling(settings, tuner);
  tuner.cache = timing_cache_of(settings);
  tuner.keeps_candidates = tuner.cache && settings.has(nv::BuilderFlag::kEDITABLE_TIMING_CACHE);
}

// What is said of a plan besides what was built.
Result<plan::Amendments> amendments_of(const BuilderConfig& settings, const BackendBuild& backend,
                                       PlanLibraries libraries, Log& log) {
  plan::Amendments amendments;
  note_hardware(settings, backend, amendments, log);
  note_compatibility(settings, amendments);
  if (libraries == PlanLibraries::added) LATHE_TRY(add_libraries(settings, amendments, log));
  return amendments;
}

Result<> check_independence(const BuilderConfig& settings) {
  if (!settings.has(nv::BuilderFlag::kDISTRIBUTIVE_INDEPENDENCE) || settings.profiles().size() <= 1) return {};
  return fail(ErrorCode::config_invalid,
              "BuilderFlag::kDISTRIBUTIVE_INDEPENDENCE goes with one optimization profile, and there are {}: kernels "
              "of different profiles round differently. Clear the flag, or build an engine for each",
              settings.profiles().size());
}

}  // namespace

Result<std::vector<std::byte>> Builder::build(nv::INetworkDefinition& network, nv::IBuilderConfig& config) {
  PlanInMemory output;
  LATHE_TRY(build(network, config, output));
  return std::move(output.bytes);
}

Result<> Builder::build(nv::INetworkDefinition& network, nv::IBuilderConfig& config, PlanOutput& output) {
  auto& definition = static_cast<NetworkDefinition&>(network);
  const auto& settings = static_cast<BuilderConfig&>(config);
  LATHE_ASSIGN(const Exclusive::Turn turn, core_->use.take());
  LATHE_ASSIGN(const Exclusive::Turn network_turn, definition.use().take());
  LATHE_ASSIGN(const Exclusive::Turn config_turn, settings.use().take());
  LATHE_TRY(definition.resolve_all());
  if (definition.graph().outputs().empty())
    return fail(ErrorCode::graph_invalid, "the network has no outputs; call markOutput()");

  LATHE_TRY(check_independence(settings));
  if (!settings.more_targets.empty()) return build_variants(definition, settings, output);
  return build_for(settings.target, definition, settings, PlanLibraries::added, output);
}

Result<> Builder::build_variants(NetworkDefinition& definition, const BuilderConfig& settings, PlanOutput& output) {
  std::vector<DefaultTarget> targets = {settings.target};
  for (const std::string& target : settings.more_targets) targets.push_back({target, "setTargets() names it"});
  std::vector<PlanInMemory> plans(targets.size());
  std::vector<std::span<const std::byte>> variants;
  for (size_t i = 0; i < plans.size(); ++i) {
    LATHE_TRY(build_for(targets[i], definition, settings, PlanLibraries::left_out, plans[i]));
    variants.emplace_back(plans[i].bytes);
  }
  LATHE_ASSIGN(std::vector<std::byte> merged, plan::merge_plans(variants, settings.sharing));
  plan::Amendments amendments;
  LATHE_TRY(add_libraries(settings, amendments, definition.reporter().log()));
  for (const auto& [name, content] : amendments.sections) LATHE_TRY(plan::put_section(merged, name, content));
  LATHE_TRY(output.begin(merged.size()));
  LATHE_TRY(output.write(merged));
  return output.finish();
}

Result<> Builder::build_for(const DefaultTarget& target, NetworkDefinition& definition, const BuilderConfig& settings,
                            PlanLibraries libraries, PlanOutput& output) {
  const auto start = std::chrono::steady_clock::now();
  BuildOptions options;
  options.log = &definition.reporter().log();
  for (const OptimizationProfile* profile : settings.profiles()) {
    LATHE_ASSIGN(const Exclusive::Turn profile_turn, profile->use().take());
    LATHE_ASSIGN(ProfileShapes shapes, shapes_of(*profile));
    options.profiles.push_back(std::move(shapes));
  }
  BackendSettings wanted{settings.cpu_threads, {}, settings.toolchain, portability_of(settings)};
  for (const auto& [source, library] : kLibrarySources)
    if (settings.has(source)) wanted.libraries.push_back(library);
  CompilerOptions& toolchain = wanted.compiler;
  toolchain.log = options.log;
  toolchain.keeps_code = !settings.has(nv::BuilderFlag::kDISABLE_COMPILATION_CACHE);
  toolchain.workers = static_cast<size_t>(core_->max_threads);
  const ManagedMemory managed(*options.log);
  const size_t resident = resident_bytes();
  options.log->print(Severity::info, "the build is for {}: {}", target.name, target.reason);
  LATHE_ASSIGN(BackendBuild backend, prepare_build(target.name, wanted));
  if (backend.device) log_start(*backend.device, resident, *options.log);
  backend.device = with_allocator(std::move(backend.device), core_->allocator, core_->reporter);
  use_measured_device(settings, backend, *options.log);
  use_backend(backend, options);
  LATHE_ASSIGN(options.asserted, definition.asserted());
  LATHE_ASSIGN(const OwnSettings types, types_of(settings, definition));
  options.passes.precision = narrowed_to(types, options.traits);
  LATHE_ASSIGN(options.passes.pins, pins_of(types, definition.graph()));
  options.auxiliary_streams = static_cast<uint32_t>(settings.getMaxAuxStreams());
  set_passes(settings, types, options.passes);
  set_tuner(settings, *core_, backend, options);
  UnreadWeights unread(definition);
  ProgressAdapter progress(settings.getProgressMonitor());
  MemoryMonitor memory(*options.log);
  std::string this_phase;
  options.progress = [&](std::string_view phase, double fraction) {
    if (std::exchange(this_phase, phase) != phase) {
      unread.forget();
      return_free_memory();
    }
    if (settings.has(nv::BuilderFlag::kMONITOR_MEMORY)) memory.enter(phase);
    return progress(phase, fraction);
  };

  LATHE_ASSIGN(ir::Graph graph, graph_with_debug_outputs(definition));
  LATHE_TRY(limit_host_memory(settings, weights_of(graph), options.tuner));
  LATHE_ASSIGN(SettledGraph settled, take_branches(definition, std::move(graph), options));
  LATHE_ASSIGN(options.refit, refit_options(settings, definition, settled.graph));
  LATHE_TRY(force_sparsity(settings, settled.graph, options));
  LATHE_TRY(quantize_implicitly(settings, types.int8, definition, settled.graph, options));
  LATHE_TRY(apply_bound_types(definition, settled.graph));
  LATHE_ASSIGN(const auto formats, apply_formats(definition, settled.graph, options.profiles));
  LATHE_TRY(settle_plugins(definition, settled.graph, options,
                           settings.getPreviewFeature(nv::PreviewFeature::kALIASED_PLUGIN_IO_10_03)));
  LATHE_ASSIGN(std::unique_ptr<BuiltPlan> built, build_plan(std::move(settled), options));
  if (options.tuner.sparsity) log_sparsity(built->report, *options.log);
  LATHE_TRY(check_direct_io(definition, settings, built->plan));
  warn_of_composed_attention(definition, built->report, *options.log);
  if (settings.has(nv::BuilderFlag::kERROR_ON_TIMING_CACHE_MISS) && built->report.tuned > 0)
    return fail(ErrorCode::timing_cache_invalid, "{} problems are not in the timing cache", built->report.tuned);
  if (built->report.tuned > 0) note_measured_device(settings, backend);
  note_weight_streaming(settings, built->plan, *options.log);
  if (settings.has(nv::BuilderFlag::kDEBUG)) built->plan.metadata.emplace_back(kDebugSyncKey, "true");
  LATHE_TRY(note_for_runtime(definition, built->plan));
  for (const auto& [name, format] : formats) built->plan.metadata.emplace_back(std::string(kFormatKey) + name, format);
  built->plan.metadata.emplace_back(kVerbosityKey, name_of(settings.getProfilingVerbosity()));
  if (settings.getProfilingVerbosity() == nv::ProfilingVerbosity::kDETAILED)
    built->plan.metadata.emplace_back(kCostsKey, describe_costs(built->report, options.tuner));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  core_->last_report = describe(built->report, built->plan, memory, seconds.count());
  LATHE_ASSIGN(const plan::Amendments amendments, amendments_of(settings, backend, libraries, *options.log));
  LATHE_TRY(plan::write_plan(std::move(built->plan), amendments, output, threads_of(options.tuner.most_threads)));
  LATHE_ASSIGN(const std::span<const std::byte> bytes, output.written());
  log_needs(bytes, backend.device, *options.log);
  options.log->print(Severity::info, "Engine generation completed in {:.3f} seconds.", seconds.count());
  managed.log_peak();
  managed.log_change("building engine");
  return output.finish();
}

nv::ICudaEngine* Builder::buildEngineWithConfig(nv::INetworkDefinition& network, nv::IBuilderConfig& config) noexcept {
  const auto& reporter = static_cast<NetworkDefinition&>(network).reporter();
  return guarded(reporter, "IBuilder::buildEngineWithConfig", static_cast<nv::ICudaEngine*>(nullptr),
                 [&]() -> Result<nv::ICudaEngine*> {
                   if (static_cast<const BuilderConfig&>(config).has(nv::BuilderFlag::kVERSION_COMPATIBLE))
                     return fail(ErrorCode::config_invalid,
                                 "BuilderFlag::kVERSION_COMPATIBLE is for plans: call buildSerializedNetwork()");
                   if (!static_cast<const BuilderConfig&>(config).more_targets.empty())
                     return fail(ErrorCode::config_invalid,
                                 "an engine is for one target, and setTargets() names several: call "
                                 "buildSerializedNetwork(), or name one");
                   LATHE_ASSIGN(const std::vector<std::byte> bytes, build(network, config));
                   auto runtime = std::make_shared<RuntimeCore>(core_->reporter);
                   runtime->allocator = core_->allocator;
                   runtime->cpu_threads = static_cast<const BuilderConfig&>(config).cpu_threads;
                   return CudaEngine::load(std::move(runtime), bytes);
                 });
}

}  // namespace lathe::api
