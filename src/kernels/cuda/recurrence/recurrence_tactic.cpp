// SPDX-License-Identifier: Apache-2.0
// Layers of recurrent networks: one launch for all steps.
#include <algorithm>
#include <bit>

#include "device/whole_grid.h"
#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/source.h"
#include "ops/gate_functions.h"

namespace lathe::cuda {
namespace {

enum Input : size_t { kX, kR, kBias, kLengths, kInitialH, kInitialC, kPeepholes };
constexpr std::string_view kInputNames[] = {"X", "R", "Bias", "Lengths", "InitialH", "InitialC", "Peepholes"};
constexpr std::string_view kOutputNames[] = {"Y", "LastH", "LastC"};

constexpr int64_t kCounterBytes = 128;  // Team::kCounterStride of recurrence.cuh
constexpr int64_t kRecomputed = 11;     // registers that ptxas finds by computing addresses anew

int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Cut and Rows of recurrence.cuh, computed while building. emit() asserts in the kernel that the sizes agree.
struct Cut {
  CellKind cell;
  bool two_phases;
  int64_t hidden, element_bytes;
  int64_t batch, team;
  bool together;  // the team is a direction's blocks of a cooperative launch, not a cluster
  int64_t threads;
  int64_t held = 0;       // rows of each warp, and of each phase, in registers
  bool in_shared = true;  // the others are in shared memory, not read from global memory at each step

  int64_t gates() const { return gates_of(cell); }
  int64_t units() const { return div_up(hidden, team); }
  int64_t warps() const { return threads / 32; }
  int64_t pieces() const { return div_up(hidden, 128); }
  int64_t batch_group() const { return std::min<int64_t>(batch, 8); }
  int64_t group(int64_t each) const {
    const int64_t wanted = std::min<int64_t>(32 / batch_group(), 8);
    return each >= wanted ? wanted : each > 2 ? 4 : each > 1 ? 2 : 1;
  }
  struct Rows {
    int64_t per_warp, group, held;
  };
  Rows rows(int64_t of_gates) const {
    const int64_t each = div_up(of_gates * units(), warps()), size = group(each);
    const int64_t per_warp = div_up(each, size) * size;
    return {per_warp, size, held < per_warp ? held / size * size : per_warp};
  }
  std::vector<Rows> phases() const { return two_phases ? std::vector{rows(2), rows(1)} : std::vector{rows(gates())}; }
  int64_t row_bytes() const { return pieces() * 128 * element_bytes; }
  int64_t elsewhere_bytes() const {
    int64_t bytes = 0;
    for (const Rows& r : phases()) bytes += (r.per_warp - r.held) * warps() * row_bytes();
    return bytes;
  }
  int64_t held_words() const {  // registers of a thread
    int64_t words = 0;
    for (const Rows& r : phases()) words += r.held * pieces() * element_bytes;
    return words;
  }
  // Of a thread.
  int64_t registers() const { return std::min<int64_t>(65536 / threads, 255); }
  // For a group's sums, the state that it multiplies, and cells.
  int64_t computing_registers() const {
    return (phases()[0].group + 4) * batch_group() + div_up(units() * batch, threads) * (8 + 2 * gates());
  }
  // An estimate, which is pessimistic, of what sums, state, cells and addresses leave a thread for weights.
  int64_t spare_registers() const { return registers() - 64 - computing_registers(); }
  // Whether the kernel needs no more registers than there are. Beside what it computes with, they hold weights: those
  // that are kept, and a group's that are read anew, with their addresses. The second phase has rows of its own, and
  // where rows end within a piece, lanes ask how far to read. Of 268 kernels that NVRTC compiled for sm_90 it is true
  // of one of the 8 that spilled, and of all but 15 of the others.
  bool fits_registers() const {
    const int64_t read_anew = elsewhere_bytes() > 0 ? phases()[0].group * (element_bytes + (in_shared ? 1 : 4)) : 0;
    const int64_t needed =
        computing_registers() + held_words() + read_anew + (two_phases ? 20 : 0) + (hidden % 128 != 0 ? 16 : 0);
    return needed <= registers() + kRecomputed;
  }
  int64_t shared_bytes() const {
    const int64_t floats = (two_phases ? 3 : 2) * pieces() * 128 + gates() * units();
    return 4 * batch * floats + (in_shared ? elsewhere_bytes() : 0);
  }
  // Cycles of a step, estimated as the sum of its parts: barrier and exchange of state, products, sums over lanes,
  // weights that are not in registers, cells.
  double cycles() const {
    const int64_t taken = div_up(batch * hidden, threads);  // floats of state that a thread fetches
    double cycles = team == 1 ? 500 : together ? 3500 + 8 * static_cast<double>(taken) : 1500;
    if (two_phases && team > 1) cycles *= 2;
    const auto schedulers = static_cast<double>(warps()) / 4;
    const auto groups = static_cast<double>(batch) / static_cast<double>(batch_group());
    for (const Rows& r : phases()) {
      const int64_t times = r.per_warp / r.group;
      const auto elements = static_cast<double>(r.per_warp * pieces() * 4);
      const double reads = static_cast<double>(pieces() * batch * times * warps() * 4);
      cycles += schedulers * elements * (static_cast<double>(batch) + (element_bytes == 2 ? 2 * groups : 0)) + reads;
      cycles += schedulers * 70 * groups * static_cast<double>(times);
    }
    cycles += groups * static_cast<double>(elsewhere_bytes()) / (in_shared ? 128 : 30);
    return cycles + 200 * static_cast<double>(div_up(units() * batch, threads)) * schedulers;
  }
};

class RecurrenceTactic final : public Tactic {
 public:
  std::string_view name() const override { return "recurrence"; }
  bool makes_several_results() const override { return true; }

