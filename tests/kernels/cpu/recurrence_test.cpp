// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fixtures/ask_tactic.h"
#include "kernels/cpu/cpu_tactic.h"
#include "kernels/cpu/kernel_runner.h"
#include "kernels/cpu/recurrence/recurrence.h"
#include "ops/op.h"

namespace lathe::cpu {

const Tactic& recurrence_tactic();

namespace {

struct Layer {
  CellKind cell = CellKind::lstm;
  int64_t steps = 3, batch = 2, hidden = 5;
  SequenceDirection direction = SequenceDirection::forward;
  std::string functions = "";
  double clip = 0;
  bool linear_before_reset = false, input_forget = false;
  bool bias = false, lengths = false, initial = false, peepholes = false;
  bool constant = true;      // the weights
  bool batch_first = false;  // x and y in memory
  DType lengths_type = DType::i32;
};

Tensor random_tensor(std::mt19937& random, Dims dims, float scale) {
  Tensor tensor = *Tensor::allocate(DType::f32, std::move(dims));
  std::normal_distribution<float> normal(0, scale);
  for (int64_t i = 0; i < tensor.volume(); ++i) tensor.mutable_as<float>()[i] = normal(random);
  return tensor;
}

class Recurrence {
 public:
  explicit Recurrence(const Layer& layer) : layer_(layer), random_(11) {
    attrs_.cell = layer.cell;
    attrs_.direction = layer.direction;
    attrs_.functions = layer.functions;
    attrs_.clip = layer.clip;
    attrs_.linear_before_reset = layer.linear_before_reset;
    attrs_.input_forget = layer.input_forget;
    const int64_t directions = layer.direction == SequenceDirection::bidirectional ? 2 : 1;
    const int64_t gates = layer.cell == CellKind::lstm ? 4 : layer.cell == CellKind::gru ? 3 : 1;
    const int64_t n = layer.hidden, b = layer.batch, s = layer.steps;
    const auto random = [&](bool given, Dims dims, float scale = 1) {
      return given ? random_tensor(random_, std::move(dims), scale) : Tensor();
    };
    const bool is_lstm = layer.cell == CellKind::lstm;
    inputs_ = {random(true, {s, b, directions * gates * n}),
               random(true, {directions, gates * n, n}, 1 / std::sqrt(static_cast<float>(n))),
               random(layer.bias, {directions, n}),
               lengths(),
               random(layer.initial, {directions, b, n}),
               random(layer.initial && is_lstm, {directions, b, n}),
               random(layer.peepholes, {directions, 3 * n})};
    output_dims_ = {{s, b, directions * n}, {directions, b, n}};
    if (is_lstm) output_dims_.push_back(output_dims_[1]);
  }

  void expect_matches() {
    const Result<std::vector<Tensor>> expected = run_op(attrs_, inputs_, output_dims_.size());
    ASSERT_TRUE(expected) << expected.error().message;
    const Problem problem = problem_of();
    ASSERT_EQ(refusal_of(recurrence_tactic(), problem), std::nullopt);
    const Result<Emission> emission = emit(recurrence_tactic(), problem, {});
    ASSERT_TRUE(emission) << emission.error().message;
    const auto kernel = make_kernel(emission->kernel.c_str(), emission->params);
    std::vector<float> before;
    for (const int threads : {1, 3}) {
      std::vector<TestTensor> in, out;
      std::vector<TensorArg> args, results;
      for (const StepInput& input : emission->inputs) args.push_back(argument(input, *emission, in));
      for (size_t i = 0; i < output_dims_.size(); ++i) {
        out.emplace_back(output_dims_[i], i == 0 ? order() : std::vector<int>{}, 3);
        results.push_back(out.back().arg);
      }
      run_kernel(*kernel, args, results, threads);
      std::vector<float> all;
      for (size_t i = 0; i < out.size(); ++i) {
        EXPECT_TRUE(out[i].gaps_untouched());
        int64_t at = 0;
        out[i].for_each([&](const std::vector<int64_t>&, float& got) {
          const float want = (*expected)[i].as<float>()[at++];
          ASSERT_NEAR(got, want, 2e-5 * (1 + std::abs(want))) << "output " << i << " element " << at - 1;
          all.push_back(got);
        });
      }
      if (threads > 1) {
        EXPECT_EQ(all, before) << "depends on the number of threads";
      }
      before = std::move(all);
    }
  }

