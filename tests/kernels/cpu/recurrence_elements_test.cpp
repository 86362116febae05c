// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/recurrence_elements/recurrence_elements.h"

#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/evaluation_check.h"

namespace lathe::cpu {
const Tactic& recurrence_elements_tactic();

namespace {

// Inputs of the op for a layer; those that are omitted are undefined.
std::vector<Tensor> random_inputs(const RecurrenceAttrs& attrs, DType type, int64_t hidden, std::mt19937& random) {
  const int64_t directions = attrs.direction == SequenceDirection::bidirectional ? 2 : 1;
  const int64_t gates = attrs.cell == CellKind::lstm ? 4 : attrs.cell == CellKind::gru ? 3 : 1;
  const int64_t steps = pick_between(random, 1, 5), batch = pick_between(random, 1, hidden > 60 ? 3 : 40);
  const bool lstm = attrs.cell == CellKind::lstm;
  const auto numbers = [&](bool given, const Dims& dims, double scale) {
    if (!given) return Tensor();
    Tensor tensor = *Tensor::allocate(type, dims);
    std::vector<double> values(static_cast<size_t>(tensor.volume()));
    for (double& value : values) value = std::normal_distribution<double>(0, scale)(random);
    from_doubles(values, tensor);
    return tensor;
  };
  const auto any = [&] { return pick_between(random, 0, 1) == 1; };
  const DType lengths = std::array{DType::i8, DType::i32, DType::i64, DType::u16}[pick_between(random, 0, 3)];
  return {numbers(true, {steps, batch, directions * gates * hidden}, 1),
          numbers(true, {directions, gates * hidden, hidden}, 1 / std::sqrt(static_cast<double>(hidden))),
          numbers(attrs.cell == CellKind::gru && any(), {directions, hidden}, 1),
          any() ? random_integers(lengths, {batch}, -1, steps + 1, random) : Tensor(),
          numbers(any(), {directions, batch, hidden}, 1),
          numbers(lstm && any(), {directions, batch, hidden}, 1),
          numbers(lstm && any(), {directions, 3 * hidden}, 1)};
}

void compare(const RecurrenceAttrs& attrs, const std::vector<Tensor>& inputs, std::mt19937& random) {
  const std::string what = to_text(attrs);
  const size_t results = attrs.cell == CellKind::lstm ? 3 : 2;
  const Result<std::vector<Tensor>> expected = run_op(attrs, inputs, results);
  ASSERT_TRUE(expected) << what << ": " << expected.error().message;
  Problem problem;
  problem.attributes = &attrs;
  problem.program = {1, {}, {0}};
  std::vector<TestTensor> strided;
  std::vector<TensorArg> args, outputs;
  strided.reserve(10);
  for (const Tensor& input : inputs) {
    Operand& operand = problem.inputs.emplace_back();
    operand.omitted = !input.defined();
    args.emplace_back();
    if (operand.omitted) continue;
    operand.dtype = input.dtype();
    operand.dims = to_shape(input.dims());
    operand.opt_dims = input.dims();
    args.back() = strided.emplace_back(TestTensor::copy_of(input, random)).arg;
  }
  const size_t first = strided.size();
  for (const Tensor& result : *expected) {
    Operand& operand = problem.outputs.emplace_back();
    operand.dtype = result.dtype();
    operand.dims = to_shape(result.dims());
    operand.opt_dims = result.dims();
    outputs.push_back(
        strided.emplace_back(TestTensor::copy_of(*Tensor::allocate(result.dtype(), result.dims()), random)).arg);
  }
  const Matched matched = recurrence_elements_tactic().match(problem);
  ASSERT_TRUE(matched) << matched.error().reason;
  const auto kernel = make_kernel("recurrence_elements", (*matched)->emit({})->params);
  run_kernel(*kernel, args, outputs, pick_between(random, 0, 1) ? 1 : 3);
  for (size_t i = 0; i < results && !::testing::Test::HasFatalFailure(); ++i)
    expect_close(strided[first + i].checked_content(), (*expected)[i], what);
}

TEST(RecurrenceElements, IsTheEvaluation) {
  std::mt19937 random(341);
  for (int repeat = 0; repeat < 60; ++repeat)
    for (const DType type : {DType::f64, DType::f32}) {
      RecurrenceAttrs attrs;
      attrs.cell = static_cast<CellKind>(repeat % 3);
      attrs.direction = static_cast<SequenceDirection>(pick_between(random, 0, 2));
      attrs.clip = pick_between(random, 0, 2) ? 0 : 0.75;
      attrs.linear_before_reset = attrs.cell == CellKind::gru && pick_between(random, 0, 1);
      attrs.input_forget = attrs.cell == CellKind::lstm && pick_between(random, 0, 1);
      // More than a block of columns, and of depth.
      const int64_t hidden = repeat % 10 ? pick_between(random, 1, 20) : 280;
      compare(attrs, random_inputs(attrs, type, hidden, random), random);
    }
}

TEST(RecurrenceElements, OfAllFunctionsIsTheEvaluation) {
  std::mt19937 random(342);
  for (const char* function :
       {"sigmoid", "tanh", "relu", "softsign", "softplus", "affine(0.5, 0.25)", "leaky_relu(0.1)",
        "thresholded_relu(0.3)", "elu(0.7)", "hard_sigmoid(0.2, 0.5)", "scaled_tanh(1.5, 0.5)"})
    for (const CellKind cell : {CellKind::rnn, CellKind::gru, CellKind::lstm}) {
      RecurrenceAttrs attrs;
      attrs.cell = cell;
      attrs.functions = function;
      for (int i = 1; i < (cell == CellKind::lstm ? 3 : cell == CellKind::gru ? 2 : 1); ++i)
        attrs.functions += std::string(", ") + function;
      compare(attrs, random_inputs(attrs, DType::f64, 7, random), random);
    }
}

TEST(RecurrenceElements, RefusesWhatItCannotRun) {
  using P = recurrence::LayerParams;
  const auto usual = [] {
    P params;
    params.functions = {{}, {}, {}};
    return params;
  };
  const auto makes = [&](auto change) {
    P params = usual();
    change(params);
    return static_cast<bool>(find_kernel("recurrence_elements")(Record{encode_params(params)}));
  };
  EXPECT_TRUE(makes([](P&) {}));
  EXPECT_FALSE(makes([](P& p) { p.functions.pop_back(); }));
  EXPECT_FALSE(makes([](P& p) { p.functions[0].op = Opcode::exp; }));
  EXPECT_FALSE(makes([](P& p) { p.cell = static_cast<recurrence::Cell>(3); }));
  EXPECT_FALSE(makes([](P& p) { p.cell = recurrence::Cell::gru; }));
  EXPECT_FALSE(makes([](P& p) { p.direction = recurrence::Direction::bidirectional; }));
  EXPECT_FALSE(makes([](P& p) { p.linear_before_reset = true; }));
  EXPECT_FALSE(makes([](P& p) { p.clip = -1; }));
  std::mt19937 random(343);
  const auto checks = [&](const Dims& x, const Dims& r, const Dims& y, DType type, size_t results) {
    const TestTensor a = TestTensor::copy_of(random_integers(DType::f64, x, 0, 1, random), random),
                     b = TestTensor::copy_of(random_integers(DType::f64, r, 0, 1, random), random),
                     c = TestTensor::copy_of(random_integers(type, y, 0, 1, random), random),
                     h = TestTensor::copy_of(random_integers(DType::f64, {1, 2, 5}, 0, 1, random), random);
    const std::vector<TensorArg> inputs{a.arg, b.arg};
    const std::vector<TensorArg> outputs = results == 1 ? std::vector{c.arg} : std::vector{c.arg, h.arg, h.arg};
    return static_cast<bool>(make_kernel("recurrence_elements", encode_params(usual()))->check(inputs, outputs));
  };
  EXPECT_TRUE(checks({3, 2, 20}, {1, 20, 5}, {3, 2, 5}, DType::f64, 3));
  EXPECT_FALSE(checks({3, 2, 20}, {1, 20, 5}, {3, 2, 5}, DType::f64, 1));
  EXPECT_FALSE(checks({3, 2, 20}, {1, 20, 5}, {3, 2, 5}, DType::f32, 3));
  EXPECT_FALSE(checks({3, 2, 15}, {1, 20, 5}, {3, 2, 5}, DType::f64, 3));
  EXPECT_FALSE(checks({3, 2, 20}, {2, 20, 5}, {3, 2, 5}, DType::f64, 3));
  EXPECT_FALSE(checks({3, 2, 20}, {1, 20, 5}, {3, 2, 6}, DType::f64, 3));
}

}  // namespace
}  // namespace lathe::cpu
