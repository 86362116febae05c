// SPDX-License-Identifier: Apache-2.0
// Recurrent layers on the emulator: cells, directions, teams of blocks, weights in registers and elsewhere.
#include <gtest/gtest.h>

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/kernel_check.h"
#include "kernels/cuda/recurrence/cut_tactic.h"

namespace lathe::cuda {

const Tactic& recurrence_tactic();

namespace {

struct Layer {
  int64_t steps = 3, batch = 2, hidden = 8;
  bool bias = false, lengths = false, initial = false, peepholes = false;
  DType dtype = DType::f32;
};

class Recurrences : public testing::Test {
 protected:
  static RecurrenceAttrs attributes(CellKind cell, SequenceDirection direction = SequenceDirection::forward) {
    RecurrenceAttrs attrs;
    attrs.cell = cell;
    attrs.direction = direction;
    return attrs;
  }

  static Problem problem(const RecurrenceAttrs& attrs, const Layer& layer) {
    const int64_t directions = attrs.direction == SequenceDirection::bidirectional ? 2 : 1;
    const int64_t gates = attrs.cell == CellKind::lstm ? 4 : attrs.cell == CellKind::gru ? 3 : 1;
    const int64_t s = layer.steps, b = layer.batch, n = layer.hidden;
    const bool is_lstm = attrs.cell == CellKind::lstm;
    const auto given = [&](bool is, DType dtype, Dims dims) {
      if (is) return operand(dtype, std::move(dims));
      Operand omitted;
      omitted.omitted = true;
      return omitted;
    };
    std::vector<Operand> inputs = {operand(layer.dtype, {s, b, directions * gates * n}),
                                   operand(layer.dtype, {directions, gates * n, n}),
                                   given(layer.bias, layer.dtype, {directions, n}),
                                   given(layer.lengths, DType::i32, {b}),
                                   given(layer.initial, layer.dtype, {directions, b, n}),
                                   given(layer.initial && is_lstm, layer.dtype, {directions, b, n}),
                                   given(layer.peepholes, layer.dtype, {directions, 3 * n})};
    std::vector<Operand> outputs = {operand(layer.dtype, {s, b, directions * n}),
                                    operand(layer.dtype, {directions, b, n})};
    if (is_lstm) outputs.push_back(outputs[1]);
    Problem problem = op_problem(attrs, std::move(inputs), std::move(outputs));
    problem.target.least_cores = 128;  // multiprocessors: as many blocks as the emulator runs at once
    return problem;
  }

  // Weights small enough for sequences not to run away.
  static CheckOptions options(const Problem& problem) {
    CheckOptions options;
    const Operand& r = problem.inputs[1];
    std::mt19937 random(3);
    std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(r.opt_dims[2])));
    Tensor weights = *Tensor::allocate(r.dtype, r.opt_dims);
    dispatch(r.dtype, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (!std::is_integral_v<T>)
        for (int64_t i = 0; i < weights.volume(); ++i) weights.mutable_as<T>()[i] = T(normal(random));
    });
    options.inputs = {Tensor(), weights};
    options.tolerance = r.dtype == DType::f32 ? 2e-5 : r.dtype == DType::f16 ? 2e-3 : 1.5e-2;
    return options;
  }

  static void check(const Problem& problem, const Config& config) {
    const Result<> checked = check_kernel(test_backend(), recurrence_tactic(), problem, config, options(problem));
    EXPECT_TRUE(checked) << config.text << "\n" << to_text(problem) << "\n" << checked.error().message;
  }
  static void check_first_of(const Problem& problem) {
    ASSERT_EQ(refusal_of(recurrence_tactic(), problem), std::nullopt);
    check(problem, configs_of(recurrence_tactic(), problem)[0]);
  }
  static void check_cut(const Problem& problem, const recurrence::CutChoice& cut) {
    const std::string text =
        fmt::format("{} {} {} {} {} {}", cut.batch, cut.team, cut.threads, cut.held, cut.in_shared, cut.together);
    check(problem, {.text = text, .choice = cut});
  }
};

