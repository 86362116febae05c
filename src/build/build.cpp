// SPDX-License-Identifier: Apache-2.0
#include "build/build.h"

#include <algorithm>
#include <chrono>

#include "build/duplicate.h"
#include "build/emitter.h"
#include "passes/pins.h"

namespace lathe {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The range and optimum of every symbol under one profile.
class ProfileResolver {
 public:
  ProfileResolver(const ir::Graph& graph, const ProfileShapes& shapes, size_t index)
      : graph_(graph), shapes_(shapes), index_(index) {}

  Result<plan::Profile> resolve() {
    plan::Profile profile;
    for (const auto& [name, input] : shapes_.inputs) LATHE_TRY(check(name, input));
    for (const Symbol& symbol : graph_.symbols()) {
      const int64_t fallback = symbol.source == SymbolSource::input_dim ? 1 : 0;
      plan::SymbolProfile range{symbol.range.min, std::clamp(fallback, symbol.range.min, symbol.range.max),
                                symbol.range.max};
      if (symbol.source != SymbolSource::computed && symbol.tensor < graph_.inputs().size()) {
        const auto it = shapes_.inputs.find(graph_.inputs()[symbol.tensor]->name());
        if (it != shapes_.inputs.end() && it->second.is_values == (symbol.source == SymbolSource::input_value))
          range = {it->second.min[symbol.index], it->second.opt[symbol.index], it->second.max[symbol.index]};
      }
      profile.symbols.push_back(range);
    }
    return profile;
  }

 private:
  Result<> check(const std::string& name, const ProfileShapes::Input& input) const {
    const ir::Value* value = nullptr;
    for (const ir::Value* candidate : graph_.inputs())
      if (candidate->name() == name) value = candidate;
    if (!value)
      return fail(ErrorCode::profile_invalid, "profile {} names '{}', which is not an input of the network", index_,
                  name);
    size_t wanted = static_cast<size_t>(value->rank());
    if (input.is_values) wanted = value->elements() ? value->elements()->size() : 0;
    if (input.min.size() != wanted || input.opt.size() != wanted || input.max.size() != wanted)
      return fail(ErrorCode::profile_invalid,
                  "profile {}: input '{}' needs {} {}, got {}, {} and {} for min, opt and max", index_, name, wanted,
                  input.is_values ? "values" : "dimensions", input.min.size(), input.opt.size(), input.max.size());
    for (size_t d = 0; d < wanted; ++d) {
      if ((!input.is_values && input.min[d] < 0) || input.min[d] > input.opt[d] || input.opt[d] > input.max[d])
        return fail(ErrorCode::profile_invalid,
                    "profile {}: input '{}' dimension {} needs 0 <= min <= opt <= max, got {}, {}, {}", index_, name, d,
                    input.min[d], input.opt[d], input.max[d]);
      const std::optional<int64_t> fixed = input.is_values ? std::nullopt : value->shape()[d].as_constant();
      if (fixed && (input.min[d] != *fixed || input.max[d] != *fixed))
        return fail(ErrorCode::profile_invalid,
                    "profile {}: input '{}' dimension {} is fixed at {} by the network, the profile gives {} to {}",
                    index_, name, d, *fixed, input.min[d], input.max[d]);
    }
    return {};
  }

