// SPDX-License-Identifier: Apache-2.0
// From a graph to a plan: passes, regions, placement, tactics, emission.
#pragma once

#include <deque>
#include <functional>
#include <map>

#include "base/log.h"
#include "passes/pass.h"
#include "plan/constant_orders.h"
#include "plan/plan.h"
#include "tuning/backend.h"
#include "tuning/data_dependent_tactic.h"
#include "tuning/tuner.h"

namespace lathe {

// Shapes of one optimization profile, by input name. A shape input's values are given like dims.
struct ProfileShapes {
  struct Input {
    Dims min, opt, max;
    bool is_values = false;
  };
  std::map<std::string, Input> inputs;
};

// Told of each step of the build; returns false to cancel. `fraction` never decreases.
using Progress = std::function<bool(std::string_view phase, double fraction)>;

// Weights that can be replaced once the engine is built.
struct RefitOptions {
  plan::RefitKind kind = plan::RefitKind::none;
  bool strips = false;  // the plan does without the constants that follow from them
  struct Source {
    plan::RefitWeights weights;  // name, layers and roles
    bool is_replaceable = true;  // as far as the application says
    bool is_named_by_application = false;
  };
  std::unordered_map<std::string, Source> weights = {};  // by the names of ir::for_each_constant()
};

struct BuildOptions {
  Log* log = nullptr;                   // null = nowhere
  std::vector<ProfileShapes> profiles;  // empty = one without limits
  std::vector<Constraint> asserted;     // what the application says of sizes, besides what shape rules rely on
  TunerOptions tuner;
  TacticList tactics;                      // empty = every op by its plain evaluation
  DataDependentTacticList data_dependent;  // for ops whose results' sizes the device computes
  std::string target;                      // Device::target() of what the plan will run on
  CodeForm code_form = CodeForm::binary;   // of device code, which is
  std::string code_target;                 // for that; empty = for `target`
  std::string source_target;               // of their source, which steps of open sizes have, too; "" = they have none
  const std::string& code_for() const { return code_target.empty() ? target : code_target; }
  BackendTraits traits;
  JoinLaunches* join_launches = nullptr;  // for devices on which a launch costs something
  std::string packing_source;             // as BackendBuild has it
  PassContext passes;                     // its arithmetic is that of the traits
  bool optimize = true;                   // false: no passes, no fusion: the network as it stands
  Progress progress;
  RefitOptions refit;
  uint32_t auxiliary_streams = 0;  // at most, on devices whose steps are launched
};

// Builds for what a backend has prepared, which must live until the plan is built.
void use_backend(const BackendBuild& backend, BuildOptions& options);

// How a step of open sizes runs up to a size (lowering/choices_by_size.h).
struct StepForm {
  int64_t most = 0;  // elements that it reads and writes; the last form's is for all above, too
  std::string tactic;
  std::vector<SourceLaunch> launches;  // empty = the step's own
  Expr workspace;                      // of these
};

// What became of the network, for the inspector and the logs.
struct RegionReport {
  std::string name;
  std::string kind;  // "kernel", "pointwise", "copy", "eval"
  std::vector<std::string> origin;
  std::string tactic;                 // "conv: 6x64 kb512"
  double microseconds = 0;            // measured, or 0
  double estimated_microseconds = 0;  // roughly: for telling shares
  double operations = 0;              // that it asks for (tuning/work.h); 0 where nothing counts them
  double bytes = 0;                   // that it reads and writes, each once
  bool is_sparse = false;             // its weights are such as Problem::sparse says
  bool leaves_out_zeros = false;      // of them, by the tactic that was chosen
  std::string op;                     // of a plain evaluation
  std::vector<std::string> refusals;  // "gemm: input is not f32"
  std::vector<Choice::Finalist> candidates;
  std::string cache_entry;  // Choice::cache_entry
  // Of a step that sizes tell apart: its forms, those for few elements first, and how many elements a run's sizes have.
  std::vector<StepForm> forms;
  Expr elements;
  std::optional<Expr> runs;  // 1 for the sizes at which the step runs, 0 for others; nullopt = it runs for all
};

// Why a tensor of the network, as passes have left it, lies where it does.
struct TensorReport {
  std::string name;
  std::string type;    // "f32[1, 64, 56, 56]"
  std::string layout;  // "linear", "channels-last", "strided"; "" = it is never in memory
  std::string why;     // lines for people
};

struct BuildReport {
  std::vector<PassReport> passes;
  std::vector<RegionReport> regions;
  std::vector<TensorReport> tensors;
  double seconds_passes = 0;
  double seconds_tuning = 0;
  size_t weights_bytes = 0;
  int tuned = 0;       // problems measured
  int from_cache = 0;  // problems answered by the timing cache
};

struct BuiltPlan {
  plan::Plan plan;                                 // its weights are pieces
  std::vector<Modules::Module> modules;            // the plan's codes point into them
  std::vector<std::string> code_sources;           // of which text each is
  std::deque<std::string> sources;                 // likewise
  std::vector<DerivationPtr> derivations;          // by constant; null, or none behind the last one = it stays
  std::map<uint32_t, plan::ConstantOrder> orders;  // of constants that are weights in another order, by their number
  BuildReport report;
};

// A graph of the types that the profiles promise, and the constraints that they leave open (settle_shapes()).
struct SettledGraph {
  ir::Graph graph;
  std::vector<Constraint> constraints;
};

Result<std::unique_ptr<BuiltPlan>> build_plan(SettledGraph settled, const BuildOptions& options);
Result<std::unique_ptr<BuiltPlan>> build_plan(ir::Graph graph, const BuildOptions& options);  // settles it first

}  // namespace lathe
