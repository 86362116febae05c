// SPDX-License-Identifier: Apache-2.0
// Layers of recurrent networks: one launch for all steps.
#include <algorithm>

#include "base/divide.h"
#include "device/whole_grid.h"
#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/match.h"
#include "kernels/cuda/recurrence/cut_tactic.h"
#include "kernels/cuda/source.h"
#include "tuning/opcode_of.h"

namespace lathe::cuda {
namespace {

enum Input : size_t { kX, kR, kBias, kLengths, kInitialH, kInitialC, kPeepholes };
constexpr std::string_view kInputNames[] = {"X", "R", "Bias", "Lengths", "InitialH", "InitialC", "Peepholes"};
constexpr std::string_view kOutputNames[] = {"Y", "LastH", "LastC"};

constexpr int64_t kCounterBytes = 128;  // Team::kCounterStride of recurrence.cuh

using recurrence::Cut, recurrence::CutChoice;

Cut cut_of(const Problem& problem, const CutChoice& choice) {
  const auto& attrs = problem.attrs<RecurrenceAttrs>();
  const Operand& r = problem.inputs[kR];
  const bool two_phases = attrs.cell == CellKind::gru && !attrs.linear_before_reset;
  return {choice, attrs.cell, two_phases, *r.dims[2].as_constant(), static_cast<int64_t>(size_of(r.dtype))};
}

// Keeps as many rows in registers as fit, provided that the others fit shared memory; else none, and all are in
// shared memory or, where they do not fit there, in global memory.
void hold_most(Cut& cut, const Target::Limits& limits) {
  constexpr int64_t kToReadOthers = 24;  // registers for reading rows that are not held
  const Cut::Rows rows = cut.phases()[0];
  for (cut.held = rows.per_warp; cut.held > 0; cut.held -= rows.group) {
    const bool are_others = cut.elsewhere_bytes() > 0;
    const bool fits = cut.held_words() + (are_others ? kToReadOthers : 0) <= cut.spare_registers();
    if (fits && (!are_others || cut.shared_bytes() <= limits.shared_bytes)) return;
  }
  cut.in_shared = cut.shared_bytes() <= limits.shared_bytes;
}

// One cut for each number of sequences, blocks and threads that fits, with the weights where they are read fastest.
std::vector<Cut> cuts_of(const Problem& problem) {
  std::vector<Cut> cuts;
  const int64_t sequences = std::max<int64_t>(problem.inputs[kX].opt_dims[1], 1);
  const int64_t directions = directions_of(problem.attrs<RecurrenceAttrs>().direction);
  // Of a cooperative launch every multiprocessor has room for one block, whatever that needs.
  const int64_t at_once = problem.target.least_cores / directions;
  const auto add = [&](int64_t batch, int64_t team, bool together) {
    for (const int64_t threads : {256, 512}) {
      Cut cut = cut_of(problem, {.batch = batch, .team = team, .threads = threads, .together = together});
      if (team > 1 && cut.units() < 4) continue;
      hold_most(cut, problem.target.limits);
      if (cut.shared_bytes() <= problem.target.limits.shared_bytes && cut.fits_registers()) cuts.push_back(cut);
    }
  };
  for (int64_t batch = 1; batch <= 16 && batch < 2 * sequences; batch *= 2) {
    for (int64_t team = 1; team <= problem.target.limits.cluster; team *= 2) add(batch, team, false);
    for (int64_t team = 8; team <= at_once; team = team < at_once ? std::min(2 * team, at_once) : at_once + 1)
      add(batch, team, true);
  }
  return cuts;
}

// The argument Team of the kernel. For a cooperative launch, first emits the launch that clears the counters of its
// barriers, and reserves the workspace.
std::string declare_team(const RecurrenceAttrs& attrs, const Cut& cut, Source& source, Emission& emission) {
  if (!cut.together) return "Team<TheCut>{}, ";
  const int64_t directions = directions_of(attrs.direction), counters = directions * kCounterBytes;
  Source clear("recurrence/recurrence.cuh");
  clear.workspace("counters", 0, "uint32");
  emission.launches.push_back(
      clear.finish(fmt::format("clear_counters(counters, {});", counters / 4), {Expr(1), Expr(1), Expr(1)}, 64, 0));
  source.workspace("counters", 0, "uint32");
  source.workspace("exchange", counters, "float");
  emission.workspace = counters + directions * 3 * cut.batch * cut.pieces() * 128 * 4;
  return "Team<TheCut>{counters, exchange}, ";
}

// Declares the tensors that are given, and returns the kernel's arguments, Omitted{} for the others.
std::string declare_tensors(const Problem& problem, Source& source, Emission& emission) {
  std::string arguments;
  const auto add = [&](std::string_view name, bool given) {
    arguments += (arguments.empty() ? "" : ", ") + (given ? std::string(name) + "_" : "Omitted{}");
  };
  for (size_t i = 0; i < std::size(kInputNames); ++i) {
    const bool given = problem.has_input(i);
    add(kInputNames[i], given);
    if (!given) continue;
    source.input(emission.inputs.size(), problem.inputs[i], kInputNames[i]);
    emission.inputs.push_back({StepInput::input, i});
  }
  for (size_t i = 0; i < std::size(kOutputNames); ++i) {
    const bool given = i < problem.outputs.size();
    add(kOutputNames[i], given);
    if (given) source.output(i, problem.outputs[i], kOutputNames[i]);
  }
  return arguments;
}

std::string function_text(const GateFunction& f) {
  const std::string alpha = fmt::format("{:a}f", static_cast<float>(f.alpha));
  const std::string beta = fmt::format("{:a}f", static_cast<float>(f.beta));
  const OpcodeInfo& info = *opcode_info(static_cast<int>(*opcode_of(f.op)));
  return fmt::format("instruction::{}(v{}{})", info.name, info.immediates > 0 ? ", " + alpha : "",
                     info.immediates > 1 ? ", " + beta : "");
}

// The Functions of recurrence.cuh for one direction: gate, candidate and shown are ONNX's activations f, g and h. An
// RNN's only function is its candidate's.
std::string functions_text(std::string_view name, const RecurrenceAttrs& attrs,
                           std::span<const GateFunction> functions) {
  std::string text =
      fmt::format("struct {} {{\n  static constexpr bool kInputForget = {};\n", name, attrs.input_forget);
  const auto clip = static_cast<float>(attrs.clip);
  const std::string clipped = clip > 0 ? fmt::format("v = instruction::clip(v, -{0:a}f, {0:a}f); ", clip) : "";
  const auto add = [&](std::string_view what, const GateFunction& function, bool clips) {
    text += fmt::format("  LATHE_DEVICE_MEMBER static float {}(float v) {{ {}return {}; }}\n", what,
                        clips ? clipped : "", function_text(function));
  };
  if (functions.size() > 1) add("gate", functions[0], true);
  add("candidate", functions[functions.size() > 1 ? 1 : 0], true);
  if (functions.size() > 2) add("shown", functions[2], false);
  return text + "};\n";
}

std::vector<Config> configs(const Problem& problem, const std::vector<Cut>& cuts) {
  const Dims& dims = problem.inputs[kX].opt_dims;
  const Target& target = problem.target;
  const int64_t directions = directions_of(problem.attrs<RecurrenceAttrs>().direction);
  std::vector<Config> configs;
  for (const Cut& cut : cuts) {
    const int64_t turns = ceil_div(dims[1], cut.batch), blocks = directions * turns * cut.team;
    const auto waves = static_cast<double>(cut.together ? turns : ceil_div(blocks, target.least_cores));
    configs.push_back({.text = fmt::format("{} sequences, {} blocks{} of {} threads, {} held", cut.batch, cut.team,
                                           cut.together ? " at once" : "", cut.threads, cut.held) +
                               (cut.elsewhere_bytes() == 0 ? ""
                                : cut.in_shared            ? ", rest in shared memory"
                                                           : ", rest read anew"),
                       .predicted_us = 1.5 * target.launch_us +
                                       static_cast<double>(dims[0]) * waves * cut.cycles() / target.clock_mhz,
                       .choice = CutChoice(cut)});
  }
  return best_first(std::move(configs));
}

Result<Emission> emit(const Problem& problem, const std::vector<Cut>&, const Config& config) {
  const auto& attrs = problem.attrs<RecurrenceAttrs>();
  LATHE_ASSIGN(const std::vector<GateFunction> functions, functions_of(attrs));
  const Cut cut = cut_of(problem, config.as<CutChoice>());
  Emission emission;
  Source source("recurrence/recurrence.cuh");
  const std::string arguments = declare_team(attrs, cut, source, emission) + declare_tensors(problem, source, emission);
  const bool backwards = attrs.direction == SequenceDirection::reverse;
  constexpr std::string_view kCells[] = {"rnn", "gru", "lstm"};
  source.declare(fmt::format("using TheCut = Cut<Cell::{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}>;\n",
                             kCells[static_cast<size_t>(attrs.cell)], cut.hidden, cut.units(), cut.batch, cut.team,
                             cut.together, cut.threads, cut.held, cut.in_shared, cut.two_phases,
                             problem.inputs[kR].constant != nullptr));
  source.declare(
      fmt::format("static_assert(kSharedBytes<TheCut, R> == {}, \"as the tactic has it\");\n", cut.shared_bytes()));
  const size_t each = default_functions(attrs.cell).size();
  source.declare(functions_text("Functions", attrs, std::span(functions).first(each)));
  const auto call = [&](std::string_view name) {
    return fmt::format("recurrence<TheCut, {}, {}>({});", name, backwards, arguments);
  };
  std::string body = call("Functions");
  const std::span<const GateFunction> others = std::span(functions).subspan(each);
  if (!others.empty() && !std::equal(others.begin(), others.end(), functions.begin())) {
    source.declare(functions_text("BackwardFunctions", attrs, others));
    body = "if (Team<TheCut>{}.direction() == 0)\n    " + body + "\n  else\n    " + call("BackwardFunctions");
  }
  const int64_t directions = directions_of(attrs.direction);
  const Expr tiles = ceildiv(problem.inputs[kX].dims[1], cut.batch);
  const std::array<Expr, 3> grid = cut.together ? std::array<Expr, 3>{Expr(cut.team * directions), Expr(1), Expr(1)}
                                                : std::array<Expr, 3>{Expr(cut.team), tiles, Expr(directions)};
  SourceLaunch launch =
      source.finish(body, grid, static_cast<uint32_t>(cut.threads), static_cast<uint32_t>(cut.shared_bytes()));
  launch.launch.overlaps = !cut.together;
  launch.launch.cluster = cut.together ? kWholeGrid : static_cast<uint32_t>(cut.team);
  emission.launches.push_back(std::move(launch));
  return emission;
}

}  // namespace

Matched match_recurrence(const Problem& problem) {
  if (!problem.is(OpKind::recurrence)) return refuse("not a recurrence");
  if (auto reason = unsupported_feature(problem, {.further_results = true})) return refuse(*std::move(reason));
  if (!problem.program.is_identity()) return refuse("this kernel has no epilogue");
  const DType dtype = problem.inputs[kX].dtype;
  if (!is_short_float(dtype)) return refuse(fmt::format("its input is {}", name_of(dtype)));
  if (problem.inputs[kR].dims[2].as_constant().value_or(0) < 1) return refuse("the hidden size is dynamic or 0");
  std::vector<Cut> cuts = cuts_of(problem);
  if (cuts.empty()) return refuse("the state does not fit shared memory");
  return match_form(problem, std::move(cuts), configs, emit);
}

}  // namespace lathe::cuda
