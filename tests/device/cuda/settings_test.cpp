// SPDX-License-Identifier: Apache-2.0
// Settings that are honoured on GPUs.
#include <map>
#include <set>

#include "device/cuda/enqueue_fixture.h"

namespace lathe::cuda {
namespace {

class GpuSettingsTest : public EnqueueTest {
 protected:
  // The calls of one enqueueV3() that have such names, in order.
  std::vector<std::string> calls_of_run(std::initializer_list<const char*> names) {
    const size_t before = fake_cuda_calls();
    EXPECT_TRUE(enqueue()) << log_.text;
    std::vector<std::string> calls;
    for (size_t i = before; i < fake_cuda_calls(); ++i)
      for (const char* name : names)
        if (std::string(fake_cuda_call(i)) == name) calls.emplace_back(name);
    return calls;
  }
};

TEST_F(GpuSettingsTest, ConsumedEventsAreRecordedBehindTheReaders) {
  const auto calls = [this] { return calls_of_run({"cuLaunchKernelEx", "cuGraphLaunch", "cuEventRecord"}); };
  using Calls = std::vector<std::string>;
  CUevent event = nullptr;
  ASSERT_EQ((*driver())->cuEventCreate(&event, 0), CUDA_SUCCESS);
  ASSERT_TRUE(context_->setInputShape("x", nv::Dims2(4, kIn)));
  ASSERT_TRUE(context_->setInputConsumedEvent(reinterpret_cast<cudaEvent_t>(event))) << log_.text;
  EXPECT_EQ(context_->getInputConsumedEvent(), reinterpret_cast<cudaEvent_t>(event));
  fill(4, 1);
  // The product reads the input, the softmax what it made.
  const Calls first = calls();
  ASSERT_GE(first.size(), 4u);
  EXPECT_EQ(std::count(first.begin(), first.end(), "cuEventRecord"), 3);  // two are the library's own, at the end
  EXPECT_EQ(first.front(), "cuLaunchKernelEx");
  EXPECT_EQ(first[first.size() - 3], "cuLaunchKernelEx");
  EXPECT_EQ(first.back(), "cuEventRecord");
  expect_results(4);
  // Recorded once, then replayed: an event within the recording would be none of the application's.
  (void)calls();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(calls(), (Calls{"cuGraphLaunch", "cuEventRecord", "cuEventRecord", "cuEventRecord"}));
  ASSERT_TRUE(context_->setInputConsumedEvent(nullptr));
  EXPECT_EQ(calls(), (Calls{"cuGraphLaunch", "cuEventRecord", "cuEventRecord"}));
  // A failure to record is a failure to run.
  ASSERT_TRUE(context_->setInputConsumedEvent(reinterpret_cast<cudaEvent_t>(event)));
  fake_cuda_fail("cuEventRecord", 1, CUDA_ERROR_INVALID_HANDLE, 0);
  EXPECT_FALSE(enqueue());
  EXPECT_NE(log_.text.find("event"), std::string::npos) << log_.text;
  (*driver())->cuEventDestroy(event);
}

TEST_F(GpuSettingsTest, DebugSyncWaitsAfterEachStep) {
  for (int i = 0; i < 3; ++i) run(4, static_cast<float>(i));
  context_->setDebugSync(true);
  const std::vector<std::string> calls = calls_of_run({"cuLaunchKernelEx", "cuGraphLaunch", "cuStreamSynchronize"});
  ASSERT_EQ(calls.size(), 2 * static_cast<size_t>(engine_->getNbLayers()));
  for (size_t i = 0; i < calls.size(); ++i) EXPECT_EQ(calls[i], i % 2 ? "cuStreamSynchronize" : "cuLaunchKernelEx");
  fake_cuda_fail("cuStreamSynchronize", 1, CUDA_ERROR_LAUNCH_FAILED, 0);
  EXPECT_FALSE(enqueue());
  EXPECT_NE(log_.text.find("step '"), std::string::npos) << log_.text;
}

struct Seen final : nv::IDebugListener {
  bool processDebugTensor(const void* data, nv::TensorLocation location, nv::DataType type, const nv::Dims& dims,
                          const char* name, cudaStream_t stream) override {
    EXPECT_EQ(location, nv::TensorLocation::kHOST);
    EXPECT_EQ(type, nv::DataType::kFLOAT);
    streams.insert(stream);
    const auto* values = static_cast<const float*>(data);
    tensors[name].assign(values, values + dims.d[0] * dims.d[1]);
    return true;
  }
  std::map<std::string, std::vector<float>> tensors;
  std::set<cudaStream_t> streams;
};

TEST_F(GpuSettingsTest, ResultsOfStepsAreShownOnTheHost) {
  for (int i = 0; i < 3; ++i) run(4, static_cast<float>(i));
  Seen seen;
  ASSERT_TRUE(context_->setDebugListener(&seen));
  ASSERT_TRUE(context_->setUnfusedTensorsDebugState(true));
  run(4, 5);
  EXPECT_EQ(seen.tensors.size(), 2u);  // the product and the softmax of it
  const auto* y = reinterpret_cast<const float*>(y_.data());
  EXPECT_EQ(seen.tensors["y"], std::vector<float>(y, y + 4 * kOut));
  EXPECT_EQ(seen.streams, std::set{reinterpret_cast<cudaStream_t>(stream_)});
  seen.tensors.clear();
  ASSERT_TRUE(context_->setUnfusedTensorsDebugState(false));
  run(4, 6);
  EXPECT_TRUE(seen.tensors.empty());
}

}  // namespace
}  // namespace lathe::cuda
