// SPDX-License-Identifier: Apache-2.0
// From regions to the steps of a plan, in three calls: lower() walks the regions once and asks tactics whether they
// take them, choose() has the tuner decide all steps together, write() puts what was chosen into the plan.
//
// What no tactic takes is noted in refused(): the graph is then grouped, placed and lowered anew without such fusions.
#pragma once

#include "lowering/build.h"
#include "lowering/placement.h"
#include "lowering/plan_code.h"
#include "lowering/plan_tensors.h"
#include "lowering/problems.h"

namespace lathe {

// What the graphs of one network, which go into one plan, have in common. All references must outlive it.
struct LoweringContext {
  const BuildOptions& options;
  std::vector<int64_t> optimum;  // the values of the symbols that are tuned for
  Tuner& tuner;
  RefusedFusions& refused;  // what earlier rounds found, and what this one finds
  BuiltPlan& out;
};

struct GraphLowering;

std::string name_of_region(const Region& region);
std::vector<std::string> origin_of(const Region& region);

class RegionLowering {
 public:
  // All references must outlive it. `outer`: see GraphLowering.
  RegionLowering(const ir::Graph& graph, const Placement& placement, const LoweringContext& context,
                 PlanTensors* outer = nullptr);

  Result<> lower(const std::vector<Region>& regions);
  Result<> choose(const Tuner::Progress& progress);
  Result<> write();

 private:
  // A step, or one whose kernel is not chosen yet.
  struct Pending {
    Pending(std::string name, std::vector<std::string> origin, std::string kind);

    plan::Step step;                   // of kernels: name and origin
    std::string kind;                  // RegionReport::kind
    std::unique_ptr<Matches> matches;  // of the problem that tactics were asked; null = there is none
    std::optional<Region> region;      // that the step runs; its values become the step's operands
    std::vector<Region> inlined;       // of the problem's inlined steps
    std::optional<Emission> emission;  // where there is no choice
    Choice choice;
    struct Sized {
      std::unique_ptr<Matches> matches;  // of the same problem at other sizes
      Choice choice;
    };
    std::vector<Sized> sized;
    // 1 for the sizes at which a step of device code runs, 0 for those at which another one does its work.
    std::optional<Expr> runs;
    std::vector<std::shared_ptr<GraphLowering>> bodies;  // of control flow
  };
  struct Copy {
    size_t input = 0;  // of the node
    plan::TensorDesc from, to;
  };
  // Of what a step leaves in dense memory to where it is placed.
  struct Move {
    plan::TensorId from = plan::kNoTensor;
    const ir::Value* to = nullptr;
  };
  enum class Copies : uint8_t { windows, any };  // windows: one for each result, read forwards

  Result<> lower(const Region& region);
  std::vector<std::string> match(const Region& region);
  std::optional<size_t> refused_producer(const Region& region) const;
  Result<> lower_single(ir::Node& node);
  Result<bool> lower_data_dependent(const Region& region, std::vector<std::string>& refusals);
  std::optional<std::string> excess_of(const Problem& problem, std::string_view tactic,
                                       const DataDependentEmission& emission, SymbolId size) const;
  bool may_be_in_place(const Region& region);
  Result<bool> lower_in_place(const Region& region);
  class Inliner;  // inline_steps.cpp
  Result<> inline_steps();
  Result<> lower_plugin(const ir::Node& node);
  Result<> lower_movement(const Region& region);
  bool lower_parts(const Region& region);
  Result<> lower_view(const Region& region);
  std::vector<Copy> copies_of(const ir::Node& node, size_t output);
  bool lower_copies(const ir::Node& node, Copies which);
  void lower_copy(plan::TensorId from, plan::TensorId to, std::string name, const std::vector<std::string>& origin);
  void lower_evaluation(const ir::Node& node, std::vector<std::string> refusals = {});
  // Dense memory for a result: where it is placed, or else some from where a copy moves it.
  plan::TensorId dense_output(const ir::Value* output, std::vector<Move>& moves);
  // Adds the step, then the moves.
  void add(Pending pending, const std::vector<Move>& moves);
  void add_with_outputs(Pending pending, const ir::Node& node);
  void lower_outputs();
  Result<> lower_control_flow(const ir::Node& node);
  Result<> lower_loop(const ir::Node& node, Pending& pending, plan::Block& block);
  Result<> lower_branch(const ir::Node& node, Pending& pending, plan::Block& block);
  Result<plan::Body> lower_body(const ir::Node& node, size_t number, std::vector<plan::TensorId> inputs,
                                Pending& block);
  void add_constraints(const ir::Node& node, const ir::Graph& graph, plan::Body& body);
  plan::TensorId visible_inside(const ir::Value* value);
  plan::TensorId dense_of(const ir::Value* value);  // row-major, by a copy when it must
  void copy_channels_last(const ir::Value* x);

  // This graph's steps, and those of its bodies behind each block.
  void collect(std::vector<Pending*>& all);
  struct Alike;
  static std::vector<Alike> steps_by_problem(std::span<Pending* const> all);
  Result<double> choose_at(std::span<const int64_t> symbols, std::span<Alike* const> groups,
                           const Tuner::Progress& progress);
  Result<> choose_by_size(std::span<Pending* const> all, const Tuner::Progress& progress);
  static bool is_known(const Pending::Sized& sized, const Pending& own);
  std::vector<StepForm> forms_of(Pending& pending) const;
  Result<> write_steps();
  Result<> write(Pending& pending);
  void count_readers();
  void release(Pending& pending);
  Result<> write_block(Pending& pending);
  void set_operands(Pending& pending);
  plan::TensorId input_of(const Region& region, const Problem& problem, const StepInput& input,
                          const Emission& emission, const std::string& step);
  plan::TensorId as_read(const Region& region, const StepInput& input, const Problem& problem);
  Result<> describe_kernel(const Problem& problem, const Choice& choice, const Emission& emission, plan::Step& step);
  Result<> describe_work(const Emission& emission, std::string_view tactic, std::string program, plan::Step& step);
  // `problem`: that the step solves; null = there is none.
  void add_step(plan::Step step, std::string kind, const Choice& choice, const Problem* problem = nullptr);

  const ir::Graph& graph_;
  const Placement& placement_;
  const LoweringContext& context_;
  Tuner& tuner_;
  const TacticList& tactics_;
  BuiltPlan& out_;
  plan::Plan& plan_;
  PlanCode code_;
  RefusedFusions& refused_;
  Problems problems_;
  PlanTensors tensors_;
  std::vector<Pending> pending_;  // in execution order
  struct Content {
    ir::Node* constant = nullptr;
    size_t readers = 0;  // steps that are not written yet
  };
  std::unordered_map<const Tensor*, Content> contents_;  // of constants that problems refer to, while write() runs
  std::unordered_map<const ir::Value*, plan::TensorId> dense_;
  std::unordered_map<const ir::Value*, plan::TensorId> channels_last_;
};

// One graph on its way into a plan: the network's, or a body of its control flow.
struct GraphLowering {
  // `outer`: the tensors of the graph that a body is in; null for the network's.
  GraphLowering(const ir::Graph& graph, const LoweringContext& context, PlanTensors* outer = nullptr);

  CostModel costs;
  const std::vector<Region> regions;
  const Placement placement;
  RegionLowering lowering;
};

}  // namespace lathe
