// SPDX-License-Identifier: Apache-2.0
// A small engine in a wrapper, and the driver of the device that it runs on.
#pragma once

#include <cstring>
#include <numeric>

#include "api/small_engine.h"
#include "lathe_wrapper.h"

namespace lathe {

namespace nv = nvinfer1;

inline constexpr auto kDevice = nv::TensorLocation::kDEVICE;
inline constexpr auto kHost = nv::TensorLocation::kHOST;

using nv::driver_function;

// The primary context of a GPU.
class PrimaryGpu {
 public:
  explicit PrimaryGpu(int device = 0) : device_(device) {
    EXPECT_EQ(driver_function<int(unsigned)>("cuInit")(0), 0);
    EXPECT_EQ(driver_function<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context_, device), 0);
  }
  PrimaryGpu(const PrimaryGpu&) = delete;
  PrimaryGpu& operator=(const PrimaryGpu&) = delete;
  ~PrimaryGpu() { EXPECT_EQ(driver_function<int(int)>("cuDevicePrimaryCtxRelease_v2")(device_), 0); }
  void push() const { EXPECT_EQ(driver_function<int(void*)>("cuCtxPushCurrent_v2")(context_), 0); }
  static void pop() {
    void* popped = nullptr;
    EXPECT_EQ(driver_function<int(void**)>("cuCtxPopCurrent_v2")(&popped), 0);
  }

 private:
  int device_;
  void* context_ = nullptr;
};

// It is current while this lives.
class CurrentGpu {
 public:
  explicit CurrentGpu(int device = 0) : gpu_(device) { gpu_.push(); }
  CurrentGpu(const CurrentGpu&) = delete;
  CurrentGpu& operator=(const CurrentGpu&) = delete;
  ~CurrentGpu() { PrimaryGpu::pop(); }

 private:
  PrimaryGpu gpu_;
};

// Memory that host and device read and write.
inline std::shared_ptr<void> shared_memory(size_t bytes) {
  if (!nv::on_gpu()) return nv::context_memory(bytes);
  const auto gpu = std::make_shared<PrimaryGpu>();
  void* memory = nullptr;
  constexpr unsigned kGlobal = 1;
  gpu->push();
  EXPECT_EQ(driver_function<int(void**, size_t, unsigned)>("cuMemAllocManaged")(&memory, bytes, kGlobal), 0);
  PrimaryGpu::pop();
  return {memory, [gpu](void* block) {
            gpu->push();
            EXPECT_EQ(driver_function<int(void*)>("cuMemFree_v2")(block), 0);
            PrimaryGpu::pop();
          }};
}

// What the work of a stream has left in an output.
template <class T>
std::vector<T> values_of(const OutputTensor& output, cudaStream_t stream = nullptr) {
  std::vector<T> values(static_cast<size_t>(output.bytes) / sizeof(T));
  const size_t bytes = values.size() * sizeof(T);
  if (!nv::on_gpu()) {
    if (bytes > 0) std::memcpy(values.data(), output.data, bytes);
    return values;
  }
  if (bytes > 0) {
    EXPECT_EQ(driver_function<int(void*, void*, size_t, void*)>("cuMemcpyDtoHAsync_v2")(values.data(), output.data,
                                                                                        bytes, stream),
              0);
  }
  EXPECT_EQ(driver_function<int(void*)>("cuStreamSynchronize")(stream), 0);
  return values;
}

// A stream of the application's, and graphs that it captures on it.
class AppStream {
 public:
  AppStream() { EXPECT_EQ(driver_function<int(void**, unsigned)>("cuStreamCreate")(&stream_, 1), 0); }
  AppStream(const AppStream&) = delete;
  AppStream& operator=(const AppStream&) = delete;
  ~AppStream() {
    if (executable_) driver_function<int(void*)>("cuGraphExecDestroy")(executable_);
    driver_function<int(void*)>("cuStreamDestroy_v2")(stream_);
  }
  cudaStream_t get() const { return static_cast<cudaStream_t>(stream_); }
  void begin_capture() {
    constexpr int kGlobal = 0;
    EXPECT_EQ(driver_function<int(void*, int)>("cuStreamBeginCapture_v2")(stream_, kGlobal), 0);
  }
  void end_capture() {
    void* graph = nullptr;
    EXPECT_EQ(driver_function<int(void*, void**)>("cuStreamEndCapture")(stream_, &graph), 0);
    ASSERT_NE(graph, nullptr);
    EXPECT_EQ(
        driver_function<int(void**, void*, unsigned long long)>("cuGraphInstantiateWithFlags")(&executable_, graph, 0),
        0);
    EXPECT_EQ(driver_function<int(void*)>("cuGraphDestroy")(graph), 0);
  }
  void launch() { EXPECT_EQ(driver_function<int(void*, void*)>("cuGraphLaunch")(executable_, stream_), 0); }
  void wait() { EXPECT_EQ(driver_function<int(void*)>("cuStreamSynchronize")(stream_), 0); }

