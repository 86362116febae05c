// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/file.h"
#include "passes/pass.h"

namespace lathe {

#define LATHE_PASS(name) Result<bool> name(ir::Graph& graph, PassContext& context);
#include "passes/passes.def"
#undef LATHE_PASS

namespace {

struct Row {
  std::string_view name;
  Pass run;
};

constexpr Row kRecipe[] = {
#define LATHE_PASS(name) {#name, name},
#include "passes/passes.def"
#undef LATHE_PASS
};

// Rewrites shrink or normalise, so a graph that still changes after this many rounds means two passes undo each other.
constexpr int kMaxRounds = 16;

// Saves what the pass was given; the error says where.
Error report(const Row& row, Error error, const ir::Graph& given, const PassContext& context) {
  error = with_context(std::move(error), fmt::format("pass {}", row.name));
  if (context.dump_path.empty()) return error;
  const std::string text = ir::to_text(given);
  if (write_file_atomically(context.dump_path, std::as_bytes(std::span(text))))
    error.message += fmt::format(" (the network as it was before is in '{}')", context.dump_path);
  return error;
}

Result<bool> run_checked(const Row& row, ir::Graph& graph, PassContext& context) {
  const uint64_t before = context.verify ? graph.hash() : 0;
  LATHE_ASSIGN(const bool changed, row.run(graph, context));
  graph.erase_dead_nodes();
  if (!context.verify) return changed;
  if ((graph.hash() != before) != changed)
    return fail(ErrorCode::internal, "said '{}', which is not so", changed ? "changed" : "unchanged");
  if (changed) LATHE_TRY(ir::verify(graph));
  return changed;
}

Result<bool> run_row(const Row& row, ir::Graph& graph, PassContext& context) {
  graph.erase_dead_nodes();
  ir::Graph given = graph.clone();
  Result<bool> changed = run_checked(row, graph, context);
  if (changed) return changed;
  graph = std::move(given);
  return fail(report(row, std::move(changed).error(), graph, context));
}

}  // namespace

Result<std::vector<PassReport>> run_passes(ir::Graph& graph, PassContext& context) {
  using Clock = std::chrono::steady_clock;
  std::vector<PassReport> reports;
  for (const Row& row : kRecipe) reports.push_back({row.name});
  bool changed = true;
  for (int round = 0; changed; ++round) {
    if (round == kMaxRounds) {
      context.log.print(Severity::warning, "Passes still change the network after {} rounds.", kMaxRounds);
      break;
    }
    changed = false;
    for (size_t i = 0; i < std::size(kRecipe); ++i) {
      if (std::find(context.skip.begin(), context.skip.end(), kRecipe[i].name) != context.skip.end()) continue;
      const Clock::time_point start = Clock::now();
      LATHE_ASSIGN(const bool changed_now, run_row(kRecipe[i], graph, context));
      reports[i].milliseconds += std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      reports[i].changes += changed_now;
      changed |= changed_now;
    }
  }
  LATHE_TRY(ir::verify(graph));
  for (const PassReport& report : reports)
    if (report.changes > 0)
      context.log.print(Severity::verbose, "Pass {}: {} rounds, {:.2f} ms", report.name, report.changes,
                        report.milliseconds);
  return reports;
}

Result<bool> run_pass(std::string_view name, ir::Graph& graph, PassContext& context) {
  for (const Row& row : kRecipe) {
    if (row.name != name) continue;
    const bool verify = std::exchange(context.verify, true);
    Result<bool> changed = run_row(row, graph, context);
    context.verify = verify;
    return changed;
  }
  return fail(ErrorCode::invalid_argument, "there is no pass '{}'", name);
}

std::vector<std::string_view> pass_names() {
  std::vector<std::string_view> names;
  for (const Row& row : kRecipe) names.push_back(row.name);
  return names;
}

}  // namespace lathe
