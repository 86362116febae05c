// SPDX-License-Identifier: Apache-2.0
#include "api/builder/branches.h"

#include <set>

#include "ir/known_content.h"
#include "lowering/constraints.h"

namespace lathe::api {
namespace {

constexpr int64_t kElementsCompared = 16;  // of each constant: weights are the model's as long as the layers are

Result<> check_unchanged(const ir::Graph& imported, const ir::Graph& graph, const std::string& name) {
  if (to_text(imported, kElementsCompared) == to_text(graph, kElementsCompared)) return {};
  return fail(ErrorCode::profile_invalid,
              "If '{}' takes its other branch for all sizes of the profiles, which yields tensors of another rank; the "
              "network cannot be imported anew with that branch, as it was changed after parsing. Fix the dimension "
              "that the condition reads in the model, or parse it after that is fixed",
              name);
}

// What is known of the conditions that a graph relies on (op `choose` that leaves one alternative out), by the names of
// the network's layers. Of all sizes that the graph's types allow: settle_shapes() makes them those of the profiles,
// also where it fails behind a branch that no sizes take.
struct ReliedConditions {
  std::optional<std::string> never_satisfied;  // the first that no sizes satisfy: the graph needs the other branch
  std::set<std::string> open;                  // undecided: sizes that do not satisfy them fail when run
};
ReliedConditions relied_conditions(const ir::Graph& graph) {
  ReliedConditions conditions;
  for (const auto& node : graph.nodes()) {
    if (!node->is(OpKind::choose) || (node->input(1) && node->input(2))) continue;
    const std::optional<Tensor> condition = ir::known_content(*node->input(0));
    if (!condition || condition->volume() != 1)
      conditions.open.insert(node->origin().front());
    else if (!conditions.never_satisfied && !node->input(condition->at(0) ? 1 : 2))
      conditions.never_satisfied = node->origin().front();
  }
  return conditions;
}

// Lines of a graph that may yet give way to another.
class HeldLog final : public Log {
 public:
  void write(Severity severity, std::string_view line) override { lines_.emplace_back(severity, line); }
  void release(Log& log) const {
    for (const auto& [severity, line] : lines_) log.print(severity, "{}", line);
  }

 private:
  std::vector<std::pair<Severity, std::string>> lines_;
};

}  // namespace

Result<SettledGraph> take_branches(const NetworkDefinition& network, ir::Graph graph, const BuildOptions& options) {
  std::set<std::string> turned;
  NetworkDefinition::Imported now;
  for (;;) {
    HeldLog log;
    BuildOptions held = options;
    held.log = &log;
    ir::Graph settled = graph.clone();
    Result<std::vector<Constraint>> constraints = settle_shapes(settled, held);
    const ReliedConditions conditions = network.reimport() ? relied_conditions(settled) : ReliedConditions();
    if (!conditions.never_satisfied || turned.contains(*conditions.never_satisfied)) {
      log.release(*options.log);
      if (!constraints) return fail(std::move(constraints).error());
      for (const std::string& name : conditions.open)
        options.log->print(Severity::warning,
                           "the branches of If '{}' yield tensors of different ranks, and only one is a part of the "
                           "network: sizes for which its condition chooses the other will fail",
                           name);
      return SettledGraph{std::move(settled), *std::move(constraints)};  // what was turned in vain, the build tells
    }
    const std::string& name = *conditions.never_satisfied;
    if (turned.empty()) {
      LATHE_ASSIGN(now, network.reimport()({}));
      LATHE_TRY(check_unchanged(now.graph, graph, name));
    }
    turned.insert(name);  // one at a time: what the next is asked for may depend on it
    std::map<std::string, bool> branches = now.branches;
    branches.at(name) = !branches.at(name);
    LATHE_ASSIGN(now, network.reimport()(branches));
    graph = std::move(now.graph);
  }
}

}  // namespace lathe::api
