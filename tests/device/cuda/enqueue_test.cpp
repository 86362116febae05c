// SPDX-License-Identifier: Apache-2.0
// Running an engine on the stand-in GPU through the public interface: what enqueueV3 may not do, and graphs.
#include <algorithm>
#include <new>

#include "device/cuda/enqueue_fixture.h"

namespace {

thread_local int64_t* allocations = nullptr;  // counted while set

[[gnu::noinline]] void* counted(std::size_t size) {
  if (allocations && !fake_cuda_inside()) ++*allocations;
  return std::malloc(size ? size : 1);
}
// Inlined, g++ takes it for a mismatch with operator new.
[[gnu::noinline]] void release(void* memory) { std::free(memory); }

}  // namespace

void* operator new(std::size_t size) {
  if (void* memory = counted(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return counted(size); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { release(memory); }

namespace lathe::cuda {
namespace {

TEST_F(EnqueueTest, NeitherAllocatesNorWaits) {
  for (int i = 0; i < 3; ++i) run(4, static_cast<float>(i));
  fill(4, 77);
  const size_t before = fake_cuda_calls();
  int64_t count = 0;
  allocations = &count;
  bool ran = true;
  for (int i = 0; i < 5; ++i) ran &= enqueue();
  allocations = nullptr;
  EXPECT_TRUE(ran) << log_.text;
  EXPECT_EQ(count, 0);
  size_t graphs = 0;
  for (size_t i = before; i < fake_cuda_calls(); ++i) {
    const std::string call = fake_cuda_call(i);
    graphs += call == "cuGraphLaunch";
    for (const char* forbidden :
         {"Alloc", "Free", "Synchronize", "Memcpy", "Capture_v2", "Instantiate", "Create", "Wait"})
      EXPECT_EQ(call.find(forbidden), std::string::npos) << call;
  }
  EXPECT_EQ(graphs, 5u);  // the whole engine is one graph
  expect_results(4);
}

// From the first run on, whatever the shapes: memory came with the context.
TEST_F(EnqueueTest, TakesNoMemoryForNewShapes) {
  for (const int64_t rows : {1, 16, 4, 7, 16}) {
    fill(rows, static_cast<float>(rows));
    ASSERT_TRUE(context_->setInputShape("x", nv::Dims2(rows, kIn)));
    const size_t before = fake_cuda_calls();
    ASSERT_TRUE(enqueue()) << log_.text;
    for (size_t i = before; i < fake_cuda_calls(); ++i) {
      const std::string call = fake_cuda_call(i);
      for (const char* forbidden : {"MemAlloc", "MemFree"})
        EXPECT_EQ(call.find(forbidden), std::string::npos) << call << " for " << rows << " rows";
    }
    expect_results(rows);
  }
}

// Applications destroy their streams when they like: what is asked of the driver afterwards names them no more.
TEST_F(EnqueueTest, TheStreamMayGoBeforeTheContext) {
  for (int i = 0; i < 3; ++i) run(4, static_cast<float>(i));
  ASSERT_EQ((*driver())->cuStreamDestroy(stream_), CUDA_SUCCESS);
  stream_ = nullptr;
  const size_t before = fake_cuda_unknown_streams();
  context_.reset();
  engine_.reset();
  EXPECT_EQ(fake_cuda_unknown_streams(), before);
}

// Before it is recorded, work is launched step by step, and allocates no more than that.
TEST_F(EnqueueTest, LaunchesAllocateNothing) {
  run(4, 0);
  ASSERT_EQ((*driver())->cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  int64_t count = 0;
  allocations = &count;
  const bool ran = enqueue();
  allocations = nullptr;
  CUgraph graph = nullptr;
  ASSERT_EQ((*driver())->cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
  (*driver())->cuGraphDestroy(graph);
  EXPECT_TRUE(ran);
  EXPECT_EQ(count, 0);
}

// What the last run uses is waited for: by the stream that the next run is on, by the host where memory goes.
class OrderTest : public EnqueueTest {
 protected:
  void SetUp() override {
    EnqueueTest::SetUp();
    ASSERT_EQ((*driver())->cuStreamCreate(&other_, 0), CUDA_SUCCESS);
    run(4, 0);
    before_ = fake_cuda_calls();
  }
  void TearDown() override {
    context_.reset();
    if (other_) (*driver())->cuStreamDestroy(other_);
    EnqueueTest::TearDown();
  }
  bool enqueue_on_other() { return context_->enqueueV3(reinterpret_cast<cudaStream_t>(other_)); }
  // The calls since the last time, up to the first launch.
  std::vector<std::string> calls_before_work() {
    std::vector<std::string> calls;
    for (size_t i = before_; i < fake_cuda_calls(); ++i) {
      calls.emplace_back(fake_cuda_call(i));
      if (calls.back() == "cuLaunchKernelEx" || calls.back() == "cuGraphLaunch") break;
    }
    before_ = fake_cuda_calls();
    return calls;
  }
  static int64_t count(const std::vector<std::string>& calls, const char* name) {
    return std::count(calls.begin(), calls.end(), name);
  }

  CUstream other_ = nullptr;
  size_t before_ = 0;
};

TEST_F(OrderTest, RunsOnAnotherStreamFollow) {
  ASSERT_TRUE(enqueue_on_other()) << log_.text;
  const std::vector<std::string> first = calls_before_work();
  EXPECT_GE(count(first, "cuStreamWaitEvent"), 1);
  EXPECT_EQ(count(first, "cuStreamSynchronize") + count(first, "cuEventSynchronize"), 0) << "the host need not wait";
  ASSERT_TRUE(enqueue_on_other()) << log_.text;
  EXPECT_EQ(count(calls_before_work(), "cuStreamWaitEvent"), 0);
}

TEST_F(OrderTest, RunsOfTheHostFollow) {
  void* bindings[] = {x_.data(), y_.data()};
  ASSERT_TRUE(context_->executeV2(bindings)) << log_.text;
  EXPECT_EQ(count(calls_before_work(), "cuStreamWaitEvent"), 1);
  ASSERT_TRUE(enqueue()) << log_.text;  // nothing is at work any more
  EXPECT_EQ(count(calls_before_work(), "cuStreamWaitEvent"), 0);
}

// A capture on another stream takes up no event of work outside it.
TEST_F(OrderTest, CapturesFollow) {
  ASSERT_EQ((*driver())->cuStreamBeginCapture(other_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  ASSERT_TRUE(enqueue_on_other()) << log_.text;
  CUgraph graph = nullptr;
  ASSERT_EQ((*driver())->cuStreamEndCapture(other_, &graph), CUDA_SUCCESS);
  EXPECT_EQ(count(calls_before_work(), "cuEventSynchronize"), 1);
  (*driver())->cuGraphDestroy(graph);
}

TEST_F(OrderTest, MemoryOutlivesTheWork) {
  context_.reset();
  EXPECT_GE(count(calls_before_work(), "cuEventSynchronize"), 1);
}

TEST_F(OrderTest, GivenMemoryIsFreeOnceItIsReplaced) {
  context_.reset(engine_->createExecutionContext(nv::ExecutionContextAllocationStrategy::kUSER_MANAGED));
  const auto bytes = static_cast<size_t>(engine_->getDeviceMemorySizeV2());
  const DeviceMemory first = *device_->allocate(bytes), second = *device_->allocate(bytes);
  context_->setTensorAddress("x", x_.data());
  context_->setTensorAddress("y", y_.data());
  context_->setDeviceMemoryV2(first.data(), static_cast<int64_t>(bytes));
  run(4, 1);
  before_ = fake_cuda_calls();
  context_->setDeviceMemoryV2(first.data(), static_cast<int64_t>(bytes));
  EXPECT_EQ(count(calls_before_work(), "cuEventSynchronize"), 0);
  context_->setDeviceMemoryV2(second.data(), static_cast<int64_t>(bytes));
  EXPECT_EQ(count(calls_before_work(), "cuEventSynchronize"), 1);
  run(4, 2);
}

// Half a run counts too.
TEST_F(OrderTest, FailedRunsAreWaitedFor) {
  ASSERT_TRUE(context_->setInputShape("x", nv::Dims2(7, kIn)));
  fake_cuda_fail("cuLaunchKernelEx", 2, CUDA_ERROR_INVALID_VALUE, 0);
  EXPECT_FALSE(enqueue());
  int64_t marks = 0;
  for (size_t i = before_; i < fake_cuda_calls(); ++i) marks += std::string(fake_cuda_call(i)) == "cuEventRecord";
  EXPECT_EQ(marks, 2);  // of the context's last run, and of what the stream was given
}

TEST_F(EnqueueTest, GraphsFollowTheShapes) {
  for (const int64_t rows : {4, 4, 4, 7, 7, 7, 1, 4, 4, 16, 16}) run(rows, static_cast<float>(rows));
  EXPECT_EQ(fake_cuda_live("executable"), 1u);
  // Other addresses too.
  const DeviceMemory other = *device_->allocate(y_.size());
  context_->setTensorAddress("y", other.data());
  fill(16, 5);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(enqueue()) << log_.text;
  std::memcpy(y_.data(), other.data(), y_.size());
  expect_results(16);
}

TEST_F(EnqueueTest, IsRightWithinAnOuterCapture) {
  for (int i = 0; i < 3; ++i) run(4, static_cast<float>(i));
  ASSERT_EQ((*driver())->cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  ASSERT_TRUE(enqueue()) << log_.text;
  CUgraph graph = nullptr;
  ASSERT_EQ((*driver())->cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
  CUgraphExec executable = nullptr;
  ASSERT_EQ((*driver())->cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
  for (const float seed : {20.0f, 30.0f}) {
    fill(4, seed);
    ASSERT_EQ((*driver())->cuGraphLaunch(executable, stream_), CUDA_SUCCESS);
    expect_results(4);
  }
  (*driver())->cuGraphExecDestroy(executable);
  (*driver())->cuGraphDestroy(graph);
  for (int i = 0; i < 3; ++i) run(4, static_cast<float>(i));
}

}  // namespace
}  // namespace lathe::cuda
