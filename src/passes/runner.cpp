// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "passes/graph_dump.h"
#include "passes/pass.h"

namespace lathe {

#define LATHE_PASS(name) Result<bool> name(ir::Graph& graph, PassContext& context);
#define LATHE_LAST_PASS(name) LATHE_PASS(name)
#include "passes/passes.def"
#undef LATHE_LAST_PASS
#undef LATHE_PASS

namespace {

constexpr PassRow kRecipe[] = {
#define LATHE_PASS(name) {#name, name},
#define LATHE_LAST_PASS(name) {#name, name, PassStage::last},
#include "passes/passes.def"
#undef LATHE_LAST_PASS
#undef LATHE_PASS
};

// Rewrites shrink or normalise, so a graph that still changes after this many rounds means two passes undo each other.
constexpr int kMaxRounds = 16;

// Says which pass failed and where what it was given can be read.
Error report(const PassRow& row, Error error, const ir::Graph& given, GraphDump& dump) {
  error = with_context(std::move(error), fmt::format("pass {}", row.name));
  const Result<std::string> path = dump.write_failed(row.name, given);
  if (path && !path->empty()) error.message += fmt::format(" (what the pass was given is in '{}')", *path);
  return error;
}

Result<bool> run_checked(const PassRow& row, ir::Graph& graph, PassContext& context) {
  const uint64_t before = context.verify ? graph.hash() : 0;
  LATHE_ASSIGN(const bool changed, row.run(graph, context));
  graph.erase_dead_nodes();
  if (!context.verify) return changed;
  if ((graph.hash() != before) != changed)
    return fail(ErrorCode::internal, "said '{}', which is not so", changed ? "changed" : "unchanged");
  if (changed) LATHE_TRY(ir::verify(graph));
  return changed;
}

Result<bool> run_row(const PassRow& row, ir::Graph& graph, PassContext& context, GraphDump& dump) {
  graph.erase_dead_nodes();
  ir::Graph given = graph.clone();
  Result<bool> changed = run_checked(row, graph, context);
  if (changed) {
    if (*changed) LATHE_TRY(dump.write(row.name, graph));
    return changed;
  }
  graph = std::move(given);
  return fail(report(row, std::move(changed).error(), graph, dump));
}

bool is_skipped(const PassRow& row, const PassContext& context) {
  return std::find(context.skip.begin(), context.skip.end(), row.name) != context.skip.end();
}

}  // namespace

std::span<const PassRow> recipe() { return kRecipe; }

namespace {

// The rows of a stage until none of them changes anything.
Result<> run_stage(PassStage stage, std::span<const PassRow> rows, ir::Graph& graph, PassContext& context,
                   GraphDump& dump, std::vector<PassReport>& reports) {
  using Clock = std::chrono::steady_clock;
  bool changed = true;
  for (int round = 0; changed; ++round) {
    if (round == kMaxRounds) {
      context.log.print(Severity::warning, "Passes still change the network after {} rounds.", kMaxRounds);
      break;
    }
    changed = false;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].stage != stage || is_skipped(rows[i], context)) continue;
      const Clock::time_point start = Clock::now();
      LATHE_ASSIGN(const bool changed_now, run_row(rows[i], graph, context, dump));
      reports[i].milliseconds += std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      reports[i].changes += changed_now;
      changed |= changed_now;
    }
  }
  return {};
}

}  // namespace

Result<std::vector<PassReport>> run_passes(ir::Graph& graph, PassContext& context, std::span<const PassRow> rows) {
  LATHE_ASSIGN(GraphDump dump, GraphDump::open(context.dump_directory));
  if (!context.dump_directory.empty()) context.verify = true;
  LATHE_TRY(dump.write("before", graph));
  std::vector<PassReport> reports;
  for (const PassRow& row : rows) reports.push_back({row.name});
  for (const PassStage stage : {PassStage::repeated, PassStage::last})
    LATHE_TRY(run_stage(stage, rows, graph, context, dump, reports));
  LATHE_TRY(ir::verify(graph));
  for (const PassReport& report : reports)
    if (report.changes > 0)
      context.log.print(Severity::verbose, "Pass {}: {} rounds, {:.2f} ms", report.name, report.changes,
                        report.milliseconds);
  return reports;
}

Result<bool> run_pass(std::string_view name, ir::Graph& graph, PassContext& context) {
  LATHE_TRY(check_pass_name(name));
  GraphDump nowhere;
  const auto row =
      std::find_if(std::begin(kRecipe), std::end(kRecipe), [&](const PassRow& r) { return r.name == name; });
  const bool verify = std::exchange(context.verify, true);
  Result<bool> changed = run_row(*row, graph, context, nowhere);
  context.verify = verify;
  return changed;
}

std::vector<std::string_view> pass_names() {
  std::vector<std::string_view> names;
  for (const PassRow& row : kRecipe) names.push_back(row.name);
  return names;
}

Result<> check_pass_name(std::string_view name) {
  const std::vector<std::string_view> names = pass_names();
  if (std::find(names.begin(), names.end(), name) != names.end()) return {};
  return fail(ErrorCode::invalid_argument, "there is no pass '{}'; the passes are {}", name, fmt::join(names, ", "));
}

}  // namespace lathe
