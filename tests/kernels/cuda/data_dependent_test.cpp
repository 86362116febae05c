// SPDX-License-Identifier: Apache-2.0
// Results whose sizes the device computes, on the stand-in GPU: they are right, and the host waits once for each count.
#include <algorithm>
#include <cmath>

#include "fake_cuda/fake_device.h"
#include "ir/graph.h"
#include "ir/interpret.h"
#include "lowering/build.h"
#include "plan/writer.h"
#include "runtime/context.h"

namespace lathe::cuda {
namespace {

class DataDependentKernels : public FakeDeviceTest {
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
    LATHE_ASSIGN(const BackendBuild backend, prepare_build("cuda", {}));
    use_backend(backend, options);
    options.tuner.budget_seconds = 0;
    LATHE_ASSIGN(const std::unique_ptr<BuiltPlan> built, build_plan(std::move(graph), options));
    for (const plan::Step& step : built->plan.steps) EXPECT_NE(step.kernel(), "eval") << step.name;
    bytes_ = std::make_shared<std::vector<std::byte>>();
    LATHE_ASSIGN(*bytes_, plan::write_plan(built->plan));
    LATHE_ASSIGN(auto engine, Engine::load(*bytes_, bytes_, {device_, {}}));
    LATHE_ASSIGN(context_, lathe::Context::create(std::move(engine)));
    return {};
  }

  // Inputs and outputs lie in the device's memory, so that nothing but counts is copied from it while running.
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) {
    std::vector<DeviceMemory> memory;
    std::vector<Dims> dims(inputs.size() + 8);
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

  static Tensor numbers(const Dims& dims) {
    Tensor tensor = *Tensor::allocate(DType::f32, dims);
    for (int64_t i = 0; i < tensor.volume(); ++i) tensor.mutable_as<float>()[i] = static_cast<float>(i % 7) + 0.5f;
    return tensor;
  }
  void expect_as_interpreted(const std::string& text, const std::vector<Tensor>& inputs) {
    const auto want = ir::interpret(*ir::parse_graph(text), inputs);
    ASSERT_OK(want);
    const auto got = run(inputs);
    ASSERT_OK(got);
    for (size_t i = 0; i < want->size(); ++i) {
      EXPECT_EQ((*got)[i].dims(), (*want)[i].dims()) << i;
      for (int64_t e = 0; e < (*want)[i].volume(); ++e)
        EXPECT_EQ((*got)[i].at_double(e), (*want)[i].at_double(e)) << i << ", element " << e;
    }
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

TEST_F(DataDependentKernels, PositionsOfWhatIsNotZero) {
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

// The host reads what the sizes follow from, and the ops run on the device.
TEST_F(DataDependentKernels, SizesThatTheDeviceComputes) {
  const std::string text = R"(graph "g" {
  symbol n in [1, 16]
  input %x: f32[1, n]
  input %size: f32[2]
  %shape = cast{to=i64}(%size)
  %e = expand(%x, %shape)
  %one = constant{value=f32[]{1}}()
  %last = reduce{op=max, keepdims=false}(%size)
  %r = range(%one, %last, %one)
  %f = fill{value=f32[1]{2.5}}(%shape)
  %t = tile(%x, %shape)
  %pads = concat{axis=0}(%shape, %shape)
  %p = pad(%x, %pads)
  output %e
  output %r
  output %f
  output %t
  output %p
})";
  ASSERT_OK(load(text));
  for (const auto& [n, rows, columns] : {std::tuple(1, 3, 4), std::tuple(5, 2, 5), std::tuple(1, 0, 1)})
    expect_as_interpreted(
        text, {numbers({1, n}), Tensor::of<float>({2}, {static_cast<float>(rows), static_cast<float>(columns)})});
  // What cannot be expanded so is an error of the run.
  EXPECT_FAILS(run({numbers({1, 2}), Tensor::of<float>({2}, {2, 3})}), shape_mismatch);
}

TEST_F(DataDependentKernels, SizesOfSlicesAndImagesThatTheDeviceComputes) {
  const std::string text = R"(graph "g" {
  input %x: f32[1, 2, 4, 6]
  input %scales: f32[4]
  %y = resize{mode=linear}(%x, _, %scales)
  %z = resize(%x, _, %scales)
  %shape = cast{to=i64}(%scales)
  %three = constant{value=i64[1]{3}}()
  %zero = constant{value=i64[1]{0}}()
  %one = constant{value=i64[1]{1}}()
  %begin = slice(%shape, %zero, %one)
  %ends = elementwise{op=add}(%begin, %three)
  %s = slice(%x, %begin, %ends, %three)
  %rest = constant{value=i64[1]{-1}}()
  %dims = concat{axis=0}(%rest, %ends)
  %r = reshape(%x, %dims)
  output %y
  output %z
  output %s
  output %r
})";
  ASSERT_OK(load(text));
  for (const auto& scales : {Tensor::of<float>({4}, {1, 1, 2, 0.5}), Tensor::of<float>({4}, {1, 1, 1.5, 1})})
    expect_as_interpreted(text, {numbers({1, 2, 4, 6}), scales});
}

