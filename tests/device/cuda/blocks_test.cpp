// SPDX-License-Identifier: Apache-2.0
// Control flow on the stand-in GPU: what is captured, what waits, and what happens when the driver fails.
#include "fake_cuda/fake_device.h"
#include "runtime/block_plans.h"

namespace lathe::cuda {
namespace {

using Id = plan::TensorId;
constexpr Id kNone = plan::kNoTensor;
constexpr int64_t kElements = 4;

constexpr const char* kModule = "FAKE_CUBIN sm_90\nkernel twice 2\nkernel add_round 3\nkernel less 3\n";

template <class T>
T& at(void* parameter) {
  T* address = nullptr;
  std::memcpy(&address, parameter, sizeof(address));
  return *address;
}

void run_twice(void** parameters, const unsigned*, void*) {
  for (int64_t i = 0; i < kElements; ++i) (&at<float>(parameters[1]))[i] = 2 * (&at<float>(parameters[0]))[i];
}
void run_add_round(void** parameters, const unsigned*, void*) {
  const auto round = static_cast<float>(at<int64_t>(parameters[1]));
  for (int64_t i = 0; i < kElements; ++i) (&at<float>(parameters[2]))[i] = (&at<float>(parameters[0]))[i] + round;
}
void run_less(void** parameters, const unsigned*, void*) {
  at<bool>(parameters[2]) = at<float>(parameters[0]) < at<float>(parameters[1]);
}

struct DevicePlan : PlanMaker {
  std::vector<std::byte> code = bytes_of(kModule);
  DevicePlan() { plan.codes = {{{{CodeForm::binary, "cuda-sm_90", code}}}}; }

  void launch(const char* kernel, std::vector<Id> inputs, std::vector<Id> outputs) {
    Launch launch;
    launch.entry = kernel;
    for (uint32_t i = 0; i < inputs.size(); ++i) launch.args.push_back({LaunchArg::input, i, {}});
    for (uint32_t i = 0; i < outputs.size(); ++i) launch.args.push_back({LaunchArg::output, i, {}});
    step(plan::DeviceLaunches{kernel, "", {launch}, 0}, kernel, std::move(inputs), std::move(outputs));
  }
};

class CudaBlocksTest : public FakeDeviceTest {
 protected:
  void SetUp() override {
    FakeDeviceTest::SetUp();
    fake_cuda_set_kernel("twice", run_twice, nullptr);
    fake_cuda_set_kernel("add_round", run_add_round, nullptr);
    fake_cuda_set_kernel("less", run_less, nullptr);
    device_ = *open_device(0);
    x_ = *device_->allocate(1024);
    y_ = *device_->allocate(1024);
  }
  void TearDown() override {
    context_.reset();
    x_ = DeviceMemory();
    y_ = DeviceMemory();
    device_.reset();
    FakeDeviceTest::TearDown();
  }

  void start(PlanMaker& maker) {
    context_ = maker.context(device_);
    ASSERT_TRUE(context_);
    ASSERT_OK(context_->set_address(0, x_.data()));
    ASSERT_OK(context_->set_address(1, y_.data()));
  }
  // The stand-in's memory is the host's.
  float* x() { return reinterpret_cast<float*>(x_.data()); }
  float* y() { return reinterpret_cast<float*>(y_.data()); }
  Result<> run(float first) {
    for (int64_t i = 0; i < kElements; ++i) x()[i] = first + static_cast<float>(i);
    std::memset(y_.data(), 0, y_.size());
    return context_->run();
  }
  void expect_scaled(float first, float factor) {
    for (int64_t i = 0; i < kElements; ++i) ASSERT_EQ(y()[i], factor * (first + static_cast<float>(i))) << i;
  }
  static size_t calls(std::string_view name) {
    size_t count = 0;
    for (size_t i = 0; i < fake_cuda_calls(); ++i) count += fake_cuda_call(i) == name;
    return count;
  }

