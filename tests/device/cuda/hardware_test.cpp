// SPDX-License-Identifier: Apache-2.0
// On which GPUs plans run.
#include "device/cuda/hardware_fixture.h"

namespace lathe::cuda {
namespace {

// S34, S41, S48, S51, S54: as plans are unless told otherwise.
TEST_F(HardwareTest, APlanRunsOnItsComputeCapabilityAndTellsDifferences) {
  for (const char* built : {"H200", "A100-SXM4-40GB", "A10"}) {
    change_to(gpu(built));
    const Plan plan = build(HardwareCompatibilityLevel::kNONE);
    ASSERT_NE(plan, nullptr) << log_.error;
    EXPECT_EQ(header_of(*plan).target, fmt::format("cuda-sm_{}", gpu(built).number()));
    for (const Gpu& other : kGpus) {
      change_to(other);
      const Engine engine = load(*plan);
      if (other.number() != gpu(built).number()) {
        EXPECT_EQ(engine, nullptr) << built << " on " << other.name;
        for (const Gpu& named : {gpu(built), other})
          EXPECT_NE(log_.error.find(fmt::format("sm_{}", named.number())), std::string::npos) << log_.error;
        continue;
      }
      ASSERT_NE(engine, nullptr) << log_.error;
      EXPECT_EQ(engine->getHardwareCompatibilityLevel(), HardwareCompatibilityLevel::kNONE);
      const Gpu& g = gpu(built);
      const size_t differ = (g.bus_bits != other.bus_bits) + (g.l2_kib != other.l2_kib) + (g.cores != other.cores);
      EXPECT_EQ(log_.differences.size(), differ) << built << " on " << other.name;
      expect_right(*engine);
    }
  }
}

// S51: each alone, with both values.
TEST_F(HardwareTest, EachPropertyGivesOneWarning) {
  const Plan plan = build(HardwareCompatibilityLevel::kNONE);
  ASSERT_NE(plan, nullptr) << log_.error;
  const struct {
    int attribute, value;
    const char *was, *is;
  } changes[] = {{CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120, "6144 bits", "5120 bits"},
                 {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 1 << 20, "52428800 bytes", "1048576 bytes"},
                 {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 226 << 10, "232448 bytes", "231424 bytes"},
                 {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 229 << 10, "233472 bytes", "234496 bytes"},
                 {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 256, "512 bytes", "256 bytes"},
                 {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 114, "132", "114"},
                 {CU_DEVICE_ATTRIBUTE_INTEGRATED, 1, "discrete", "integrated"}};
  for (const auto& change : changes) {
    releaseIdleDevices();
    fake_cuda_reset();
    fake_cuda_set_device_attribute(0, change.attribute, change.value);
    ASSERT_NE(load(*plan), nullptr) << log_.error;
    ASSERT_EQ(log_.differences.size(), 1u) << change.is;
    EXPECT_NE(log_.differences[0].find(change.was), std::string::npos) << log_.differences[0];
    EXPECT_NE(log_.differences[0].find(change.is), std::string::npos) << log_.differences[0];
  }
  releaseIdleDevices();
  fake_cuda_reset();
  fake_cuda_set_device_attribute(0, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000);  // S53: the clock is not compared
  ASSERT_NE(load(*plan), nullptr) << log_.error;
  EXPECT_EQ(log_.differences.size(), 0u);
}

// S35, S41, S52.
TEST_F(HardwareTest, TheSameComputeCapabilityWithoutWarnings) {
  change_to(gpu("RTX 4080"));
  fake_cuda_set_device(0, "RTX 5080", 12, 0, size_t{16} << 30);
  const Plan plan = build(HardwareCompatibilityLevel::kSAME_COMPUTE_CAPABILITY);
  ASSERT_NE(plan, nullptr) << log_.error;
  EXPECT_EQ(header_of(*plan).hardware_compatibility, plan::HardwareCompatibility::same_compute_capability);
  change_to(gpu("RTX 5090"));
  Engine engine = load(*plan);
  ASSERT_NE(engine, nullptr) << log_.error;
  EXPECT_EQ(engine->getHardwareCompatibilityLevel(), HardwareCompatibilityLevel::kSAME_COMPUTE_CAPABILITY);
  EXPECT_EQ(log_.differences.size(), 0u);
  expect_right(*engine);
  engine.reset();  // which holds the device
  change_to(gpu("GB10"));
  EXPECT_EQ(load(*plan), nullptr);
  EXPECT_NE(log_.error.find("LATHE-4003"), std::string::npos) << log_.error;
}

// S35, S37, S49, S50, S52.
TEST_F(HardwareTest, AmperePlusRunsEverywhereFromThereOn) {
  for (const char* built : {"A100-SXM4-40GB", "A10", "H200", "RTX 5090"}) {
    change_to(gpu(built));
    const Plan plan = build(HardwareCompatibilityLevel::kAMPERE_PLUS);
    ASSERT_NE(plan, nullptr) << log_.error;
    for (const Gpu& other : kGpus) {
      change_to(other);
      const Engine engine = load(*plan);
      EXPECT_EQ(engine != nullptr, other.number() >= 80) << built << " on " << other.name << ": " << log_.error;
      EXPECT_EQ(log_.differences.size(), 0u);
      if (!engine) continue;
      EXPECT_EQ(engine->getHardwareCompatibilityLevel(), HardwareCompatibilityLevel::kAMPERE_PLUS);
      expect_right(*engine);
    }
  }
}

// S38, S39.
TEST_F(HardwareTest, AmperePlusPlansHoldWhatAllCanDo) {
  const Plan bytes = build(HardwareCompatibilityLevel::kAMPERE_PLUS);
  ASSERT_NE(bytes, nullptr) << log_.error;
  const plan::LoadedPlan loaded =
      *plan::read_plan({static_cast<const std::byte*>(bytes->data()), bytes->size()}, nullptr);
  EXPECT_EQ(loaded.plan.target, "cuda-sm_80+");
  ASSERT_FALSE(loaded.plan.codes.empty());
  EXPECT_TRUE(loaded.plan.is_code_deflated);
  for (const CodeModule& module : loaded.plan.codes)
    for (const CodeImage& image : module.images) {
      EXPECT_EQ(image.form, CodeForm::assembly);
      EXPECT_EQ(image.target, "cuda-sm_80");
    }
  for (const plan::Step& step : loaded.plan.steps) {
    const auto* device = std::get_if<plan::DeviceLaunches>(&step.work);
    for (size_t i = 0; device && i < device->launches.size(); ++i) {
      EXPECT_LE(device->launches[i].shared_bytes, 47u << 10);
      EXPECT_EQ(device->launches[i].cluster, 1u);
      EXPECT_TRUE(device->launches[i].maps.empty());
    }
  }
}

// S36, S37.
TEST_F(HardwareTest, LevelsAreRefusedWhereTheyCannotHold) {
  change_to(gpu("Tesla T4"));
  EXPECT_EQ(build(HardwareCompatibilityLevel::kAMPERE_PLUS), nullptr);
  EXPECT_NE(log_.error.find("8.0"), std::string::npos) << log_.error;
  EXPECT_NE(build(HardwareCompatibilityLevel::kSAME_COMPUTE_CAPABILITY), nullptr) << log_.error;
  EXPECT_EQ(build(HardwareCompatibilityLevel::kAMPERE_PLUS, "sm_75"), nullptr);
  change_to(gpu("A100-SXM4-40GB"));
  fake_cuda_set_device_attribute(0, CU_DEVICE_ATTRIBUTE_INTEGRATED, 1);
  for (const auto level :
       {HardwareCompatibilityLevel::kAMPERE_PLUS, HardwareCompatibilityLevel::kSAME_COMPUTE_CAPABILITY}) {
    log_ = {};
    EXPECT_EQ(build(level), nullptr);
    EXPECT_NE(log_.error.find("shares its memory"), std::string::npos) << log_.error;
  }
  EXPECT_NE(build(HardwareCompatibilityLevel::kNONE), nullptr) << log_.error;
}

TEST_F(HardwareTest, OnACpuALevelHasNoEffect) {
  const Plan plan = build(HardwareCompatibilityLevel::kAMPERE_PLUS, "cpu");
  ASSERT_NE(plan, nullptr) << log_.error;
  EXPECT_EQ(header_of(*plan).hardware_compatibility, plan::HardwareCompatibility::none);
  EXPECT_EQ(std::ranges::count_if(log_.warnings,
                                  [](const std::string& line) {
                                    return line.find("setHardwareCompatibilityLevel has no effect") !=
                                           std::string::npos;
                                  }),
            1);
}

// S43: 8-bit floats are converted in code that every architecture has.
TEST_F(HardwareTest, EightBitFloatsRunAtEachLevel) {
  for (const auto level : {HardwareCompatibilityLevel::kNONE, HardwareCompatibilityLevel::kSAME_COMPUTE_CAPABILITY,
                           HardwareCompatibilityLevel::kAMPERE_PLUS}) {
    const Plan plan = build(level, "cuda", true);
    ASSERT_NE(plan, nullptr) << log_.error;
    const Engine engine = load(*plan);
    ASSERT_NE(engine, nullptr) << log_.error;
    expect_right(*engine, true);
  }
}

// S56.
TEST_F(HardwareTest, TooLittleMemoryIsToldAndFreed) {
  const Plan plan = build(HardwareCompatibilityLevel::kNONE);
  ASSERT_NE(plan, nullptr) << log_.error;
  releaseIdleDevices();
  fake_cuda_use_memory(0, (size_t{16} << 30) - 64);
  EXPECT_EQ(load(*plan), nullptr);
  EXPECT_NE(log_.error.find("Error Code 5"), std::string::npos) << log_.error;  // kFAILED_ALLOCATION
  EXPECT_NE(log_.error.find("bytes"), std::string::npos) << log_.error;
  EXPECT_EQ(fake_cuda_live("memory"), 0u);
  fake_cuda_use_memory(0, 0);
  const Engine engine = load(*plan);
  ASSERT_NE(engine, nullptr) << log_.error;
  expect_right(*engine);
}

// Without the device, properties are not known, and nothing is compared.
TEST_F(HardwareTest, PlansThatAreBuiltWithoutADevice) {
  const Plan exact = build(HardwareCompatibilityLevel::kNONE, "sm_80");
  const Plan open = build(HardwareCompatibilityLevel::kNONE, "sm_80+");
  ASSERT_NE(exact, nullptr) << log_.error;
  ASSERT_NE(open, nullptr) << log_.error;
  EXPECT_FALSE(header_of(*exact).hardware.is_known());
  EXPECT_EQ(header_of(*open).hardware_compatibility, plan::HardwareCompatibility::ampere_plus);
  change_to(gpu("A30"));
  const Engine engine = load(*exact);
  ASSERT_NE(engine, nullptr) << log_.error;
  EXPECT_EQ(log_.differences.size(), 0u);
  change_to(gpu("RTX 4090"));
  EXPECT_NE(load(*open), nullptr) << log_.error;
}

}  // namespace
}  // namespace lathe::cuda