  std::optional<std::string> refuse(const Problem& problem) const override {
    if (!problem.is(OpKind::recurrence)) return "not a recurrence";
    if (!problem.program.is_identity()) return "this kernel has no epilogue";
    const DType dtype = problem.inputs[kX].dtype;
    if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16)
      return fmt::format("its input is {}", name_of(dtype));
    if (problem.inputs[kR].dims[2].as_constant().value_or(0) < 1) return "the hidden size is dynamic or 0";
    if (cuts_of(problem).empty()) return "the state does not fit shared memory";
    return std::nullopt;
  }

  // Config::values: batch, team, threads, held, in_shared and together of Cut.
  std::vector<Config> configs(const Problem& problem) const override {
    const Dims& dims = problem.inputs[kX].opt_dims;
    const int64_t directions = directions_of(problem.attrs<RecurrenceAttrs>().direction);
    std::vector<Config> configs;
    for (const Cut& cut : cuts_of(problem)) {
      const int64_t turns = div_up(dims[1], cut.batch), blocks = directions * turns * cut.team;
      const auto waves = static_cast<double>(cut.together ? turns : div_up(blocks, problem.target.least_cores));
      Config config;
      config.values = {cut.batch, cut.team, cut.threads, cut.held, cut.in_shared, cut.together};
      config.text = fmt::format("{} sequences, {} blocks{} of {} threads, {} held", cut.batch, cut.team,
                                cut.together ? " at once" : "", cut.threads, cut.held) +
                    (cut.elsewhere_bytes() == 0 ? ""
                     : cut.in_shared            ? ", rest in shared memory"
                                                : ", rest read anew");
      config.predicted_us = 1.5 * problem.target.launch_us +
                            static_cast<double>(dims[0]) * waves * cut.cycles() / problem.target.clock_mhz;
      configs.push_back(std::move(config));
    }
    std::stable_sort(configs.begin(), configs.end(),
                     [](const Config& a, const Config& b) { return a.predicted_us < b.predicted_us; });
    return configs;
  }