TEST_F(DataDependentKernels, ManyPositionsKeepTheirOrder) {
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

TEST_F(DataDependentKernels, SlicesThatAConditionChooses) {
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

TEST_F(DataDependentKernels, ConditionsMayNotChooseWhatDoesNotExist) {
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

// Boxes on a grid, so that many overlap by just as much and many scores are equal; several rounds of candidates.
TEST_F(DataDependentKernels, BoxesThatOverlapBetterOnesAreDropped) {
  const std::string text = R"(graph "g" {
  symbol n in [0, 4000]
  input %boxes: f32[2, n, 4]
  input %scores: f32[2, 2, n]
  input %most: i64[1]
  %iou = constant{value=f32[1]{0.25}}()
  %least = constant{value=f32[1]{3}}()
  %y = non_max_suppression{}(%boxes, %scores, %most, %iou, %least)
  %z = non_max_suppression{center_point_box=true}(%boxes, %scores, %most, %iou)
  output %y
  output %z
})";
  ASSERT_OK(load(text));
  const ir::Graph graph = *ir::parse_graph(text);
  for (const int64_t n : {0, 1, 37, 700}) {
    const auto numbers = [](const Dims& dims, uint32_t step, uint32_t most) {
      std::vector<float> values;
      for (uint32_t i = 0; i < static_cast<uint32_t>(volume(to_shape(dims)).as_constant().value_or(0)); ++i)
        values.push_back(static_cast<float>((i * step >> 4) % most) * 0.5f);
      return Tensor::from<float>(dims, values);
    };
    for (const int64_t most : {int64_t{3}, INT64_MAX}) {
      const std::vector<Tensor> inputs = {numbers({2, n, 4}, 2654435761u, 90), numbers({2, 2, n}, 40503u, 50),
                                          Tensor::of<int64_t>({1}, {most})};
      const auto expected = ir::interpret(graph, inputs);
      const auto results = run(inputs);
      ASSERT_OK(expected);
      ASSERT_OK(results);
      for (size_t i = 0; i < 2; ++i)
        EXPECT_TRUE(identical((*results)[i], (*expected)[i])) << n << " boxes, output " << i;
      EXPECT_EQ(downloads_, 2u);
    }
  }
}

TEST_F(DataDependentKernels, OneOfTwoSizesIsChosen) {
  ASSERT_OK(load(R"(graph "g" {
  input %x: f32[4]
  input %c: bool[1]
  %few = constant{value=i64[1, 1]{7}}()
  %at = nonzero{}(%x)
  %y = choose{}(%c, %few, %at)
  output %y
})"));
  const Tensor x = Tensor::of<float>({4}, {0, 5, 0, 2});
  const auto few = run({x, Tensor::of<bool>({1}, {true})});
  ASSERT_OK(few);
  EXPECT_EQ((*few)[0].dims(), (Dims{1, 1}));
  EXPECT_EQ(values((*few)[0]), (std::vector<int64_t>{7}));
  const auto many = run({x, Tensor::of<bool>({1}, {false})});
  ASSERT_OK(many);
  EXPECT_EQ(values((*many)[0]), (std::vector<int64_t>{1, 3}));
}

// Lists of candidates are joined, ranked and gathered by; as many of them as the data say.
TEST_F(DataDependentKernels, CandidatesOfTwoListsAreJoined) {
  const std::string text = R"(graph "g" {
  input %x: f32[9]
  %zero = constant{value=f32[]{0}}()
  %axis = constant{value=i64[1]{0}}()
  %is_above = elementwise{op=greater}(%x, %zero)
  %is_below = elementwise{op=less}(%x, %zero)
  %above = nonzero(%is_above)
  %below = nonzero(%is_below)
  %flat_above = squeeze(%above, %axis)
  %flat_below = squeeze(%below, %axis)
  %both = concat{axis=0}(%flat_above, %flat_below)
  %joined = gather(%x, %both)
  %count = shape(%joined)
  %best, %places = topk(%joined, %count)
  output %both
  output %best
  output %places
})";
  ASSERT_OK(load(text));
  for (const float sign : {1.0f, -1.0f, 0.0f}) {
    std::vector<float> x = {3, -1, 0, 4, -1, 5, -9, 2, 0};
    for (float& value : x) value *= sign;
    const std::vector<Tensor> inputs = {Tensor::from<float>({9}, x)};
    const auto expected = ir::interpret(*ir::parse_graph(text), inputs);
    const auto results = run(inputs);
    ASSERT_OK(results);
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(identical((*results)[i], (*expected)[i])) << "output " << i;
  }
}

}  // namespace
}  // namespace lathe::cuda