  const ir::Graph& graph_;
  const ProfileShapes& shapes_;
  size_t index_;
};

Result<std::vector<plan::Profile>> resolve_profiles(const ir::Graph& graph, const BuildOptions& options) {
  std::vector<ProfileShapes> shapes = options.profiles;
  if (shapes.empty()) shapes.emplace_back();
  std::vector<plan::Profile> profiles;
  for (size_t i = 0; i < shapes.size(); ++i) {
    LATHE_ASSIGN(plan::Profile profile, ProfileResolver(graph, shapes[i], i).resolve());
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

// Shape rules may use what the profiles promise: a dimension's range over all profiles is its symbol's range.
void narrow_symbols(ir::Graph& graph, const std::vector<plan::Profile>& profiles) {
  for (SymbolId id = 0; id < graph.symbols().size(); ++id) {
    Range range = {profiles[0].symbols[id].min, profiles[0].symbols[id].max};
    for (const plan::Profile& profile : profiles) {
      range.min = std::min(range.min, profile.symbols[id].min);
      range.max = std::max(range.max, profile.symbols[id].max);
    }
    graph.symbol(id).range = range;
  }
}

// A dimension that every profile fixes is a constant: kernels need not take it from their arguments.
Result<> fix_symbols(ir::Graph& graph) {
  std::vector<Expr> values(graph.symbols().size());
  bool fixes = false;
  for (SymbolId id = 0; id < values.size(); ++id) {
    const Symbol& symbol = graph.symbols()[id];
    const bool fixed = symbol.source == SymbolSource::input_dim && symbol.range.min == symbol.range.max;
    values[id] = fixed ? Expr(symbol.range.min) : Expr::symbol(id);
    fixes |= fixed;
  }
  if (!fixes) return {};
  for (ir::Value* input : graph.inputs()) {
    ValueType type = input->type();
    for (Expr& dim : type.shape) dim = dim.substitute(values);
    graph.set_input_type(input, std::move(type));
  }
  return graph.infer_all();
}

Result<> report_progress(const BuildOptions& options, std::string_view phase, double fraction) {
  if (options.progress && !options.progress(phase, fraction))
    return fail(ErrorCode::cancelled, "the build was cancelled during {}", phase);
  return {};
}

// Device code takes long to compile, and all cores can do so together once every problem is known: a first walk over
// the regions only notes problems.
Result<> decide_all(const ir::Graph& graph, const Placement& placement, const std::vector<Region>& regions,
                    const std::vector<plan::Profile>& profiles, Tuner& tuner, const BuildOptions& options) {
  BuiltPlan unused;
  Emitter survey(graph, placement, profiles, tuner, options, unused, Emitter::Mode::survey);
  LATHE_TRY(survey.emit_inputs());
  for (const Region& region : regions) LATHE_TRY(survey.emit(region));
  LATHE_TRY(survey.emit_outputs());
  return tuner.decide_foreseen(
      [&](std::string_view phase, double fraction) { return report_progress(options, phase, fraction); });
}

}  // namespace

Result<std::unique_ptr<BuiltPlan>> build_plan(ir::Graph graph, const BuildOptions& options) {
  if (graph.outputs().empty())
    return fail(ErrorCode::graph_invalid, "network '{}' has no output: mark one", graph.name());
  auto built = std::make_unique<BuiltPlan>();
  LATHE_ASSIGN(std::vector<plan::Profile> profiles, resolve_profiles(graph, options));
  narrow_symbols(graph, profiles);
  LATHE_TRY(fix_symbols(graph));

  LATHE_TRY(report_progress(options, "optimizing the graph", 0));
  const auto start = std::chrono::steady_clock::now();
  if (options.optimize) {
    PassContext context = options.passes;
    LATHE_TRY(apply_pins(graph, context));
    LATHE_ASSIGN(built->report.passes, run_passes(graph, context));
    LATHE_TRY(report_unmet_pins(graph, context, options.log ? *options.log : null_log()));
    if (options.fuse_narrow_types) LATHE_TRY(give_readers_their_own(graph));
  }
  graph.erase_dead_nodes();
  built->report.seconds_passes = seconds_since(start);
  LATHE_ASSIGN(profiles, resolve_profiles(graph, options));  // passes may have made symbols

  std::vector<Region> regions = group_regions(
      graph, {options.optimize, options.fuse_prologues, options.fuse_narrow_types, options.fuse_movement});
  const Placement placement(graph, regions, options.tactics.empty(), options.least_pixel, options.fuse_movement);
  Tuner tuner(options.tuner);
  if (options.tuner.compiler) LATHE_TRY(decide_all(graph, placement, regions, profiles, tuner, options));
  Emitter emitter(graph, placement, std::move(profiles), tuner, options, *built);
  LATHE_TRY(emitter.emit_inputs());
  const double begin = options.tuner.compiler ? 0.95 : 0.1;
  for (size_t i = 0; i < regions.size(); ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(regions.size());
    LATHE_TRY(report_progress(options, "tuning", begin + (1 - begin) * part));
    LATHE_TRY(emitter.emit(regions[i]));
  }
  LATHE_TRY(emitter.emit_outputs());
  LATHE_TRY(emitter.finish());
  built->plan.target = options.target;
  built->plan.threads = static_cast<uint32_t>(options.tuner.threads);
  built->report.seconds_tuning = tuner.seconds();
  built->report.tuned = tuner.measured();
  built->report.from_cache = tuner.from_cache();
  LATHE_TRY(report_progress(options, "done", 1));
  return built;
}

}  // namespace lathe
