// SPDX-License-Identifier: Apache-2.0
// Convolutions by cuDNN: choice, results, refusals, capture.
#include <algorithm>

#include "device/cuda/convolution_call.h"
#include "fixtures/ask_tactic.h"
#include "kernels/cuda/convolution_problem.h"
#include "kernels/cuda/libraries/cudnn_tactic.h"
#include "kernels/cuda/library_device.h"

namespace lathe::cuda {
namespace {

class CudnnTest : public LibraryDeviceTest {
 protected:
  CudnnTest() : LibraryDeviceTest(FAKE_CUDNN) {}
  void SetUp() override {
    if (!on_gpu_) setenv("LATHE_CUDNN", FAKE_CUDNN, 1);
    LibraryDeviceTest::SetUp();
    auto handle = libraries_of(*device_).cudnn();
    ASSERT_OK(handle);
    tactic_ = std::make_unique<CudnnTactic>(*std::move(handle), "");
  }
  void TearDown() override {
    tactic_.reset();
    LibraryDeviceTest::TearDown();
  }
  static Operand image(DType type, Dims dims) { return operand(type, std::move(dims), Layout::channels_last); }
  void check(const Problem& problem, const CheckOptions& options = {}) {
    LibraryDeviceTest::check(*tactic_, problem, options);
  }
  size_t launches(const Problem& problem) { return LibraryDeviceTest::launches(*tactic_, problem); }
  // A problem with a bias for each channel, and a program on it and the sums.
  Problem biased(DType type, std::string_view program, CheckOptions& options) {
    weights_ = small_weights(type, {8, 8, 3, 3});
    bias_ = small_weights(type, {1, 8, 1, 1});
    attrs_.pads_begin = attrs_.pads_end = {1, 1};
    Problem problem = convolution_problem(attrs_, image(type, {2, 8, 5, 6}), weights_);
    Operand bias = operand(type, {8});
    bias.constant = bias.weights = &bias_;
    bias.dims = problem.outputs[0].dims;
    bias.opt_dims = problem.outputs[0].opt_dims;
    bias.strides = {0, 1, 0, 0};
    bias.opt_strides = {0, 1, 0, 0};
    problem.operands = {bias};
    problem.program = *parse_program(program);
    options.operands = {bias_};
    return problem;
  }