  Result<Emission> emit(const Problem& problem, const Config& config) const override {
    const auto& attrs = problem.attrs<RecurrenceAttrs>();
    LATHE_ASSIGN(const std::vector<GateFunction> functions, functions_of(attrs));
    Cut cut = cut_of(problem, config.values[0], config.values[1], config.values[5] != 0, config.values[2]);
    cut.held = config.values[3];
    cut.in_shared = config.values[4] != 0;
    Emission emission;
    Source source("recurrence/recurrence.cuh");
    const std::string arguments =
        declare_team(attrs, cut, source, emission) + declare_tensors(problem, source, emission);
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

 private:
  static Cut cut_of(const Problem& problem, int64_t batch, int64_t team, bool together, int64_t threads) {
    const auto& attrs = problem.attrs<RecurrenceAttrs>();
    const bool two_phases = attrs.cell == CellKind::gru && !attrs.linear_before_reset;
    return {attrs.cell,
            two_phases,
            *problem.inputs[kR].dims[2].as_constant(),
            static_cast<int64_t>(size_of(problem.inputs[kR].dtype)),
            batch,
            team,
            together,
            threads};
  }

  // One cut for each number of sequences, blocks and threads that fits, with the weights where they are read fastest.
  static std::vector<Cut> cuts_of(const Problem& problem) {
    std::vector<Cut> cuts;
    const int64_t sequences = std::max<int64_t>(problem.inputs[kX].opt_dims[1], 1);
    const int64_t directions = directions_of(problem.attrs<RecurrenceAttrs>().direction);
    // Of a cooperative launch every multiprocessor has room for one block, whatever that needs.
    const int64_t at_once = problem.target.least_cores / directions;
    const auto add = [&](int64_t batch, int64_t team, bool together) {
      for (const int64_t threads : {256, 512}) {
        Cut cut = cut_of(problem, batch, team, together, threads);
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

  // Keeps as many rows in registers as fit, provided that the others fit shared memory; else none, and all are in
  // shared memory or, where they do not fit there, in global memory.
  static void hold_most(Cut& cut, const Target::Limits& limits) {
    constexpr int64_t kToReadOthers = 24;  // registers for reading rows that are not held
    const Cut::Rows rows = cut.phases()[0];
    for (cut.held = rows.per_warp; cut.held > 0; cut.held -= rows.group) {
      const bool are_others = cut.elsewhere_bytes() > 0;
      const bool fits = cut.held_words() + (are_others ? kToReadOthers : 0) <= cut.spare_registers();
      if (fits && (!are_others || cut.shared_bytes() <= limits.shared_bytes)) return;
    }
    cut.in_shared = cut.shared_bytes() <= limits.shared_bytes;
  }

  // The argument Team of the kernel. For a cooperative launch, first emits the launch that clears the counters of its
  // barriers, and reserves the workspace.
  static std::string declare_team(const RecurrenceAttrs& attrs, const Cut& cut, Source& source, Emission& emission) {
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
  static std::string declare_tensors(const Problem& problem, Source& source, Emission& emission) {
    std::string arguments;
    const auto add = [&](std::string_view name, bool given) {
      arguments += (arguments.empty() ? "" : ", ") + (given ? std::string(name) + "_" : "Omitted{}");
    };
    for (size_t i = 0; i < std::size(kInputNames); ++i) {
      const bool given = i < problem.inputs.size() && !problem.inputs[i].omitted;
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

  static std::string function_text(const GateFunction& f) {
    const std::string alpha = fmt::format("{:a}f", static_cast<float>(f.alpha));
    const std::string beta = fmt::format("{:a}f", static_cast<float>(f.beta));
    if (f.op == GateOp::scaled_tanh) return alpha + " * instruction::tanh(v * " + beta + ")";
    const size_t parameters = parameters_of(f.op);
    return fmt::format("instruction::{}(v{}{})", name_of(f.op), parameters > 0 ? ", " + alpha : "",
                       parameters > 1 ? ", " + beta : "");
  }

  // The Functions of recurrence.cuh for one direction: gate, candidate and shown are ONNX's activations f, g and h. An
  // RNN's only function is its candidate's.
  static std::string functions_text(std::string_view name, const RecurrenceAttrs& attrs,
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
};

}  // namespace

const Tactic& recurrence_tactic() {
  static const RecurrenceTactic tactic;
  return tactic;
}

}  // namespace lathe::cuda