 private:
  void* stream_ = nullptr;
  void* executable_ = nullptr;
};

// y = relu(x * w + b) of EngineTest, where x is [n, 3] and n from 1 to 8.
class WrapperTest : public nv::EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    if (nv::on_gpu()) gpu_.emplace();
  }
  void TearDown() override { EngineWrapper::setMultiDeviceSafeMode(false); }

  static EngineTarget here() {
    EngineTarget target;
    if (nv::on_gpu()) {
      EXPECT_TRUE(currentTarget(target)) << wrapperError();
    } else {
      target.kind = EngineTarget::Kind::kCPU;
      target.name = "cpu";
    }
    return target;
  }
  static EngineFields fields_of(const std::string& name = "model.small") {
    EngineFields fields;
    fields.name = name;
    fields.target = here();
    fields.inputs = {"x"};
    fields.outputs = {"y"};
    fields.metadata = "of the % caller\n";
    return fields;
  }
  std::string plan() {
    const auto built = build();
    return {static_cast<const char*>(built->data()), built->size()};
  }
  std::unique_ptr<EngineWrapper> wrap(RuntimeSettings settings = {}) { return wrap(plan(), fields_of(), settings); }
  std::unique_ptr<EngineWrapper> wrap(const std::string& plan, const EngineFields& fields,
                                      RuntimeSettings settings = {}) {
    auto wrapped = EngineWrapper::create(shared_, plan, fields, std::move(settings));
    EXPECT_NE(wrapped, nullptr) << wrapperError();
    return wrapped;
  }

  // Rows of x, in memory that the engine works in; what y must be.
  struct Batch {
    explicit Batch(int64_t rows, float first = 1)
        : memory(shared_memory(static_cast<size_t>(rows) * 3 * sizeof(float))),
          x(static_cast<float*>(memory.get())),
          rows(rows) {
      fill(first);
    }
    void fill(float first) { std::iota(x, x + rows * 3, first); }
    InputTensor input(nv::TensorLocation location = kDevice) const {
      return {"x", x, nv::DataType::kFLOAT, nv::Dims2(rows, 3), location};
    }
    void expect(const OutputTensor& output, cudaStream_t stream = nullptr) const {
      const std::vector<float> y = values_of<float>(output, stream);
      ASSERT_GE(y.size(), static_cast<size_t>(rows) * 2);
      for (int64_t row = 0; row < rows; ++row) {
        const float* const in = x + row * 3;
        const auto at = static_cast<size_t>(row) * 2;
        EXPECT_FLOAT_EQ(y[at], std::max(in[0] + in[2], 0.0F));
        EXPECT_FLOAT_EQ(y[at + 1], std::max(in[1] + in[2] - 10, 0.0F));
      }
    }
    std::shared_ptr<void> memory;
    float* x;
    int64_t rows;
  };
  // One run whose answer is right.
  void expect_right(EngineWrapper& wrapper, const Batch& batch, cudaStream_t stream = nullptr) {
    std::vector<OutputTensor> outputs;
    ASSERT_TRUE(wrapper.run({batch.input()}, outputs, stream)) << wrapperError();
    ASSERT_EQ(outputs.size(), 1u);
    EXPECT_EQ(outputs[0].name, "y");
    EXPECT_EQ(outputs[0].type, nv::DataType::kFLOAT);
    ASSERT_EQ(outputs[0].dims.nbDims, 2);
    EXPECT_EQ(outputs[0].dims.d[0], batch.rows);
    EXPECT_EQ(outputs[0].bytes, batch.rows * 2 * 4);
    batch.expect(outputs[0], stream);
  }

  // What a call has refused: its code and words, and that it was reported once.
  void expect_refused(bool done, std::string_view code, std::initializer_list<std::string_view> words) {
    EXPECT_FALSE(done);
    const std::string text = wrapperError();
    EXPECT_TRUE(text.starts_with(code)) << text;
    for (const std::string_view word : words) EXPECT_NE(text.find(word), std::string::npos) << word << ": " << text;
  }
  std::vector<std::string> lines_with(std::string_view words) {
    const std::lock_guard lock(logger.mutex);
    std::vector<std::string> found;
    for (const std::string& line : logger.text)
      if (line.find(words) != std::string::npos) found.push_back(line);
    return found;
  }
  void listen(nv::ILogger::Severity most) {
    logger.most = most;
    logger.text.clear();
  }

  std::optional<CurrentGpu> gpu_;
  std::shared_ptr<nv::IRuntime> shared_{nv::createInferRuntime(logger)};
};

}  // namespace lathe
