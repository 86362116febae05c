// SPDX-License-Identifier: Apache-2.0
// Products by cuBLASLt: choice, results, refusals, capture.
#include <algorithm>

#include "device/cuda/matmul_call.h"
#include "fixtures/ask_tactic.h"
#include "kernels/cuda/libraries/cublaslt_tactic.h"
#include "kernels/cuda/library_device.h"

namespace lathe::cuda {
namespace {

class CublasLtTest : public LibraryDeviceTest {
 protected:
  CublasLtTest() : LibraryDeviceTest(FAKE_CUBLASLT) {}
  void SetUp() override {
    LibraryDeviceTest::SetUp();
    auto handle = libraries_of(*device_).cublaslt();
    ASSERT_OK(handle);
    tactic_ = std::make_unique<CublasLtTactic>(*std::move(handle), "");
  }
  void TearDown() override {
    tactic_.reset();
    LibraryDeviceTest::TearDown();
  }
  static Problem product(const Attributes& attrs, DType type, Dims a, Dims b, Dims c) {
    return op_problem(attrs, {operand(type, std::move(a)), operand(type, std::move(b))}, {operand(type, std::move(c))});
  }
  void check(const Problem& problem, const CheckOptions& options = {}) {
    LibraryDeviceTest::check(*tactic_, problem, options);
  }
  size_t launches(const Problem& problem) { return LibraryDeviceTest::launches(*tactic_, problem); }

