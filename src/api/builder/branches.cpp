// SPDX-License-Identifier: Apache-2.0
#include "api/builder/branches.h"

#include "lowering/branches.h"

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

}  // namespace

Result<> take_branches(const NetworkDefinition& network, ir::Graph& graph, const BuildOptions& options) {
  if (!network.reimport()) return {};
  std::set<std::string> turned;
  NetworkDefinition::Imported now;
  for (;;) {
    const ReliedConditions conditions = relied_conditions(graph.clone(), options);
    if (!conditions.never_met || turned.contains(*conditions.never_met)) {
      for (const std::string& name : conditions.open)
        options.log->print(Severity::warning,
                           "the branches of If '{}' yield tensors of different ranks, and only one is a part of the "
                           "network: sizes for which its condition chooses the other will fail",
                           name);
      return {};  // what has been turned and is wrong again, the build tells
    }
    const std::string& name = *conditions.never_met;
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
