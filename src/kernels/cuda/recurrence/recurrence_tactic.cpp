// SPDX-License-Identifier: Apache-2.0
// Layers of recurrent networks: one launch for all steps.
#include <algorithm>
#include <bit>

#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/source.h"
#include "ops/gate_functions.h"

namespace lathe::cuda {
namespace {

enum Input : size_t { kX, kR, kBias, kLengths, kInitialH, kInitialC, kPeepholes };
constexpr std::string_view kInputNames[] = {"X", "R", "Bias", "Lengths", "InitialH", "InitialC", "Peepholes"};
constexpr std::string_view kOutputNames[] = {"Y", "LastH", "LastC"};

constexpr int64_t kMultiprocessors = 132;
constexpr double kCyclesPerMicrosecond = 1700;

int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// What Cut and Rows of recurrence.cuh make of a configuration.
struct Cut {
  CellKind cell;
  bool two_phases;
  int64_t hidden, element_bytes;
  int64_t batch, team, threads;
  int64_t held = 0;  // rows of each warp, and of each phase
  bool in_shared = true;

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
  int64_t shared_bytes() const {
    const int64_t floats = (two_phases ? 3 : 2) * pieces() * 128 + gates() * units();
    return 4 * batch * floats + (in_shared ? elsewhere_bytes() : 0);
  }
  // Of a step, by what its parts cost one after the other.
  double cycles() const {
    double cycles = team > 1 ? 1500 : 500;
    const auto schedulers = static_cast<double>(warps()) / 4;
    const auto groups = static_cast<double>(batch) / static_cast<double>(batch_group());
    for (const Rows& r : phases()) {
      const auto elements = static_cast<double>(r.per_warp * pieces() * 4);
      const double reads = static_cast<double>(pieces() * batch * (r.per_warp / r.group) * warps() * 4);
      cycles += schedulers * elements * (static_cast<double>(batch) + (element_bytes == 2 ? 2 * groups : 0)) + reads;
      cycles += schedulers * 70 * groups * static_cast<double>(r.per_warp / r.group);
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

  // Config::values: batch, team, threads, held rows, whether the others are in shared memory.
  std::vector<Config> configs(const Problem& problem) const override {
    const Dims& dims = problem.inputs[kX].opt_dims;
    const int64_t directions = directions_of(problem.attrs<RecurrenceAttrs>().direction);
    std::vector<Config> configs;
    for (const Cut& cut : cuts_of(problem)) {
      const int64_t blocks = directions * div_up(dims[1], cut.batch) * cut.team;
      const auto waves = static_cast<double>(div_up(blocks, kMultiprocessors));
      Config config;
      config.values = {cut.batch, cut.team, cut.threads, cut.held, cut.in_shared};
      config.text =
          fmt::format("{} sequences, {} blocks of {} threads, {} held", cut.batch, cut.team, cut.threads, cut.held) +
          (cut.elsewhere_bytes() == 0 ? ""
           : cut.in_shared            ? ", rest in shared memory"
                                      : ", rest read anew");
      config.predicted_us = 3 + static_cast<double>(dims[0]) * waves * cut.cycles() / kCyclesPerMicrosecond;
      configs.push_back(std::move(config));
    }
    std::stable_sort(configs.begin(), configs.end(),
                     [](const Config& a, const Config& b) { return a.predicted_us < b.predicted_us; });
    return configs;
  }

  Result<Emission> emit(const Problem& problem, const Config& config) const override {
    const auto& attrs = problem.attrs<RecurrenceAttrs>();
    LATHE_ASSIGN(const std::vector<GateFunction> functions, functions_of(attrs));
    Cut cut = cut_of(problem, config.values[0], config.values[1], config.values[2]);
    cut.held = config.values[3];
    cut.in_shared = config.values[4] != 0;
    Emission emission;
    Source source("recurrence/recurrence.cuh");
    const std::string arguments = declare_tensors(problem, source, emission);
    const bool backwards = attrs.direction == SequenceDirection::reverse;
    constexpr std::string_view kCells[] = {"rnn", "gru", "lstm"};
    source.declare(fmt::format("using TheCut = Cut<Cell::{}, {}, {}, {}, {}, {}, {}, {}, {}, {}>;\n",
                               kCells[static_cast<size_t>(attrs.cell)], cut.hidden, cut.units(), cut.batch, cut.team,
                               cut.threads, cut.held, cut.in_shared, cut.two_phases,
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
      body = "if (block_z() == 0)\n    " + body + "\n  else\n    " + call("BackwardFunctions");
    }
    const Expr tiles = ceildiv(problem.inputs[kX].dims[1], cut.batch);
    SourceLaunch launch = source.finish(body, {Expr(cut.team), tiles, Expr(directions_of(attrs.direction))},
                                        static_cast<uint32_t>(cut.threads), static_cast<uint32_t>(cut.shared_bytes()));
    launch.launch.cluster = static_cast<uint32_t>(cut.team);
    emission.launches.push_back(std::move(launch));
    return emission;
  }

 private:
  static Cut cut_of(const Problem& problem, int64_t batch, int64_t team, int64_t threads) {
    const auto& attrs = problem.attrs<RecurrenceAttrs>();
    const bool two_phases = attrs.cell == CellKind::gru && !attrs.linear_before_reset;
    return {attrs.cell,
            two_phases,
            *problem.inputs[kR].dims[2].as_constant(),
            static_cast<int64_t>(size_of(problem.inputs[kR].dtype)),
            batch,
            team,
            threads};
  }

  // For each number of sequences, blocks and threads, weights as near as they fit.
  static std::vector<Cut> cuts_of(const Problem& problem) {
    std::vector<Cut> cuts;
    const int64_t sequences = std::max<int64_t>(problem.inputs[kX].opt_dims[1], 1);
    for (int64_t batch = 1; batch <= 16 && batch < 2 * sequences; batch *= 2)
      for (int64_t team = 1; team <= problem.limits.cluster; team *= 2)
        for (const int64_t threads : {256, 512}) {
          Cut cut = cut_of(problem, batch, team, threads);
          if (team > 1 && cut.units() < 4) continue;
          hold_most(cut);
          cut.in_shared = cut.shared_bytes() <= problem.limits.shared_bytes;
          if (cut.shared_bytes() <= problem.limits.shared_bytes) cuts.push_back(cut);
        }
    return cuts;
  }

  // As many rows as registers hold beside the sums.
  static void hold_most(Cut& cut) {
    const int64_t words = cut.threads == 256 ? 128 : 48;
    const int64_t all = cut.phases()[0].per_warp;
    for (cut.held = all; cut.held > 0 && cut.held_words() > words; --cut.held) {
    }
  }

  // Declares what there is, and gives the arguments of the call.
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

  // An RNN's only function is that of its candidate.
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