TEST_F(Recurrences, CellsAndDirections) {
  for (const CellKind cell : {CellKind::rnn, CellKind::gru, CellKind::lstm}) {
    check_first_of(problem(attributes(cell), {}));
    check_first_of(problem(attributes(cell, SequenceDirection::reverse), {.batch = 1, .initial = true}));
    check_first_of(problem(attributes(cell, SequenceDirection::bidirectional), {.hidden = 7, .lengths = true}));
  }
}

TEST_F(Recurrences, GruThatResetsAfterTheProduct) {
  RecurrenceAttrs attrs = attributes(CellKind::gru, SequenceDirection::bidirectional);
  attrs.linear_before_reset = true;
  check_first_of(problem(attrs, {.steps = 4, .batch = 3, .bias = true, .lengths = true, .initial = true}));
  attrs.linear_before_reset = false;
  check_first_of(problem(attrs, {.steps = 2, .bias = true}));
}

TEST_F(Recurrences, PeepholesClipAndForgetting) {
  RecurrenceAttrs attrs = attributes(CellKind::lstm);
  attrs.clip = 0.75;
  const Layer layer{.lengths = true, .initial = true, .peepholes = true};
  check_first_of(problem(attrs, layer));
  attrs.input_forget = true;
  check_first_of(problem(attrs, layer));
}

// Omitted peepholes are not zeros: zero times infinity would be NaN.
TEST_F(Recurrences, InfiniteCellsWithoutPeepholes) {
  const RecurrenceAttrs attrs = attributes(CellKind::lstm);
  const Problem lstm = problem(attrs, {.initial = true});
  CheckOptions with = options(lstm);
  Tensor c = *Tensor::allocate(DType::f32, lstm.inputs[5].opt_dims);
  std::fill_n(c.mutable_as<float>(), c.volume(), std::numeric_limits<float>::infinity());
  with.inputs.resize(5);
  with.inputs.push_back(c);
  const Result<> checked =
      check_kernel(test_backend(), recurrence_tactic(), lstm, configs_of(recurrence_tactic(), lstm)[0], with);
  EXPECT_TRUE(checked) << checked.error().message;
}

TEST_F(Recurrences, Functions) {
  RecurrenceAttrs attrs = attributes(CellKind::lstm, SequenceDirection::bidirectional);
  attrs.functions = "hard_sigmoid(0.3, 0.4), softsign, scaled_tanh(1.5, 0.5), sigmoid, elu(0.5), leaky_relu(0.25)";
  check_first_of(problem(attrs, {}));
  attrs = attributes(CellKind::gru, SequenceDirection::bidirectional);
  attrs.functions = "relu, softplus, affine(0.5, 0.25), thresholded_relu(0.5)";
  check_first_of(problem(attrs, {.steps = 2}));
}

TEST_F(Recurrences, NoStepsAndNoSequences) {
  check_first_of(problem(attributes(CellKind::lstm), {.steps = 0, .initial = true}));
  check_first_of(problem(attributes(CellKind::gru), {.batch = 0}));
}

TEST_F(Recurrences, NarrowTypes) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    check_first_of(problem(attributes(CellKind::lstm), {.hidden = 20, .initial = true, .dtype = dtype}));
    check_cut(problem(attributes(CellKind::gru), {.hidden = 130, .dtype = dtype}), {2, 1, 256, 8, true});
  }
}

TEST_F(Recurrences, TeamsOfBlocks) {
  const RecurrenceAttrs of_lstm = attributes(CellKind::lstm);
  const Problem lstm = problem(of_lstm, {.batch = 3, .hidden = 37, .initial = true});
  for (const int64_t team : {1, 2, 8}) check_cut(lstm, {2, team, 64, 16, true});
  check_cut(problem(attributes(CellKind::gru), {.batch = 3, .hidden = 37}), {4, 4, 64, 64, true});
  check_cut(problem(attributes(CellKind::rnn), {.batch = 9, .hidden = 150}), {16, 2, 256, 4, true});
}

TEST_F(Recurrences, LaunchesThatRunAtOnce) {
  const Layer layer{.steps = 4, .batch = 5, .hidden = 37, .lengths = true, .initial = true};
  for (const CellKind cell : {CellKind::rnn, CellKind::gru, CellKind::lstm})
    for (const SequenceDirection direction : {SequenceDirection::reverse, SequenceDirection::bidirectional})
      check_cut(problem(attributes(cell, direction), layer), {2, 4, 64, 64, true, true});
  const Layer wide{.batch = 1, .hidden = 130, .dtype = DType::f16};
  check_cut(problem(attributes(CellKind::gru), wide), {1, 16, 64, 8, false, true});
}

