// SPDX-License-Identifier: Apache-2.0
// Work recorded as graphs, and work on the application's streams.
#include "device/cuda/driver.h"
#include "device/cuda/launch_case.h"
#include "fake_cuda/fake_device.h"

namespace lathe::cuda {
namespace {

class CaptureTest : public FakeDeviceTest {
 protected:
  void SetUp() override {
    FakeDeviceTest::SetUp();
    device_ = *open_device(0);
    queue_ = *device_->make_queue();
    kernel_ = *device_->make_kernel(launch_.record());
  }
  void TearDown() override {
    kernel_.reset();
    queue_.reset();
    device_.reset();
    FakeDeviceTest::TearDown();
  }
  Result<> work(Queue& on) { return kernel_->enqueue(launch_.operands(), nullptr, on); }
  Result<std::unique_ptr<CapturedGraph>> capture() {
    return device_->capture([this](Queue& on) { return work(on); });
  }
  Result<> replay(CapturedGraph& graph) {
    LATHE_ASSIGN(const QueueTurn turn, QueueTurn::take(*queue_));
    return graph.replay(*queue_);
  }

  LaunchCase launch_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Kernel> kernel_;
};

TEST_F(CaptureTest, CapturesWithoutRunning) {
  const auto graph = capture();
  ASSERT_OK(graph);
  EXPECT_EQ(fake_cuda_launches(), 0u);
  EXPECT_EQ(fake_cuda_live("graph"), 0u);
  for (int i = 0; i < 3; ++i) ASSERT_OK(replay(**graph));
  EXPECT_EQ(fake_cuda_launches(), 3u);
  EXPECT_EQ(fake_cuda_launched(2)->values[3], 21u);
}

TEST_F(CaptureTest, UpdatesTakeUpNewNumbers) {
  const auto graph = *capture();
  launch_.symbols = {12};
  ASSERT_OK(graph->update([this](Queue& on) { return work(on); }));
  ASSERT_OK(replay(*graph));
  EXPECT_EQ(fake_cuda_launched(0)->grid[0], 3u);
  EXPECT_EQ(fake_cuda_launched(0)->values[3], 36u);
  EXPECT_EQ(fake_cuda_live("executable"), 1u);
}

TEST_F(CaptureTest, OtherWorkIsCapturedAnew) {
  const auto graph = *capture();
  ASSERT_OK(graph->update([this](Queue& on) -> Result<> {
    LATHE_TRY(work(on));
    return work(on);
  }));
  ASSERT_OK(replay(*graph));
  EXPECT_EQ(fake_cuda_launches(), 2u);
  EXPECT_EQ(fake_cuda_live("executable"), 1u);
}

TEST_F(CaptureTest, FailedWorkLeavesTheStreamUsable) {
  const auto failing = [](Queue&) -> Result<> { return fail(ErrorCode::execution_failed, "no"); };
  EXPECT_FAILS(device_->capture(failing), execution_failed);
  const auto graph = *capture();
  EXPECT_FAILS(graph->update(failing), execution_failed);
  ASSERT_OK(replay(*graph));  // what was recorded before
  ASSERT_OK(graph->update([this](Queue& on) { return work(on); }));
}

TEST_F(CaptureTest, CallsThatCannotBeRecordedSpoilIt) {
  const auto waiting = [this](Queue& on) { return device_->wait(on); };
  EXPECT_FAILS(device_->capture(waiting), stream_captured);
  ASSERT_OK(capture());
}

TEST_F(CaptureTest, OtherWorkOfTheThreadMayGoOnWhileRecording) {
  const auto graph = device_->capture([this](Queue& on) -> Result<> {
    LATHE_ASSIGN(const DeviceMemory memory, device_->allocate(100));
    LATHE_ASSIGN(const auto other, device_->make_queue());
    LATHE_TRY(device_->wait(*other));
    LaunchCase more;
    more.text += "kernel more 0\n";
    LATHE_ASSIGN(const auto kernel, device_->make_kernel(more.record()));
    return work(on);
  });
  ASSERT_OK(graph);
  ASSERT_OK(replay(**graph));
  EXPECT_EQ(fake_cuda_launches(), 1u);
}

TEST_F(CaptureTest, KnowsThatTheApplicationCaptures) {
  const Driver& driver = **cuda::driver();
  ASSERT_OK(queue_->begin());  // the application's own use of the device
  CUstream stream = nullptr;
  ASSERT_EQ(driver.cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  {
    const auto queue = *device_->make_stream_queue(stream);
    EXPECT_FALSE(queue->is_captured());
    ASSERT_EQ(driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    EXPECT_TRUE(queue->is_captured());
    ASSERT_OK(work(*queue));
    EXPECT_TRUE(device_->allocate(100).has_value());  // does not spoil the capture
    CUgraph graph = nullptr;
    ASSERT_EQ(driver.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    EXPECT_EQ(fake_cuda_launches(), 0u);
    CUgraphExec executable = nullptr;
    ASSERT_EQ(driver.cuGraphInstantiate(&executable, graph, 0), CUDA_SUCCESS);
    ASSERT_EQ(driver.cuGraphLaunch(executable, stream), CUDA_SUCCESS);
    EXPECT_EQ(fake_cuda_launches(), 1u);
    driver.cuGraphExecDestroy(executable);
    driver.cuGraphDestroy(graph);
  }
  driver.cuStreamDestroy(stream);
  queue_->end();
}

TEST_F(CaptureTest, TheDefaultStreamIsAStream) {
  const auto queue = *device_->make_stream_queue(nullptr);
  const QueueTurn turn = *QueueTurn::take(*queue);
  ASSERT_OK(work(*queue));
  ASSERT_OK(device_->wait(*queue));
  EXPECT_FALSE(queue->is_captured());
  EXPECT_EQ(fake_cuda_launches(), 1u);
}

}  // namespace
}  // namespace lathe::cuda
