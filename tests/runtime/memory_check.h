// SPDX-License-Identifier: Apache-2.0
// What contexts say that they need is enough, whatever shapes come, and what they allocate ahead is all that they do.
#pragma once

#include "lowering/engine_fixture.h"

namespace lathe {

// Passes everything on, and counts allocations.
class CountingDevice final : public Device {
 public:
  explicit CountingDevice(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  int allocations = 0;
  size_t largest = SIZE_MAX;  // allocation that succeeds

  std::string_view name() const override { return device_->name(); }
  std::string target() const override { return device_->target(); }
  Target describe() const override { return device_->describe(); }
  std::string timing_key() const override { return device_->timing_key(); }
  Result<> check_target(std::string_view target) const override { return device_->check_target(target); }
  bool is_host() const override { return device_->is_host(); }
  int threads() const override { return device_->threads(); }
  Result<DeviceMemory> allocate(size_t bytes) override {
    allocations += bytes != 0;
    if (bytes > largest) return fail(ErrorCode::out_of_memory, "{} bytes are too many", bytes);
    return device_->allocate(bytes);
  }
  Result<std::unique_ptr<Queue>> make_queue() override { return device_->make_queue(); }
  Result<std::unique_ptr<Queue>> make_stream_queue(void* stream) override { return device_->make_stream_queue(stream); }
  Result<> upload(void* to, const void* from, size_t bytes, Queue& queue) override {
    return device_->upload(to, from, bytes, queue);
  }
  Result<> download(void* to, const void* from, size_t bytes, Queue& queue) override {
    return device_->download(to, from, bytes, queue);
  }
  Result<> copy(const RowsCopy& rows, Queue& queue) override { return device_->copy(rows, queue); }
  Result<> wait(Queue& queue) override { return device_->wait(queue); }
  bool is_accessible(const void* address) const override { return device_->is_accessible(address); }
  Result<std::unique_ptr<Kernel>> make_kernel(const StepRecord& record) override {
    return device_->make_kernel(record);
  }
  Result<std::shared_ptr<const std::byte>> make_resident(std::span<const std::byte> bytes,
                                                         std::shared_ptr<const void> owner) override {
    return device_->make_resident(bytes, std::move(owner));
  }
  Result<std::unique_ptr<CapturedGraph>> capture(const std::function<Result<>(Queue&)>& work) override {
    return device_->capture(work);
  }
  Result<std::vector<double>> time(Queue& queue, const std::function<Result<>(Queue&)>& work, int repeats) override {
    return device_->time(queue, work, repeats);
  }
  Result<std::vector<double>> time_replays(Queue& queue, CapturedGraph& graph, int repeats) override {
    return device_->time_replays(queue, graph, repeats);
  }

 private:
  std::shared_ptr<Device> device_;
};

// Networks over x[n, ...] whose steps want arena and workspace of sizes that depend on n: products of two computed
// operands, columns, convolutions, programs behind them, sums in parts, results that only a run can size.
inline const char* const kHungryNetworks[] = {
    R"(input %x: f32[n, 24, 40]
       %t = transpose{perm=[0, 2, 1]}(%x)
       %p = matmul{}(%x, %t)
       %s = softmax{axis=1}(%p)
       %y = matmul{}(%s, %x)
       output %y)",
    R"(input %x: f32[n, 3, 12, 12]
       %w = constant{value=f32[16, 3, 3, 3]{~1}}()
       %a = convolution{stride=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilation=[1, 1]}(%x, %w)
       %b = activation{op=silu}(%a)
       %p = pooling{op=max, window=[2, 2], stride=[2, 2], pads_begin=[0, 0], pads_end=[0, 0], dilation=[1, 1]}(%b)
       %y = activation{op=tanh}(%p)
       output %y)",
    R"(input %x: f32[n, 600]
       %w = constant{value=f32[600, 70]{~2}}()
       %v = constant{value=f32[70, 90]{~3}}()
       %a = matmul{}(%x, %w)
       %b = activation{op=relu}(%a)
       %c = matmul{}(%b, %v)
       %y = softmax{axis=0}(%c)
       output %y)",
    R"(input %x: f32[n, 16]
       %r = activation{op=relu}(%x)
       %i = nonzero{}(%r)
       %e = activation{op=tanh}(%r)
       output %i
       output %e)",
};