  std::shared_ptr<Device> device_;
  DeviceMemory x_, y_;
  std::unique_ptr<Context> context_;
};

// y = 2^rounds x.
struct Doubling : DevicePlan {
  explicit Doubling(int64_t rounds, bool in_place = false) {
    const Id x = input("x", DType::f32, {kElements}), y = output("y", DType::f32, {kElements});
    const Id param = buffer("param", DType::f32, {kElements}), other = buffer("result", DType::f32, {kElements});
    const Id result = in_place ? y : other;
    const size_t at = loop(1, {number(rounds), kNone, x}, {y});
    begin_body(at, {kNone, kNone, param});
    launch("twice", {param}, {result});
    end_body(at, {kNone, result});
  }
};

TEST_F(CudaBlocksTest, LoopsOfKnownRoundsAreCaptured) {
  for (const int64_t rounds : {0, 1, 4, 5})
    for (const bool in_place : {false, true}) {
      Doubling maker(rounds, in_place);
      start(maker);
      for (int i = 0; i < 5; ++i) {
        const size_t launches = fake_cuda_launches(), graphs = calls("cuGraphLaunch");
        ASSERT_OK(run(static_cast<float>(i)));
        expect_scaled(static_cast<float>(i), static_cast<float>(1 << rounds));
        EXPECT_EQ(fake_cuda_launches() - launches, static_cast<size_t>(rounds));
        EXPECT_EQ(calls("cuGraphLaunch") - graphs, i == 0 ? 0u : 1u);
      }
    }
}

TEST_F(CudaBlocksTest, ValuesTakeEachOthersPlaceWithoutCopies) {
  Doubling maker(6);
  start(maker);
  const size_t before = calls("cuMemcpyAsync");
  ASSERT_OK(run(1));
  EXPECT_EQ(calls("cuMemcpyAsync") - before, 2u);  // into the loop and out of it
}

TEST_F(CudaBlocksTest, LongLoopsAreNotCaptured) {
  Doubling maker(5000);
  start(maker);
  for (int i = 0; i < 3; ++i) ASSERT_OK(run(0));
  EXPECT_EQ(calls("cuGraphLaunch"), 0u);
  EXPECT_EQ(fake_cuda_launches(), 15000u);
}

// Adds the round's number, from the last row up. In columns, rows are those of the transposed matrix.
struct Rows : DevicePlan {
  explicit Rows(uint32_t axis = 0) {
    const Id x = input("x", DType::f32, {kElements, kElements});
    plan.tensors[x].dims[axis] = dimension("rows", 0, axis);
    const Id y = output("y", DType::f32, plan.tensors[x].dims);
    const Id round = buffer("round", DType::i64, {}), slice = buffer("slice", DType::f32, {kElements});
    const Id result = buffer("result", DType::f32, {kElements});
    const size_t at = loop(0, {kNone, kNone, x}, {y});
    get(at).scanned = {{axis, true}};
    get(at).stacked = {{axis, true}};
    begin_body(at, {round, kNone, slice});
    launch("add_round", {slice, round}, {result});
    end_body(at, {kNone, result});
  }
};

TEST_F(CudaBlocksTest, ShapesChangeBetweenReplays) {
  Rows maker;
  start(maker);
  for (const int64_t rows : {3, 5, 0, 3}) {
    ASSERT_OK(context_->set_input_dims(0, Dims{rows, kElements}));
    for (int i = 0; i < 3; ++i) {
      const size_t graphs = calls("cuGraphLaunch");
      for (int64_t k = 0; k < rows * kElements; ++k) x()[k] = static_cast<float>(k + i);
      ASSERT_OK(context_->run());
      for (int64_t k = 0; k < rows * kElements; ++k)
        ASSERT_EQ(y()[k], static_cast<float>(k + i + rows - 1 - k / kElements)) << k;
      EXPECT_EQ(calls("cuGraphLaunch") - graphs, i == 0 ? 0u : 1u);
    }
  }
}

TEST_F(CudaBlocksTest, SlicesAreCopiedWhereTheyAreNotDense) {
  constexpr int64_t kRows = 3;
  for (const uint32_t axis : {0, 1}) {
    Rows maker(axis);
    start(maker);
    Dims dims = {kElements, kElements};
    dims[axis] = kRows;
    ASSERT_OK(context_->set_input_dims(0, dims));
    for (int64_t k = 0; k < kRows * kElements; ++k) x()[k] = static_cast<float>(k);
    const size_t copies = calls("cuMemcpyAsync"), in_rows = calls("cuMemcpy2DAsync_v2");
    ASSERT_OK(context_->run());
    for (int64_t k = 0; k < kRows * kElements; ++k) {
      const int64_t row = axis == 0 ? k / kElements : k % kRows;
      ASSERT_EQ(y()[k], static_cast<float>(k + kRows - 1 - row)) << k;
    }
    EXPECT_EQ(calls("cuMemcpyAsync") - copies, 3u) << "of the rounds' numbers";
    EXPECT_EQ(calls("cuMemcpy2DAsync_v2") - in_rows, axis == 0 ? 0u : 6u);
  }
}

// Doubles x while its first element is less than that of the limit.
struct Searching : DevicePlan {
  Searching() {
    const Id x = input("x", DType::f32, {kElements}), y = output("y", DType::f32, {kElements});
    const Id limit = floats({1}, {1000}), yes = truth(true);
    const Id param = buffer("param", DType::f32, {kElements}), result = buffer("result", DType::f32, {kElements});
    const Id condition = buffer("condition", DType::boolean, {});
    const size_t at = loop(1, {kNone, yes, x}, {y});
    begin_body(at, {kNone, kNone, param});
    launch("twice", {param}, {result});
    launch("less", {result, limit}, {condition});
    end_body(at, {condition, result});
  }
};

TEST_F(CudaBlocksTest, ConditionsOnTheDeviceEndLoops) {
  Searching maker;
  start(maker);
  for (int i = 0; i < 3; ++i) {
    const size_t downloads = calls("cuMemcpyDtoHAsync_v2");
    ASSERT_OK(run(1));
    expect_scaled(1, 1024);
    EXPECT_EQ(calls("cuMemcpyDtoHAsync_v2") - downloads, 10u);
  }
  EXPECT_EQ(calls("cuGraphLaunch"), 0u);
}

// Whatever call fails, the run fails or is right, and the next one is right. FakeDeviceTest looks for leaks.
TEST_F(CudaBlocksTest, FailuresLeaveTheContextUsable) {
  Searching searching;
  Doubling doubling(5);
  for (PlanMaker* maker : {static_cast<PlanMaker*>(&searching), static_cast<PlanMaker*>(&doubling)}) {
    start(*maker);
    const float factor = maker == &searching ? 1024 : 32;
    size_t failed = 0;
    for (size_t nth = 1;; ++nth) {
      const size_t failures = fake_cuda_failures();
      fake_cuda_fail(nullptr, nth, CUDA_ERROR_INVALID_VALUE, 0);
      const Result<> ran = run(1);
      const bool happened = fake_cuda_failures() != failures;
      if (ran) expect_scaled(1, factor);
      failed += !ran;
      while (fake_cuda_failures() == failures) (void)run(1);  // a later one meets it
      ASSERT_OK(run(1));
      expect_scaled(1, factor);
      if (HasFatalFailure() || !happened) break;
    }
    EXPECT_GT(failed, 2u);
  }
}

TEST_F(CudaBlocksTest, InputsAreReadWhenTheLoopHasEnded) {
  Searching maker;
  start(maker);
  size_t told_at = 0, told = 0;
  context_->hooks.inputs_read = [&](Queue&) {
    told_at = fake_cuda_launches();
    ++told;
    return Result<>();
  };
  ASSERT_OK(run(1));
  EXPECT_EQ(told, 1u);
  EXPECT_EQ(told_at, 20u);
}

}  // namespace
}  // namespace lathe::cuda