  std::unique_ptr<CublasLtTactic> tactic_;
  MatmulAttrs attrs_;
};

TEST_F(CublasLtTest, MultipliesEveryTypeByEveryAlgorithm) {
  for (DType type : {DType::f16, DType::bf16, DType::f32}) {
    const Problem problem = product(attrs_, type, {24, 72}, {72, 40}, {24, 40});
    if (!on_gpu_) {
      EXPECT_EQ(configs_of(*tactic_, problem).size(), 3u);
    }
    CheckOptions loose;
    if (type == DType::f32) loose.tolerance = 1e-4;
    check(problem, loose);
    EXPECT_EQ(launches(problem), 1u);
  }
}

TEST_F(CublasLtTest, Tf32IsUsedWhereAllowed) {
  Problem problem = product(attrs_, DType::f32, {16, 64}, {64, 32}, {16, 32});
  problem.tf32 = true;
  CheckOptions loose;
  loose.tolerance = 2e-2;
  check(problem, loose);
  const Emission emission = *emit(*tactic_, problem, configs_of(*tactic_, problem).front());
  EXPECT_EQ(emission.launches[0].launch.args[matmul::kTf32].value, Expr(1));
}

TEST_F(CublasLtTest, OperandsMayBeTransposed) {
  for (bool a : {false, true})
    for (bool b : {false, true}) {
      attrs_.transpose_a = a, attrs_.transpose_b = b;
      check(product(attrs_, DType::f16, a ? Dims{80, 40} : Dims{40, 80}, b ? Dims{24, 80} : Dims{80, 24}, {40, 24}));
    }
}

TEST_F(CublasLtTest, ExtentsNeedNotBeAligned) {
  for (int64_t k : {1, 7, 34}) check(product(attrs_, DType::f16, {5, k}, {k, 13}, {5, 13}));
  check(product(attrs_, DType::f32, {40}, {40, 24}, {24}));
  check(product(attrs_, DType::f32, {3, 9, 40}, {40}, {3, 9}));
}

TEST_F(CublasLtTest, StacksOfMatrices) {
  check(product(attrs_, DType::f16, {2, 3, 20, 32}, {2, 3, 32, 16}, {2, 3, 20, 16}));
  check(product(attrs_, DType::f16, {20, 32}, {3, 32, 16}, {3, 20, 16}));
  check(product(attrs_, DType::f16, {2, 3, 20, 32}, {32, 16}, {2, 3, 20, 16}));
  EinsumAttrs einsum;
  einsum.equation = "bqk,bkd->bqd";
  check(product(einsum, DType::f16, {3, 9, 16}, {3, 16, 8}, {3, 9, 8}));
}

TEST_F(CublasLtTest, ConstantWeightsArePacked) {
  std::vector<Half> values(21 * 10);
  for (size_t i = 0; i < values.size(); ++i) values[i] = Half(static_cast<float>(i % 11) - 5);
  for (bool transposed : {false, true}) {
    attrs_.transpose_b = transposed;
    const Tensor b = Tensor::from<Half>(transposed ? Dims{10, 21} : Dims{21, 10}, values);
    Problem problem = product(attrs_, DType::f16, {2, 6, 21}, b.dims(), {2, 6, 10});
    problem.inputs[1].constant = problem.inputs[1].weights = &b;
    check(problem);
  }
}

TEST_F(CublasLtTest, BiasAndActivationRunInTheLibrary) {
  const Tensor bias = Tensor::from<float>({40}, std::vector<float>(40, 0.75f));
  Problem problem = product(attrs_, DType::f32, {24, 72}, {72, 40}, {24, 40});
  problem.operands = {operand(DType::f32, {40})};
  problem.operands[0].constant = problem.operands[0].weights = &bias;
  CheckOptions options;
  options.operands = {bias};
  options.tolerance = 1e-4;
  for (const char* program : {"in=2; r2=add r0 r1; out r2", "in=2; r2=add r1 r0; r3=relu r2; out r3",
                              "in=2; r2=add r0 r1; r3=gelu_tanh r2; out r3"}) {
    problem.program = *parse_program(program);
    EXPECT_EQ(launches(problem), 1u) << program;
    check(problem, options);
  }
  problem.operands.clear();
  problem.program = *parse_program("in=1; r1=relu r0; out r1");
  EXPECT_EQ(launches(problem), 1u);
  check(problem, {});
}

TEST_F(CublasLtTest, OtherProgramsRunInALaunchOfTheirOwn) {
  const Tensor bias = Tensor::from<Half>({44}, std::vector<Half>(44, Half(0.5f)));
  Problem problem = product(attrs_, DType::f16, {2, 20, 64}, {64, 44}, {2, 20, 44});
  problem.operands = {operand(DType::f16, {44}), operand(DType::f16, {2, 20, 44}), operand(DType::f32, {2, 1, 1})};
  problem.program = *parse_program("in=4; r4=add r0 r1; r5=silu r4; r6=fma r5 r3 r2; out r6");
  EXPECT_EQ(launches(problem), 2u);
  check(problem);
  // A bias that is no constant may be the memory that the result takes; the exact GELU is none of the library's.
  problem.operands.resize(1);
  problem.program = *parse_program("in=2; r2=add r0 r1; out r2");
  EXPECT_EQ(launches(problem), 2u);
  problem.operands[0].constant = problem.operands[0].weights = &bias;
  EXPECT_EQ(launches(problem), 1u);
  problem.program = *parse_program("in=2; r2=add r0 r1; r3=gelu_erf r2; out r3");
  EXPECT_EQ(launches(problem), 2u);
}

TEST_F(CublasLtTest, OutputMayBeStridedOrTransposed) {
  Problem problem = product(attrs_, DType::f16, {20, 32}, {32, 24}, {20, 24});
  problem.outputs[0] = strided_operand(DType::f16, {20, 24}, {40, 1});
  EXPECT_EQ(launches(problem), 1u);
  check(problem);
  problem.outputs[0] = strided_operand(DType::f16, {20, 24}, {1, 20});
  EXPECT_EQ(launches(problem), 2u);
  check(problem);
}

TEST_F(CublasLtTest, RowsMayBeSymbolic) {
  const std::vector<int64_t> symbols = {3, 11};
  const Expr batch = Expr::symbol(0), length = Expr::symbol(1);
  Problem problem =
      op_problem(attrs_, {symbolic_operand(DType::f16, {batch, length, 32}, symbols), operand(DType::f16, {32, 24})},
                 {symbolic_operand(DType::f16, {batch, length, 24}, symbols)});
  problem.symbols = symbols;
  CheckOptions options;
  options.symbols = symbols;
  check(problem, options);
  problem.operands = {symbolic_operand(DType::f16, {batch, length, 24}, symbols)};
  problem.program = *parse_program("in=2; r2=mul r0 r1; out r2");
  check(problem, options);
}

TEST_F(CublasLtTest, StatesWhyItRefuses) {
  const auto reason = [&](const Problem& problem) { return refusal_of(*tactic_, problem).value_or(""); };
  EXPECT_NE(reason(product(attrs_, DType::f64, {4, 8}, {8, 4}, {4, 4})).find("f64"), std::string::npos);
  EXPECT_NE(reason(product(attrs_, DType::i8, {4, 8}, {8, 4}, {4, 4})).find("i8"), std::string::npos);
  EXPECT_NE(reason(product(attrs_, DType::f16, {2, 1, 4, 8}, {3, 8, 4}, {2, 3, 4, 4})).find("distance"),
            std::string::npos);
  Problem problem = product(attrs_, DType::f16, {20, 32}, {32, 24}, {20, 24});
  EXPECT_EQ(reason(problem), "");
  EXPECT_EQ(refusal_of(CublasLtTactic(nullptr, "it is not there"), problem), "it is not there");
  problem.inputs[0] = strided_operand(DType::f16, {20, 32}, {0, 1});
  EXPECT_NE(reason(problem).find("repeats"), std::string::npos);
  if (on_gpu_) return;
  fake_.offer(0);
  EXPECT_EQ(reason(product(attrs_, DType::f16, {20, 32}, {32, 16}, {20, 16})), "the library has no algorithm");
}

// Without a device the library chooses when the engine is loaded.
TEST_F(CublasLtTest, ChoiceMayWaitForTheDevice) {
  const CublasLtTactic tactic(nullptr, "");
  const Problem problem = product(attrs_, DType::f16, {24, 72}, {72, 40}, {24, 40});
  ASSERT_EQ(configs_of(tactic, problem).size(), 1u);
  LibraryDeviceTest::check(tactic, problem);
}

TEST_F(CublasLtTest, AStoredAlgorithmIsUsedByTheVersionThatChoseIt) {
  SKIP_ON_GPU();
  const Problem problem = product(attrs_, DType::f16, {24, 72}, {72, 40}, {24, 40});
  Config config = configs_of(*tactic_, problem).front();
  const auto run = [&] {
    fake_.reset();
    const Result<> checked = check_kernel({*device_, *compiler_}, *tactic_, problem, config, {});
    EXPECT_TRUE(checked) << checked.error().message;
    return fake_.count("cublasLtMatmulAlgoGetHeuristic");
  };
  EXPECT_EQ(run(), 0u);
  EXPECT_EQ(fake_.count("cublasLtMatmulAlgoCheck"), 1u);
  auto choice = config.as<MatmulChoice>();
  choice.algorithm.data[0] ^= 1;  // damaged
  config.choice = choice;
  EXPECT_EQ(run(), 1u);
  choice.version = 120200;  // of another: it is not looked at
  config.choice = choice;
  EXPECT_EQ(run(), 1u);
  EXPECT_EQ(fake_.count("cublasLtMatmulAlgoCheck"), 0u);
}

TEST_F(CublasLtTest, EachCallMayFail) {
  SKIP_ON_GPU();
  Problem problem = product(attrs_, DType::f16, {24, 72}, {72, 40}, {24, 40});
  problem.operands = {operand(DType::f16, {24, 40})};
  problem.program = *parse_program("in=2; r2=mul r0 r1; out r2");
  const Config config = configs_of(*tactic_, problem).front();
  const auto run = [&] {
    tactic_.reset();
    device_ = nullptr;
    device_ = *open_device(0);
    return check_kernel({*device_, *compiler_}, CublasLtTactic(nullptr, ""), problem, config, {});
  };
  fake_.reset();
  ASSERT_OK(run());
  const size_t calls = fake_.calls();
  ASSERT_GT(calls, 15u);
  size_t reported = 0;
  for (const int status : {CUBLAS_STATUS_ALLOC_FAILED, CUBLAS_STATUS_INTERNAL_ERROR})
    for (size_t nth = 1; nth <= calls; ++nth) {
      fake_.reset();
      fake_.fail(nullptr, nth, status);
      const Result<> ran = run();
      if (ran) continue;  // the algorithm is looked for again, or the call gives something back
      ++reported;
      EXPECT_EQ(ran.error().code,
                status == CUBLAS_STATUS_ALLOC_FAILED ? ErrorCode::out_of_memory : ErrorCode::library_call_failed);
      EXPECT_NE(ran.error().message.find(fake_.call(nth - 1)), std::string::npos) << ran.error().message;
    }
  EXPECT_GE(reported, 2 * calls - 6);
  device_ = nullptr;
  fake_.reset();
}

TEST_F(CublasLtTest, CallsAreCaptured) {
  const Problem problem = product(attrs_, DType::f32, {4, 8}, {8, 4}, {4, 4});
  const float one = 1, sum = 8;
  const auto bytes = [](const auto& value) { return std::as_bytes(std::span(&value, 1)); };
  const auto replayed = replay(*tactic_, problem, bytes(one));
  ASSERT_OK(replayed);
  EXPECT_TRUE(std::ranges::equal(replayed->first, bytes(one))) << "recording does not run";
  EXPECT_TRUE(std::ranges::equal(replayed->second, bytes(sum)));
}

TEST_F(CublasLtTest, PlansMayAskForTheImpossible) {
  Launch launch;
  launch.library = "cublaslt";
  launch.entry = "matmul";
  StepRecord record;
  record.launches = {&launch, 1};
  EXPECT_FAILS(device_->make_kernel(record), launch_refused);  // no arguments
  launch.args.resize(matmul::kNumArgs);
  const auto kernel = *device_->make_kernel(record);
  launch.entry = "solve";
  EXPECT_FAILS(device_->make_kernel(record), launch_refused);
  launch.library = "cufft";
  EXPECT_FAILS(device_->make_kernel(record), launch_refused);
  EXPECT_FAILS(kernel->prepare({}, 1), launch_refused);  // epilogue 0
}

}  // namespace
}  // namespace lathe::cuda
