// SPDX-License-Identifier: Apache-2.0
// From regions to the steps of a plan, in three calls: lower() walks the regions once and asks tactics whether they
// take them, choose() has the tuner decide all steps together, write() puts what was chosen into the plan.
//
// What no tactic takes is noted in refused(): the graph is then grouped, placed and lowered anew without such fusions.
#pragma once

#include "lowering/build.h"
#include "lowering/placement.h"
#include "lowering/plan_tensors.h"
#include "lowering/problems.h"

namespace lathe {

class RegionLowering {
 public:
  // All references must outlive it. `optimum`: the values of the symbols that are tuned for. `refused`
  // is what earlier rounds found.
  RegionLowering(const ir::Graph& graph, const Placement& placement, const std::vector<plan::Profile>& profiles,
                 std::vector<int64_t> optimum, Tuner& tuner, const BuildOptions& options, RefusedFusions refused,
                 BuiltPlan& out);

  Result<> lower(const std::vector<Region>& regions);
  Result<> choose(const Tuner::Progress& progress);
  Result<> write();

  // What earlier rounds found, and what lower() and choose() have.
  const RefusedFusions& refused() const { return refused_; }

 private:
  // A step, or one whose kernel is not chosen yet.
  struct Pending {
    plan::Step step;                   // of kernels: name and origin
    std::string kind;                  // RegionReport::kind
    std::unique_ptr<Matches> matches;  // of the problem that tactics were asked; null = there is none
    std::optional<Region> region;      // that the step runs; its values become the step's operands
    std::optional<Emission> emission;  // where there is no choice
    Choice choice;
  };
  struct Copy {
    size_t input = 0;  // of the node
    plan::TensorDesc from, to;
  };
  enum class Copies : uint8_t { windows, any };  // windows: one for each result, read forwards

  Result<> lower(const Region& region);
  std::vector<std::string> match(const Region& region);
  Result<> lower_single(ir::Node& node);
  Result<bool> lower_data_dependent(const Region& region, std::vector<std::string>& refusals);
  std::optional<std::string> excess_of(const Problem& problem, std::string_view tactic,
                                       const DataDependentEmission& emission, SymbolId counted) const;
  Result<> lower_movement(const Region& region);
  Result<> lower_concat(const Region& region);
  Result<> lower_view(const Region& region);
  std::vector<Copy> copies_of(const ir::Node& node, size_t output);
  bool lower_copies(const ir::Node& node, Copies which);
  void lower_copy(plan::TensorId from, plan::TensorId to, std::string name, const std::vector<std::string>& origin);
  void lower_evaluation(const ir::Node& node, std::vector<std::string> refusals = {});
  void lower_outputs();
  plan::TensorId dense_of(const ir::Value* value);  // row-major, by a copy when it must
  void copy_channels_last(const ir::Value* x);

  Result<> write(Pending& pending);
  plan::TensorId input_of(const Region& region, const Problem& problem, const StepInput& input,
                          const Emission& emission, const std::string& step);
  plan::TensorId as_read(const Region& region, size_t input, const Operand& operand, bool transposed);
  Result<> describe_kernel(const Problem& problem, const Choice& choice, const Emission& emission, plan::Step& step);
  Result<> describe_work(const Emission& emission, std::string_view tactic, std::string program, plan::Step& step);
  uint32_t code_of(const Modules::Module& module);
  void add_step(plan::Step step, std::string kind, const Choice& choice);

  const ir::Graph& graph_;
  const Placement& placement_;
  Tuner& tuner_;
  const TacticList& tactics_;
  const DataDependentTacticList& data_dependent_;
  const std::string target_;
  const Target& device_;
  BuiltPlan& out_;
  plan::Plan& plan_;
  RefusedFusions refused_;
  Problems problems_;
  PlanTensors tensors_;
  std::vector<Pending> pending_;  // in execution order
  std::unordered_map<const ir::Value*, plan::TensorId> dense_;
  std::unordered_map<const ir::Value*, plan::TensorId> channels_last_;
};

}  // namespace lathe
