// SPDX-License-Identifier: Apache-2.0
// Passes: functions from graph to graph. passes.def is the recipe; run_passes() is the only caller.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "ir/graph.h"
#include "ops/arithmetic.h"

namespace lathe {

// What the application fixed for one layer.
struct PrecisionPin {
  std::string layer;                              // its name
  std::optional<DType> precision;                 // in which it computes: f32, f16, bf16 or i8
  std::vector<std::pair<size_t, DType>> outputs;  // types of its outputs, by index
};

// Constants of types that are for storage alone, and became floats while folding.
struct WidenedWeights {
  int64_t count = 0, stored = 0, floats = 0;  // the latter in bytes
};

struct PassContext {
  Log& log = null_log();
  bool fast_math = true;                // rewrites that change rounding in the last bits (reciprocals, reassociation)
  DType precision = DType::f32;         // f16 or bf16: what f32 may be narrowed to
  Arithmetic arithmetic;                // the target's
  std::vector<PrecisionPin> pins;       // layers that compute as the application says
  bool obey_pins = false;               // a pin that cannot be honoured is an error, not a warning
  std::vector<std::string> unmet_pins;  // found so far: what and why
  std::map<std::string, std::string> notes;  // by tensors' names: why something was not made of one
  WidenedWeights widened;                    // so far
  int64_t max_folded_bytes = 64ll << 20;     // folding may not grow the network's constants by more than this per node
  int64_t max_folded_products = int64_t{1} << 26;  // nor spend longer than about 0.1 s on one by plain evaluation
  int threads = 1;                                 // that compute constants at the same time
  std::vector<std::string> skip;                   // names of passes to leave out
  std::string dump_directory;  // where GraphDump writes the graph after each pass that changed it; empty = nowhere
  bool verify = false;         // verify after each change, not only at the end; so does a dump
};

struct PassReport {
  std::string_view name;
  int changes = 0;  // runs that changed the graph
  double milliseconds = 0;
};

// A pass returns whether it changed the graph, truthfully. It leaves dead nodes behind; the runner sweeps them.
using Pass = Result<bool> (*)(ir::Graph& graph, PassContext& context);

enum class PassStage : uint8_t { repeated, last };  // last: once the others have nothing to do

struct PassRow {
  std::string_view name;
  Pass run;
  PassStage stage = PassStage::repeated;
};
std::span<const PassRow> recipe();  // passes.def

// Runs the recipe to its fixed point. On an error the graph is in the state that the failing pass was given.
Result<std::vector<PassReport>> run_passes(ir::Graph& graph, PassContext& context,
                                           std::span<const PassRow> rows = recipe());

// One pass by name, swept and verified; for tests.
Result<bool> run_pass(std::string_view name, ir::Graph& graph, PassContext& context);

std::vector<std::string_view> pass_names();

// Fails, and lists the passes, when there is none of that name.
Result<> check_pass_name(std::string_view name);

}  // namespace lathe