 private:
  Tensor lengths() {
    if (!layer_.lengths) return {};
    Tensor lengths = *Tensor::allocate(layer_.lengths_type, {layer_.batch});
    for (int64_t i = 0; i < layer_.batch; ++i) {
      const int64_t length = (i * 3 + 1) % (layer_.steps + 2) - (i == 1 ? 1 : 0);  // also none, and more than there are
      if (layer_.lengths_type == DType::i32)
        lengths.mutable_as<int32_t>()[i] = static_cast<int32_t>(length);
      else
        lengths.mutable_as<int64_t>()[i] = length;
    }
    return lengths;
  }
  std::vector<int> order() const { return layer_.batch_first ? std::vector{1, 0, 2} : std::vector{0, 1, 2}; }

  Problem problem_of() const {
    Problem problem;
    problem.attributes = &attrs_;
    problem.program = {1, {}, {0}};
    const auto operand = [](const Dims& dims, DType dtype) {
      Operand operand;
      operand.dtype = dtype;
      operand.dims = to_shape(dims);
      operand.opt_dims = dims;
      operand.strides = to_shape(row_major_strides(dims));
      return operand;
    };
    for (const Tensor& input : inputs_) {
      problem.inputs.push_back(input.defined() ? operand(input.dims(), input.dtype()) : Operand());
      problem.inputs.back().omitted = !input.defined();
    }
    if (layer_.constant) problem.inputs[1].constant = problem.inputs[1].weights = &inputs_[1];
    for (const Dims& dims : output_dims_) problem.outputs.push_back(operand(dims, DType::f32));
    return problem;
  }

  TensorArg argument(const StepInput& input, const Emission& emission, std::vector<TestTensor>& memory) const {
    const bool is_packed = input.kind == StepInput::packed;
    const Tensor& content = is_packed ? emission.packed[input.index].content() : inputs_[input.index];
    TensorArg arg;
    if (!content.defined()) return arg;
    if (content.dtype() != DType::f32 || is_packed) {
      arg.data = const_cast<void*>(content.data());
      arg.dtype = content.dtype();
      arg.rank = 1;
      arg.dims[0] = content.dims()[0];
      arg.strides[0] = 1;
      return arg;
    }
    TestTensor& tensor = memory.emplace_back(content.dims(), input.index == 0 ? order() : std::vector<int>{}, 2);
    int64_t at = 0;
    tensor.for_each([&](const std::vector<int64_t>&, float& value) { value = content.as<float>()[at++]; });
    return tensor.arg;
  }