TEST_F(Recurrences, WhereWeightsLie) {
  const RecurrenceAttrs of_lstm = attributes(CellKind::lstm), of_gru = attributes(CellKind::gru);
  const Problem lstm = problem(of_lstm, {.batch = 2, .hidden = 24});
  const Problem gru = problem(of_gru, {.batch = 2, .hidden = 24});
  const Problem odd = problem(of_lstm, {.batch = 1, .hidden = 131});
  for (const int64_t held : {0, 8, 16})
    for (const bool in_shared : {false, true}) {
      check_cut(lstm, {2, 1, 128, held, in_shared});
      check_cut(gru, {1, 2, 64, held, in_shared});
    }
  check_cut(odd, {1, 4, 128, 8, false});
  check_cut(odd, {1, 4, 128, 0, true});
}

// One plan for all lengths and batches.
TEST_F(Recurrences, OpenSizes) {
  const RecurrenceAttrs attrs = attributes(CellKind::lstm, SequenceDirection::bidirectional);
  for (const auto& [steps, batch] : std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {5, 3}, {0, 2}}) {
    const std::vector<int64_t> symbols = {steps, batch};
    const Expr s = Expr::symbol(0), b = Expr::symbol(1);
    Problem open = problem(attrs, {.steps = steps, .batch = batch});
    open.inputs[0] = symbolic_operand(DType::f32, {s, b, 64}, symbols);
    open.outputs[0] = symbolic_operand(DType::f32, {s, b, 16}, symbols);
    open.outputs[1] = open.outputs[2] = symbolic_operand(DType::f32, {2, b, 8}, symbols);
    open.symbols = symbols;
    CheckOptions with = options(open);
    with.symbols = symbols;
    for (const bool together : {false, true}) {
      const Config config{.text = "", .choice = recurrence::CutChoice{2, together ? 2 : 1, 64, 64, true, together}};
      const Result<> checked = check_kernel(test_backend(), recurrence_tactic(), open, config, with);
      EXPECT_TRUE(checked) << steps << " steps, " << batch << ": " << checked.error().message;
    }
  }
}

// Blocks that wait for each other are no more than the multiprocessors of the smallest device that the engine is for.
TEST_F(Recurrences, TeamsFitTheDevice) {
  const auto largest_at_once = [](Problem layer, int multiprocessors) {
    layer.target.least_cores = multiprocessors;
    int64_t most = 0;
    for (const Config& config : configs_of(recurrence_tactic(), layer)) {
      const auto& cut = config.as<recurrence::CutChoice>();
      if (cut.together) most = std::max(most, cut.team);
    }
    return most;
  };
  const RecurrenceAttrs one = attributes(CellKind::lstm);
  const RecurrenceAttrs two = attributes(CellKind::lstm, SequenceDirection::bidirectional);
  const Problem forwards = problem(one, {.hidden = 1024}), both = problem(two, {.hidden = 1024});
  EXPECT_EQ(largest_at_once(forwards, 132), 132);
  EXPECT_EQ(largest_at_once(both, 132), 66);
  EXPECT_EQ(largest_at_once(forwards, 78), 78);  // an H20
  EXPECT_EQ(largest_at_once(forwards, 16), 16);  // a slice of it
  EXPECT_EQ(largest_at_once(both, 14), 0);
  Problem narrow = both;
  narrow.target.least_cores = 4;
  EXPECT_FALSE(configs_of(recurrence_tactic(), narrow).empty());
}

TEST_F(Recurrences, Refusals) {
  const RecurrenceAttrs rnn = attributes(CellKind::rnn);
  Problem doubles = problem(rnn, {});
  doubles.inputs[0].dtype = DType::f64;
  EXPECT_NE(refusal_of(recurrence_tactic(), doubles), std::nullopt);
  EXPECT_NE(refusal_of(recurrence_tactic(), problem(rnn, {.hidden = 100'000})), std::nullopt);
}

}  // namespace
}  // namespace lathe::cuda
