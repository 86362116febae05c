// SPDX-License-Identifier: Apache-2.0
// Results whose sizes the device computes, on the stand-in GPU: they are right, and the host waits once for each count.
#include <algorithm>
#include <cmath>

#include "api/devices.h"
#include "cuda/fake_device.h"
#include "ir/graph.h"
#include "plan/writer.h"
#include "runtime/context.h"

namespace lathe::cuda {
namespace {

class CountedTest : public FakeDeviceTest {
 protected:
  void SetUp() override {
    FakeDeviceTest::SetUp();
    setenv("LATHE_NVRTC", FAKE_NVRTC, 1);
    device_ = *open_device(0);
    queue_ = *device_->make_queue();
  }
  void TearDown() override {
    outputs_.clear();
    context_.reset();
    queue_.reset();
    device_.reset();
    FakeDeviceTest::TearDown();
  }

  Result<> load(std::string_view text) {
    LATHE_ASSIGN(ir::Graph graph, ir::parse_graph(text));
    BuildOptions options;
    api::TargetBuild target;
    LATHE_TRY(target.prepare("cuda", 1, options));
    options.tuner.budget_seconds = 0;
    LATHE_ASSIGN(const std::unique_ptr<BuiltPlan> built, build_plan(std::move(graph), options));
    for (const plan::Step& step : built->plan.steps) EXPECT_NE(step.kernel, "eval") << step.name;
    bytes_ = std::make_shared<std::vector<std::byte>>();
    LATHE_ASSIGN(*bytes_, plan::write_plan(built->plan));
    LATHE_ASSIGN(auto engine, Engine::load(*bytes_, bytes_, {device_, {}}));
    LATHE_ASSIGN(context_, lathe::Context::create(std::move(engine)));
    return {};
  }

  // Inputs and outputs lie in the device's memory, so that nothing but counts is copied from it while running.
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) {
    std::vector<DeviceMemory> memory;
    std::vector<Dims> dims(inputs.size() + 4);
    for (size_t i = 0; i < inputs.size(); ++i) {
      LATHE_ASSIGN(memory.emplace_back(), device_->allocate(std::max<size_t>(inputs[i].bytes(), 16)));
      LATHE_TRY(device_->upload(memory.back().data(), inputs[i].data(), inputs[i].bytes(), *queue_));
      LATHE_TRY(context_->set_input_dims(i, inputs[i].dims()));
      LATHE_TRY(context_->set_address(i, memory.back().data()));
    }
    const auto& bindings = context_->engine().plan().bindings;
    outputs_.resize(bindings.size());
    for (size_t i = inputs.size(); i < bindings.size(); ++i)
      LATHE_TRY(context_->set_output_allocator(i, [&, i](size_t bytes, const Dims& wanted) -> void* {
        outputs_[i] = *device_->allocate(std::max<size_t>(bytes, 16));
        dims[i] = wanted;
        return outputs_[i].data();
      }));
    const size_t before = fake_cuda_calls();
    LATHE_TRY(context_->run());
    downloads_ = 0;
    for (size_t i = before; i < fake_cuda_calls(); ++i)
      downloads_ += std::string_view(fake_cuda_call(i)) == "cuMemcpyDtoHAsync_v2";
    std::vector<Tensor> results;
    for (size_t i = inputs.size(); i < bindings.size(); ++i) {
      const DType dtype = context_->engine().plan().tensors[bindings[i].tensor].dtype;
      LATHE_ASSIGN(Tensor result, Tensor::allocate(dtype, dims[i]));
      LATHE_TRY(device_->download(result.mutable_data(), outputs_[i].data(), result.bytes(), *queue_));
      results.push_back(std::move(result));
    }
    return results;
  }

  static std::vector<int64_t> values(const Tensor& tensor) {
    std::vector<int64_t> values;
    for (int64_t i = 0; i < tensor.volume(); ++i) values.push_back(static_cast<int64_t>(tensor.at_double(i)));
    return values;
  }

  std::shared_ptr<Device> device_;
  std::unique_ptr<Queue> queue_;
  std::shared_ptr<std::vector<std::byte>> bytes_;
  std::unique_ptr<lathe::Context> context_;
  std::vector<DeviceMemory> outputs_;
  size_t downloads_ = 0;
};

TEST_F(CountedTest, PositionsOfWhatIsNotZero) {
  ASSERT_OK(load(R"(graph "g" {
  input %x: f32[2, 3]
  %y = nonzero{}(%x)
  %z = activation{op=relu}(%x)
  output %y
  output %z
})"));
  const auto results = run({Tensor::of<float>({2, 3}, {0, 5, 0, -1, 0, NAN})});
  ASSERT_OK(results);
  EXPECT_EQ((*results)[0].dims(), (Dims{2, 3}));
  EXPECT_EQ(values((*results)[0]), (std::vector<int64_t>{0, 1, 1, 1, 0, 2}));
  EXPECT_EQ(downloads_, 1u);
  const auto none = run({Tensor::from<float>({2, 3}, std::vector<float>(6, 0))});
  ASSERT_OK(none);
  EXPECT_EQ((*none)[0].dims(), (Dims{2, 0}));
}

TEST_F(CountedTest, ManyPositionsKeepTheirOrder) {
  ASSERT_OK(load(R"(graph "g" {
  symbol n in [1, 2000000]
  input %x: i32[n]
  %y = nonzero{}(%x)
  output %y
})"));
  for (const int64_t n : {1, 4096, 9001, 1100000}) {  // the last has more parts than a block threads
    std::vector<int32_t> flags(static_cast<size_t>(n));
    std::vector<int64_t> expected;
    for (int64_t i = 0; i < n; ++i) {
      flags[static_cast<size_t>(i)] = i * 7919 % 3 == 0 ? -1 : 0;
      if (i * 7919 % 3 == 0) expected.push_back(i);
    }
    const auto results = run({Tensor::from<int32_t>({n}, flags)});
    ASSERT_OK(results);
    EXPECT_EQ(values((*results)[0]), expected);
    EXPECT_EQ(downloads_, 1u);
  }
}

TEST_F(CountedTest, SlicesThatAConditionChooses) {
  ASSERT_OK(load(R"(graph "g" {
  input %x: f32[2, 3]
  input %c: bool[3]
  %y = compress{axis=1, flat=false}(%x, %c)
  %z = activation{op=relu}(%y)
  output %z
})"));
  const Tensor x = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto results = run({x, Tensor::of<bool>({3}, {true, false, true})});
  ASSERT_OK(results);
  EXPECT_EQ((*results)[0].dims(), (Dims{2, 2}));
  EXPECT_EQ(values((*results)[0]), (std::vector<int64_t>{1, 3, 4, 6}));
  EXPECT_EQ(downloads_, 1u);
}

TEST_F(CountedTest, ConditionsMayNotChooseWhatDoesNotExist) {
  ASSERT_OK(load(R"(graph "g" {
  input %x: f32[2, 3]
  input %c: bool[4]
  %y = compress{axis=0, flat=false}(%x, %c)
  output %y
})"));
  const Tensor x = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_FAILS(run({x, Tensor::of<bool>({4}, {true, false, true, false})}), execution_failed);
  const auto results = run({x, Tensor::of<bool>({4}, {false, true, false, false})});
  ASSERT_OK(results);
  EXPECT_EQ(values((*results)[0]), (std::vector<int64_t>{4, 5, 6}));
}

}  // namespace
}  // namespace lathe::cuda