  const Layer layer_;
  std::mt19937 random_;
  RecurrenceAttrs attrs_;
  std::vector<Tensor> inputs_;
  std::vector<Dims> output_dims_;
};

void expect_matches(const Layer& layer) {
  SCOPED_TRACE(fmt::format("cell {} direction {} steps {} batch {} hidden {} functions '{}'",
                           static_cast<int>(layer.cell), static_cast<int>(layer.direction), layer.steps, layer.batch,
                           layer.hidden, layer.functions));
  Recurrence(layer).expect_matches();
}

constexpr CellKind kCells[] = {CellKind::rnn, CellKind::gru, CellKind::lstm};
constexpr SequenceDirection kDirections[] = {SequenceDirection::forward, SequenceDirection::reverse,
                                             SequenceDirection::bidirectional};

TEST(Recurrence, CellsDirectionsAndSizes) {
  for (const CellKind cell : kCells)
    for (const SequenceDirection direction : kDirections)
      for (const auto& [steps, batch, hidden] : std::vector<std::array<int64_t, 3>>{
               {3, 2, 5}, {2, 1, 1}, {4, 15, 16}, {1, 7, 33}, {2, 3, 70}, {0, 2, 3}, {3, 0, 4}}) {
        Layer layer{.cell = cell, .steps = steps, .batch = batch, .hidden = hidden, .direction = direction};
        expect_matches(layer);
        if (cell != CellKind::gru) continue;
        layer.linear_before_reset = true;
        expect_matches(layer);
      }
}

TEST(Recurrence, EverythingThatMayBeOmitted) {
  for (const CellKind cell : kCells)
    for (const SequenceDirection direction : kDirections)
      for (int which = 1; which < 16; ++which) {
        Layer layer{.cell = cell, .steps = 5, .batch = 6, .hidden = 19, .direction = direction};
        layer.lengths = which & 1;
        layer.lengths_type = which & 2 ? DType::i64 : DType::i32;
        layer.initial = which & 2;
        layer.bias = cell == CellKind::gru && (which & 4);
        layer.peepholes = cell == CellKind::lstm && (which & 4);
        layer.linear_before_reset = cell == CellKind::gru && (which & 8);
        layer.input_forget = cell == CellKind::lstm && (which & 8);
        layer.clip = which % 3 == 0 ? 0.5 : 0;
        layer.batch_first = which & 8;
        layer.constant = which % 5 != 0;
        expect_matches(layer);
      }
}

TEST(Recurrence, Functions) {
  constexpr const char* kFunctions[] = {"sigmoid",
                                        "tanh",
                                        "relu",
                                        "softsign",
                                        "softplus",
                                        "affine(0.5, 0.25)",
                                        "leaky_relu(0.2)",
                                        "thresholded_relu(0.3)",
                                        "elu(0.7)",
                                        "hard_sigmoid(0.3, 0.4)",
                                        "scaled_tanh(1.5, 0.5)",
                                        "swish(1.5)"};
  constexpr size_t kCount = std::size(kFunctions);
  for (size_t i = 0; i < kCount; ++i) {
    const auto name = [&](size_t k) { return kFunctions[(i + k) % kCount]; };
    expect_matches({.cell = CellKind::rnn, .hidden = 18, .functions = name(0)});
    expect_matches({.cell = CellKind::gru, .hidden = 18, .functions = fmt::format("{}, {}", name(0), name(1))});
    expect_matches(
        {.cell = CellKind::lstm,
         .hidden = 18,
         .direction = SequenceDirection::bidirectional,
         .functions = fmt::format("{}, {}, {}, {}, {}, {}", name(0), name(1), name(2), name(3), name(4), name(5)),
         .clip = 1});
  }
}

// Large enough for threads to share the panels of a step, and to share the sequences.
TEST(Recurrence, LargeLayers) {
  expect_matches({.cell = CellKind::lstm, .steps = 4, .batch = 1, .hidden = 250});
  expect_matches({.cell = CellKind::gru, .steps = 3, .batch = 2, .hidden = 300, .lengths = true});
  expect_matches({.cell = CellKind::lstm, .steps = 3, .batch = 40, .hidden = 70});
  expect_matches({.cell = CellKind::gru,
                  .steps = 3,
                  .batch = 19,
                  .hidden = 90,
                  .direction = SequenceDirection::bidirectional,
                  .linear_before_reset = true,
                  .bias = true});
}

TEST(Recurrence, RefusesWhatItCannotRun) {
  const KernelFactory factory = find_kernel("recurrence");
  using recurrence::Cell;
  using recurrence::RecurrenceParams;
  RecurrenceParams good;
  good.layer.cell = Cell::rnn;
  good.layer.functions = {{Opcode::tanh, 0, 0}};
  good.hidden = 4;
  const auto makes = [&](auto&& change) {
    RecurrenceParams params = good;
    change(params);
    return factory(Record{encode_params(params), nullptr}).has_value();
  };
  EXPECT_TRUE(makes([](RecurrenceParams&) {}));
  for (const int64_t hidden : {int64_t{0}, int64_t{-1}, int64_t{1} << 40})
    EXPECT_FALSE(makes([&](RecurrenceParams& p) { p.hidden = hidden; })) << hidden;
  for (const int cell : {-1, 3})
    EXPECT_FALSE(makes([&](RecurrenceParams& p) { p.layer.cell = static_cast<Cell>(cell); })) << cell;
  EXPECT_FALSE(makes([](RecurrenceParams& p) { p.layer.direction = static_cast<recurrence::Direction>(3); }));
  EXPECT_FALSE(makes([](RecurrenceParams& p) { p.layer.direction = recurrence::Direction::bidirectional; }));
  EXPECT_FALSE(makes([](RecurrenceParams& p) { p.layer.linear_before_reset = true; }));  // an RNN has no such gate
  EXPECT_FALSE(makes([](RecurrenceParams& p) { p.layer.clip = NAN; }));
  EXPECT_FALSE(makes([](RecurrenceParams& p) { p.layer.clip = -1; }));
  EXPECT_FALSE(makes([](RecurrenceParams& p) { p.layer.functions[0].op = Opcode::exp; }));
  EXPECT_FALSE(makes([](RecurrenceParams& p) { p.layer.functions.push_back({Opcode::tanh, 0, 0}); }));
  EXPECT_FALSE(makes([](RecurrenceParams& p) { p.layer.functions.clear(); }));
  const std::vector<int64_t> list = encode_params(good);
  for (size_t at = 0; at < list.size(); ++at) {
    std::vector<int64_t> beyond = list;
    beyond[at] = int64_t{1} << 40;  // no member but the reals' bits holds it
    const bool is_real = at == 4 || at == 7 || at == 8;
    EXPECT_EQ(factory(Record{beyond, nullptr}).has_value(), is_real) << at;
  }
  for (size_t size = 0; size <= list.size() + 1; ++size) {
    std::vector<int64_t> cut = list;
    cut.resize(size);
    EXPECT_EQ(factory(Record{cut, nullptr}).has_value(), size == list.size()) << size;
  }
  const auto kernel = make_kernel("recurrence", list);
  TestTensor x({2, 3, 4}), r({1, 4, 4}), y({2, 3, 4}), h({1, 3, 4}), other({2, 3, 5});
  const auto fits = [&](std::vector<TensorArg> inputs, std::vector<TensorArg> outputs) {
    return kernel->check(inputs, outputs).has_value();
  };
  EXPECT_TRUE(fits({x.arg, r.arg}, {y.arg, h.arg}));
  EXPECT_TRUE(fits({x.arg, r.arg, {}, {}, h.arg}, {y.arg, h.arg}));
  EXPECT_FALSE(fits({x.arg}, {y.arg, h.arg}));
  EXPECT_FALSE(fits({x.arg, r.arg}, {y.arg}));
  EXPECT_FALSE(fits({x.arg, r.arg}, {y.arg, h.arg, h.arg}));  // an RNN has no c
  EXPECT_FALSE(fits({other.arg, r.arg}, {y.arg, h.arg}));
  EXPECT_FALSE(fits({x.arg, other.arg}, {y.arg, h.arg}));
  EXPECT_FALSE(fits({x.arg, r.arg}, {other.arg, h.arg}));
  EXPECT_FALSE(fits({x.arg, r.arg}, {y.arg, other.arg}));
  EXPECT_FALSE(fits({x.arg, r.arg, h.arg}, {y.arg, h.arg}));  // nor a bias of its own
  EXPECT_FALSE(fits({x.arg, r.arg, {}, {}, other.arg}, {y.arg, h.arg}));
  TensorArg lengths;
  lengths.rank = 1;
  lengths.dims[0] = 3;
  lengths.strides[0] = 1;
  EXPECT_FALSE(fits({x.arg, r.arg, {}, lengths}, {y.arg, h.arg}));  // of f32
  lengths.dtype = DType::i32;
  EXPECT_TRUE(fits({x.arg, r.arg, {}, lengths}, {y.arg, h.arg}));
}

}  // namespace
}  // namespace lathe::cpu
