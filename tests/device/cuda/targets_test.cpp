// SPDX-License-Identifier: Apache-2.0
// One plan for several targets, of which each machine loads what it runs.
#include "device/cuda/hardware_fixture.h"
#include "plan/variants.h"

namespace lathe::cuda {
namespace {

constexpr HardwareCompatibilityLevel kNone = HardwareCompatibilityLevel::kNONE;

std::span<const std::byte> bytes_of(const nv::IHostMemory& plan) {
  return {static_cast<const std::byte*>(plan.data()), plan.size()};
}

class TargetsTest : public HardwareTest {
 protected:
  // The target of the variant that the engine is.
  static std::string target_of(const nv::ICudaEngine& engine) {
    const Plan plan(engine.serialize());
    return plan ? header_of(*plan).target : "";
  }
};

TEST_F(TargetsTest, EachMachineLoadsItsVariant) {
  const Plan plan = build(kNone, "sm_80,sm_90,sm_80+");
  ASSERT_NE(plan, nullptr) << log_.error;
  EXPECT_EQ(header_of(*plan).target, "cuda-sm_80,cuda-sm_90,cuda-sm_80+");
  for (const Gpu& gpu : kGpus) {
    change_to(gpu);
    const Engine engine = load(*plan);
    if (gpu.number() < 80) {
      EXPECT_EQ(engine, nullptr) << gpu.name;
      for (const char* words : {"none of the plan's 3 variants", "cuda-sm_80", "cuda-sm_90", "sm_75"})
        EXPECT_NE(log_.error.find(words), std::string::npos) << log_.error;
      continue;
    }
    ASSERT_NE(engine, nullptr) << gpu.name << ": " << log_.error;
    const bool is_exact = gpu.number() == 80 || gpu.number() == 90;
    EXPECT_EQ(target_of(*engine), fmt::format("cuda-sm_{}", is_exact ? std::to_string(gpu.number()) : "80+"))
        << gpu.name;
    EXPECT_TRUE(gpu.number() == 90 || log_.differences.empty()) << gpu.name;  // sm_90 was there
    expect_right(*engine);
  }
}

// In the order of the list, which may say that a GPU is not to be used.
TEST_F(TargetsTest, TheFirstThatRunsIsTaken) {
  const Plan plan = build(kNone, "sm_75,cpu,sm_90");
  ASSERT_NE(plan, nullptr) << log_.error;
  const Engine engine = load(*plan);
  ASSERT_NE(engine, nullptr) << log_.error;
  EXPECT_EQ(target_of(*engine).substr(0, 4), "cpu-");
}

// A variant is what a build for its target alone gives.
TEST_F(TargetsTest, VariantsAreThePlansOfTheirTargets) {
  const char* targets[] = {"sm_80", "sm_90", "cpu-x86_64"};
  const Plan fat = build(kNone, "sm_80,sm_90,cpu-x86_64");
  ASSERT_NE(fat, nullptr) << log_.error;
  std::vector<Plan> alone;
  for (size_t i = 0; i < std::size(targets); ++i) {
    alone.push_back(build(kNone, targets[i]));
    ASSERT_NE(alone.back(), nullptr) << log_.error;
    const Result<std::vector<std::byte>> variant = plan::take_variant(bytes_of(*fat), i);
    ASSERT_OK(variant);
    EXPECT_TRUE(std::ranges::equal(*variant, bytes_of(*alone[i]))) << targets[i];
  }
  const void* plans[] = {alone[0]->data(), alone[1]->data(), alone[2]->data()};
  const std::size_t sizes[] = {alone[0]->size(), alone[1]->size(), alone[2]->size()};
  const Plan merged(mergePlans(plans, sizes, 3));
  ASSERT_NE(merged, nullptr) << lastError();
  EXPECT_TRUE(std::ranges::equal(bytes_of(*merged), bytes_of(*fat)));
  EXPECT_EQ(mergePlans(plans, sizes, 0), nullptr);
  EXPECT_EQ(mergePlans(nullptr, sizes, 1), nullptr);
  const void* with_null[] = {alone[0]->data(), nullptr};
  EXPECT_EQ(mergePlans(with_null, sizes, 2), nullptr);
}

TEST_F(TargetsTest, WrongListsAreRefused) {
  const std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(log_));
  const std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
  ASSERT_TRUE(setTargets(*config, "sm_90,cpu-x86_64"));
  const std::string seventeen =
      "sm_75,sm_80,sm_86,sm_87,sm_89,sm_90,sm_100,sm_103,sm_110,sm_120,sm_121,sm_80+,cpu,"
      "cpu-x86_64,cpu-arm64,cpu-x86_64-avx2,cpu-x86_64-avx512";
  for (const char* wrong :
       {"", "sm_90,", ",sm_90", "sm_90,sm_90", "sm_90,cuda-sm_90", "sm_12", "sm_90,tpu", "sm_90+", seventeen.c_str()})
    EXPECT_FALSE(setTargets(*config, wrong)) << wrong;
  EXPECT_FALSE(setTargets(*config, nullptr));
  EXPECT_STREQ(getTarget(*config), "cuda-sm_90");  // as it was
}

}  // namespace
}  // namespace lathe::cuda
