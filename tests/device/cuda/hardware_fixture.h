// SPDX-License-Identifier: Apache-2.0
// A machine whose GPU is exchanged, by a table of what real ones are; and a small network that is built and loaded
// there.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>

#include "device/cuda/driver.h"
#include "fake_cuda/fake_device.h"
#include "plan/reader.h"

namespace lathe::cuda {

namespace nv = nvinfer1;
using nv::HardwareCompatibilityLevel;

// What the driver tells of them; data sheets and the Programming Guide.
struct Gpu {
  const char* name;
  int major, minor, bus_bits, l2_kib, block_kib, core_kib, cores;
  bool is_integrated = false;
  int number() const { return 10 * major + minor; }
};
inline constexpr Gpu kGpus[] = {
    {"Tesla T4", 7, 5, 256, 4096, 64, 64, 40},
    {"A100-SXM4-40GB", 8, 0, 5120, 40960, 163, 164, 108},
    {"A100-PCIE-80GB", 8, 0, 5120, 40960, 163, 164, 108},
    {"A30", 8, 0, 3072, 24576, 163, 164, 56},
    {"A10", 8, 6, 384, 6144, 99, 100, 72},
    {"A40", 8, 6, 384, 6144, 99, 100, 84},
    {"RTX 3060", 8, 6, 192, 2304, 99, 100, 28},
    {"Orin", 8, 7, 256, 4096, 163, 164, 16, true},
    {"L4", 8, 9, 192, 49152, 99, 100, 58},
    {"RTX 4080", 8, 9, 256, 65536, 99, 100, 76},
    {"RTX 4090", 8, 9, 384, 73728, 99, 100, 128},
    {"H100 PCIe", 9, 0, 5120, 51200, 227, 228, 114},
    {"H100 80GB HBM3", 9, 0, 5120, 51200, 227, 228, 132},
    {"H200", 9, 0, 6144, 51200, 227, 228, 132},
    {"B200", 10, 0, 8192, 129024, 227, 228, 148},
    {"RTX 5090", 12, 0, 512, 98304, 99, 100, 170},
    {"GB10", 12, 1, 256, 24576, 99, 100, 48, true},
};

inline const Gpu& gpu(std::string_view name) { return *std::ranges::find(kGpus, name, &Gpu::name); }

struct DifferenceLog final : nv::ILogger {
  void log(Severity severity, const char* message) noexcept override {
    if (severity <= Severity::kERROR) error = message;
    if (severity == Severity::kWARNING && std::string_view(message).find("another") != std::string_view::npos)
      differences.emplace_back(message);
    if (severity == Severity::kWARNING) warnings.emplace_back(message);
  }
  std::string error;
  std::vector<std::string> differences, warnings;
};

using Plan = std::unique_ptr<nv::IHostMemory>;
using Engine = std::unique_ptr<nv::ICudaEngine>;

class HardwareTest : public FakeDeviceTest {
 protected:
  void SetUp() override {
    FakeDeviceTest::SetUp();
    setenv("LATHE_NVRTC", FAKE_NVRTC, 1);
    for (int i = 0; i < kIn * kOut; ++i) weights_.push_back(std::sin(static_cast<float>(i)));
  }

  // Puts another GPU into the machine.
  static void change_to(const Gpu& gpu) {
    releaseIdleDevices();
    fake_cuda_set_device(0, gpu.name, gpu.major, gpu.minor, size_t{16} << 30);
    const std::pair<int, int> attributes[] = {
        {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, gpu.bus_bits},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, gpu.l2_kib << 10},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, gpu.block_kib << 10},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, gpu.core_kib << 10},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu.cores},
        {CU_DEVICE_ATTRIBUTE_INTEGRATED, gpu.is_integrated}};
    for (const auto& [attribute, value] : attributes) fake_cuda_set_device_attribute(0, attribute, value);
  }

  // y = x w, of floats, or of 8-bit floats that x is quantised to.
  Plan build(HardwareCompatibilityLevel level, const char* targets = "cuda", bool with_fp8 = false) {
    const std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(log_));
    const std::unique_ptr<nv::INetworkDefinition> network(builder->createNetworkV2(0));
    nv::ITensor* x = network->addInput("x", nv::DataType::kFLOAT, nv::Dims2(kRows, kIn));
    if (with_fp8) {
      nv::ITensor* scale = network->addConstant(nv::Dims{0, {}}, {nv::DataType::kFLOAT, &kScale, 1})->getOutput(0);
      x = network->addQuantize(*x, *scale, nv::DataType::kFP8)->getOutput(0);
      x = network->addDequantize(*x, *scale, nv::DataType::kFLOAT)->getOutput(0);
    }
    nv::ITensor* w =
        network->addConstant(nv::Dims2(kIn, kOut), {nv::DataType::kFLOAT, weights_.data(), kIn * kOut})->getOutput(0);
    nv::ITensor* y =
        network->addMatrixMultiply(*x, nv::MatrixOperation::kNONE, *w, nv::MatrixOperation::kNONE)->getOutput(0);
    y->setName("y");
    network->markOutput(*y);
    const std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
    config->clearFlag(nv::BuilderFlag::kTF32);
    config->setHardwareCompatibilityLevel(level);
    EXPECT_EQ(config->getHardwareCompatibilityLevel(), level);
    EXPECT_TRUE(setTargets(*config, targets)) << lastError();
    setBuildBudget(*config, 0);
    return Plan(builder->buildSerializedNetwork(*network, *config));
  }

  Engine load(const nv::IHostMemory& plan) {
    log_ = {};
    const std::unique_ptr<nv::IRuntime> runtime(nv::createInferRuntime(log_));
    return Engine(runtime->deserializeCudaEngine(plan.data(), plan.size()));
  }

  // Of an engine that loads on this device, and loads no code after that.
  void expect_right(nv::ICudaEngine& engine, bool with_fp8 = false) {
    const std::shared_ptr<Device> device = *open_device(0);
    const DeviceMemory x = *device->allocate(kRows * kIn * sizeof(float)), y = *device->allocate(kRows * kOut * 4);
    auto* const in = reinterpret_cast<float*>(x.data());
    for (int i = 0; i < kRows * kIn; ++i) in[i] = with_fp8 ? static_cast<float>(i % 7 - 3) : std::cos(i + 0.5F);
    const std::unique_ptr<nv::IExecutionContext> context(engine.createExecutionContext());
    ASSERT_NE(context, nullptr) << log_.error;
    context->setTensorAddress("x", x.data());
    context->setTensorAddress("y", y.data());
    const size_t before = fake_cuda_calls();
    ASSERT_TRUE(context->enqueueV3(nullptr)) << log_.error;
    for (size_t i = before; i < fake_cuda_calls(); ++i) EXPECT_STRNE(fake_cuda_call(i), "cuModuleLoadData");
    const auto* const out = reinterpret_cast<const float*>(y.data());  // the stand-in's memory is the host's
    for (int i = 0; i < kRows * kOut; ++i) {
      double sum = 0;
      for (int k = 0; k < kIn; ++k) sum += in[i / kOut * kIn + k] * weights_[k * kOut + i % kOut];
      ASSERT_NEAR(out[i], sum, 1e-5) << i;
    }
  }

  static constexpr int kRows = 3, kIn = 8, kOut = 5;
  static constexpr float kScale = 1;
  std::vector<float> weights_;
  DifferenceLog log_;
};

inline plan::PlanHeader header_of(const nv::IHostMemory& plan) {
  return *plan::read_header({static_cast<const std::byte*>(plan.data()), plan.size()});
}

}  // namespace lathe::cuda