  std::unique_ptr<CudnnTactic> tactic_;
  ConvolutionAttrs attrs_;
  Tensor weights_, bias_;
};

TEST_F(CudnnTest, ConvolvesEveryType) {
  attrs_.pads_begin = attrs_.pads_end = {1, 1};
  for (DType type : {DType::f16, DType::bf16, DType::f32}) {
    const Tensor w = small_weights(type, {16, 8, 3, 3});
    const Problem problem = convolution_problem(attrs_, image(type, {2, 8, 7, 9}), w);
    CheckOptions loose;
    if (type == DType::f32) loose.tolerance = 1e-4;
    check(problem, loose);
    EXPECT_EQ(launches(problem), 1u);
  }
}

TEST_F(CudnnTest, WindowsOfEveryKind) {
  const Tensor w = small_weights(DType::f16, {16, 8, 3, 2});
  attrs_.stride = {2, 1};
  attrs_.dilation = {1, 2};
  attrs_.pads_begin = {1, 0}, attrs_.pads_end = {1, 0};
  check(convolution_problem(attrs_, image(DType::f16, {2, 8, 9, 8}), w));
  attrs_.pads_end = {0, 0};  // the last row is not needed
  check(convolution_problem(attrs_, image(DType::f16, {1, 8, 10, 8}), w));
}

TEST_F(CudnnTest, OneAndThreeDimensions) {
  const Tensor line = small_weights(DType::f16, {8, 8, 5}), cube = small_weights(DType::f16, {8, 8, 2, 3, 2});
  check(convolution_problem(attrs_, image(DType::f16, {2, 8, 30}), line));
  check(convolution_problem(attrs_, image(DType::f16, {1, 8, 4, 5, 6}), cube));
}

TEST_F(CudnnTest, Groups) {
  attrs_.groups = 4;
  const Tensor w = small_weights(DType::f16, {32, 8, 3, 3});
  check(convolution_problem(attrs_, image(DType::f16, {2, 32, 6, 6}), w));
  attrs_.groups = 32;
  const Tensor depthwise = small_weights(DType::f16, {32, 1, 3, 3});
  check(convolution_problem(attrs_, image(DType::f16, {2, 32, 6, 6}), depthwise));
}

TEST_F(CudnnTest, StagesRunInTheLibrary) {
  CheckOptions options;
  for (const char* program :
       {"in=2; r2=add r0 r1; out r2", "in=2; r2=add r1 r0; r3=relu r2; out r3",
        "in=2; r2=add r0 r1; r3=silu r2; out r3", "in=2; r2=mul r0 r1; r3=clip r2 0 6; out r3",
        "in=2; r2=add r0 r1; r3=leaky_relu r2 0.125; out r3", "in=2; r2=add r0 r1; r3=sigmoid r2; out r3",
        "in=2; r2=add r0 r1; r3=gelu_erf r2; out r3"}) {
    const Problem problem = biased(DType::f16, program, options);
    if (!on_gpu_) {
      EXPECT_EQ(launches(problem), 1u) << program;
    }
    check(problem, options);
  }
}

TEST_F(CudnnTest, OtherProgramsRunInALaunchOfTheirOwn) {
  CheckOptions options;
  Problem problem = biased(DType::f16, "in=3; r3=add r0 r1; r4=add r3 r2; r5=relu r4; out r5", options);
  problem.operands.push_back(image(DType::f16, problem.outputs[0].opt_dims));
  options.operands.emplace_back();
  EXPECT_EQ(launches(problem), 2u);  // the residual may be the memory that the result takes
  check(problem, options);
}

// The library has the stages, but no engine for them.
TEST_F(CudnnTest, DeclinedStagesRunInALaunchOfTheirOwn) {
  SKIP_ON_GPU();
  CheckOptions options;
  const Problem problem = biased(DType::f16, "in=2; r2=add r0 r1; r3=elu r2 0.5; out r3", options);
  EXPECT_EQ(launches(problem), 2u);
  check(problem, options);
}

TEST_F(CudnnTest, OutputMayBeStrided) {
  const Tensor w = small_weights(DType::f16, {16, 8, 1, 1});
  Problem problem = convolution_problem(attrs_, image(DType::f16, {2, 8, 4, 4}), w);
  problem.outputs[0] = strided_operand(DType::f16, {2, 16, 4, 4}, {16 * 24, 1, 4 * 24, 24});  // part of a concatenation
  check(problem);
}

TEST_F(CudnnTest, BatchMayBeSymbolic) {
  const std::vector<int64_t> symbols = {3};
  const Tensor w = small_weights(DType::f16, {16, 8, 1, 1});
  Problem problem = convolution_problem(attrs_, image(DType::f16, {3, 8, 4, 4}), w);
  problem.inputs[0] = symbolic_operand(DType::f16, {Expr::symbol(0), 8, 4, 4}, symbols, Layout::channels_last);
  problem.outputs[0] = symbolic_operand(DType::f16, {Expr::symbol(0), 16, 4, 4}, symbols, Layout::channels_last);
  problem.symbols = symbols;
  CheckOptions options;
  options.symbols = symbols;
  check(problem, options);
  problem.program = *parse_program("in=1; r1=abs r0; out r1");
  EXPECT_EQ(launches(problem), 2u);
  check(problem, options);
}

TEST_F(CudnnTest, EnginesKeepToThePrecision) {
  SKIP_ON_GPU();
  const Tensor w = small_weights(DType::f32, {16, 8, 3, 3});
  Problem problem = convolution_problem(attrs_, image(DType::f32, {2, 8, 7, 9}), w);
  ASSERT_EQ(configs_of(*tactic_, problem).size(), 1u);
  EXPECT_EQ(configs_of(*tactic_, problem)[0].text, "engine=0");  // others round to TF32, or give other bits each time
  problem.tf32 = true;
  ASSERT_EQ(configs_of(*tactic_, problem).size(), 3u);
  EXPECT_EQ(configs_of(*tactic_, problem)[0].text, "engine=1 k3=1");
}

TEST_F(CudnnTest, StatesWhyItRefuses) {
  const auto reason = [&](const Problem& problem) { return refusal_of(*tactic_, problem).value_or(""); };
  const Tensor w = small_weights(DType::f64, {8, 8, 3, 3}), half = small_weights(DType::f16, {8, 8, 3, 3});
  EXPECT_NE(reason(convolution_problem(attrs_, image(DType::f64, {1, 8, 5, 5}), w)).find("f64"), std::string::npos);
  Problem problem = convolution_problem(attrs_, image(DType::f16, {1, 8, 5, 5}), half);
  EXPECT_EQ(refusal_of(CudnnTactic(nullptr, "it is not there"), problem), "it is not there");
  problem.inputs[1].constant = problem.inputs[1].weights = nullptr;
  EXPECT_NE(reason(problem).find("constant"), std::string::npos);
  EXPECT_NE(reason(pointwise_problem("in=1; out r0", {operand(DType::f16, {4})}, {})), "");
  if (on_gpu_) return;
  fake_.offer(0);
  EXPECT_EQ(reason(convolution_problem(attrs_, image(DType::f16, {1, 8, 6, 5}), half)), "the library has no engine");
}

// Without a device the library chooses when the engine is loaded.
TEST_F(CudnnTest, ChoiceMayWaitForTheDevice) {
  const CudnnTactic tactic(nullptr, "");
  CheckOptions options;
  const Problem problem = biased(DType::f16, "in=2; r2=add r0 r1; r3=relu r2; out r3", options);
  ASSERT_EQ(configs_of(tactic, problem).size(), 1u);
  LibraryDeviceTest::check(tactic, problem, options);
}

TEST_F(CudnnTest, AStoredEngineIsUsedByTheVersionThatChoseIt) {
  SKIP_ON_GPU();
  CheckOptions options;
  const Problem problem = biased(DType::f16, "in=2; r2=add r0 r1; out r2", options);
  Config config = configs_of(*tactic_, problem).front();
  ASSERT_EQ(config.text, "engine=1 k3=1");
  const auto created = [&] {
    fake_.reset();
    const Result<> checked = check_kernel({*device_, *compiler_}, *tactic_, problem, config, options);
    EXPECT_TRUE(checked) << checked.error().message;
    return fake_.count("cudnnBackendCreateDescriptor");
  };
  const size_t stored = created();
  auto choice = config.as<ConvolutionChoice>();
  choice.engine.index = 77;  // that the library has not
  config.choice = choice;
  EXPECT_GT(created(), stored);
  choice.version = 90100;  // of another: it is not looked at
  config.choice = choice;
  EXPECT_GT(created(), stored);
}

TEST_F(CudnnTest, EachCallMayFail) {
  SKIP_ON_GPU();
  CheckOptions options;
  const Problem problem = biased(DType::f16, "in=2; r2=add r0 r1; r3=relu r2; out r3", options);
  const Config config = configs_of(*tactic_, problem).front();
  const auto run = [&] {
    tactic_.reset();
    device_ = nullptr;
    device_ = *open_device(0);
    return check_kernel({*device_, *compiler_}, CudnnTactic(nullptr, ""), problem, config, options);
  };
  fake_.reset();
  ASSERT_OK(run());
  const size_t calls = fake_.calls(), live = fake_.live();
  ASSERT_GT(calls, 50u);
  size_t reported = 0;
  for (const int status :
       {CUDNN_STATUS_INTERNAL_ERROR, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, CUDNN_STATUS_NOT_SUPPORTED})
    for (size_t nth = 1; nth <= calls; ++nth) {
      fake_.reset();
      fake_.fail(nullptr, nth, status);
      const Result<> ran = run();
      EXPECT_EQ(fake_.live(), live) << fake_.call(nth - 1);
      if (ran) continue;  // another engine does it, or the call gives something back
      ++reported;
      EXPECT_FALSE(ran.error().message.empty());
      EXPECT_EQ(ran.error().code, status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED
                                      ? ErrorCode::out_of_memory
                                      : ErrorCode::library_call_failed);
    }
  EXPECT_GE(reported, 2 * calls - 6);
  device_ = nullptr;
  fake_.reset();
}

TEST_F(CudnnTest, CallsAreCaptured) {
  const Tensor w = small_weights(DType::f16, {8, 8, 1, 1});
  const Problem problem = convolution_problem(attrs_, image(DType::f16, {1, 8, 2, 2}), w);
  const Half one(1.0f), sum(8.0f);
  const auto bytes = [](const auto& value) { return std::as_bytes(std::span(&value, 1)); };
  const auto replayed = replay(*tactic_, problem, bytes(one));
  ASSERT_OK(replayed);
  EXPECT_TRUE(std::ranges::equal(replayed->first, bytes(one))) << "recording does not run";
  EXPECT_TRUE(std::ranges::equal(replayed->second, bytes(sum)));
}

TEST_F(CudnnTest, PlansMayAskForTheImpossible) {
  Launch launch;
  launch.library = "cudnn";
  launch.entry = "convolution";
  StepRecord record;
  record.launches = {&launch, 1};
  EXPECT_FAILS(device_->make_kernel(record), launch_refused);  // no arguments
  launch.args.resize(convolution::kNumArgs);
  const auto kernel = *device_->make_kernel(record);
  EXPECT_FAILS(kernel->prepare({}, 1), launch_refused);  // no spatial dimensions
}

}  // namespace
}  // namespace lathe::cuda