inline std::string hungry_graph(const char* body) {
  return std::string("graph \"g\" {\n symbol n in [1, 64]\n") + body + "\n}";
}

// Two profiles: 1 to 5, and 3 to 37.
inline std::vector<ProfileShapes> hungry_profiles(const ir::Graph& graph) {
  std::vector<ProfileShapes> profiles;
  for (const auto& [least, most] : {std::pair<int64_t, int64_t>{1, 5}, {3, 37}}) {
    ProfileShapes::Input input;
    for (const auto& [dims, n] : {std::pair{&input.min, least}, {&input.opt, least + 1}, {&input.max, most}})
      for (const Expr& dim : graph.inputs()[0]->shape()) dims->push_back(dim.as_constant().value_or(n));
    profiles.emplace_back().inputs.emplace(graph.inputs()[0]->name(), std::move(input));
  }
  return profiles;
}

// `load` makes an engine of the graph, with the profiles, on the counting device.
template <class Load>
void expect_limits_to_hold(const Load& load, const std::shared_ptr<CountingDevice>& device,
                           const std::function<std::shared_ptr<std::byte>(size_t)>& guarded, double tolerance) {
  for (const char* body : kHungryNetworks) {
    SCOPED_TRACE(body);
    const Result<ir::Graph> parsed = ir::parse_graph(hungry_graph(body));
    ASSERT_TRUE(parsed) << parsed.error().to_string();
    const ir::Graph& graph = *parsed;
    const std::shared_ptr<const Engine> engine = load(graph.clone(), hungry_profiles(graph));
    ASSERT_TRUE(engine);
    device->allocations = 0;
    const auto whole = *Context::create(engine, MemoryPolicy::largest);
    const auto current = *Context::create(engine, MemoryPolicy::by_profile);
    const auto given = *Context::create(engine, MemoryPolicy::user);
    EXPECT_GT(device->allocations, 0);
    for (size_t profile = 0; profile < 2; ++profile) {
      const MemoryLimit* limit = engine->memory_limit(profile);
      ASSERT_TRUE(limit);
      const std::shared_ptr<std::byte> memory = guarded(limit->total());
      for (const auto& context : {whole.get(), current.get(), given.get()}) ASSERT_TRUE(context->set_profile(profile));
      ASSERT_TRUE(given->set_memory(memory.get(), limit->total()));
      device->allocations = 0;
      for (const int64_t n : profile == 0 ? std::vector<int64_t>{5, 1, 3, 4, 2} : std::vector<int64_t>{37, 3, 20, 36}) {
        Dims dims;
        for (const Expr& dim : graph.inputs()[0]->shape()) dims.push_back(dim.as_constant().value_or(n));
        const Tensor x = random_tensor(DType::f32, dims, static_cast<uint32_t>(n));
        const auto expected = ir::interpret(graph, {&x, 1});
        ASSERT_TRUE(expected) << expected.error().to_string();
        for (const auto& context : {whole.get(), current.get(), given.get()}) {
          if (context == given.get()) {  // what a run alone can size is its own
            EXPECT_EQ(device->allocations, 0) << "n " << n;
          }
          const std::vector<Tensor> outputs = run_engine(*context, {&x, 1});
          for (size_t i = 0; i < outputs.size(); ++i) expect_close(outputs[i], (*expected)[i], tolerance);
        }
        device->allocations = 0;
        const Result<size_t> needed = whole->memory_bytes();
        ASSERT_TRUE(needed);
        EXPECT_LE(*needed, limit->total()) << "n " << n;
      }
      if (limit->total() == 0) continue;
      ASSERT_TRUE(given->set_memory(nullptr, 0));
      EXPECT_EQ(given->run().error().code, ErrorCode::memory_too_small);
      EXPECT_EQ(given->set_memory(nullptr, 1).error().code, ErrorCode::invalid_argument);
      EXPECT_EQ(given->set_memory(memory.get() + 32, 64).error().code, ErrorCode::invalid_argument);
    }
  }
}

}  // namespace lathe
