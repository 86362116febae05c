// SPDX-License-Identifier: Apache-2.0
// Opening the driver: each thing that may be wrong with it has its error.
#include "device/cuda/driver.h"

#include "device/cuda/architecture.h"
#include "fake_cuda/fake_device.h"

namespace lathe::cuda {
namespace {

class DriverTest : public FakeDeviceTest {};

TEST_F(DriverTest, OpensAndTellsItsVersion) {
  fake_cuda_set_driver_version(12080);
  const auto driver = open_driver(FAKE_CUDA_DRIVER);
  ASSERT_OK(driver);
  EXPECT_EQ((*driver)->version, 12080);
  EXPECT_EQ(version_text(12080), "12.8");
  EXPECT_TRUE((*driver)->has_graphs());
  EXPECT_TRUE((*driver)->has_pools());
}

TEST_F(DriverTest, MissingLibraryIsNamed) {
  const auto driver = open_driver("/nowhere/libcuda.so.1");
  EXPECT_FAILS(driver, cuda_driver_missing);
  EXPECT_NE(driver.error().message.find("/nowhere/libcuda.so.1"), std::string::npos);
}

TEST_F(DriverTest, OldVersionIsToldBeforeAnythingIsStarted) {
  fake_cuda_set_driver_version(11080);
  const auto driver = open_driver(FAKE_CUDA_DRIVER);
  EXPECT_FAILS(driver, cuda_driver_too_old);
  EXPECT_NE(driver.error().message.find("11.8"), std::string::npos);
  EXPECT_NE(driver.error().message.find("12.0"), std::string::npos);
  ASSERT_EQ(fake_cuda_calls(), 1u);
  EXPECT_STREQ(fake_cuda_call(0), "cuDriverGetVersion");
}

TEST_F(DriverTest, FailuresAreTheSameEachTime) {
  fake_cuda_set_driver_version(11080);
  const std::string first = open_driver(FAKE_CUDA_DRIVER).error().to_string();
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(open_driver(FAKE_CUDA_DRIVER).error().to_string(), first);
}

TEST_F(DriverTest, MissingFunctionIsNamedWithItsFile) {
  const auto driver = open_driver(FAKE_CUDA_DRIVER_WITHOUT_LAUNCH);
  EXPECT_FAILS(driver, cuda_symbol_missing);
  EXPECT_NE(driver.error().message.find("cuLaunchKernelEx"), std::string::npos);
  EXPECT_NE(driver.error().message.find(FAKE_CUDA_DRIVER_WITHOUT_LAUNCH), std::string::npos);
}

TEST_F(DriverTest, OptionalFunctionsMayLack) {
  const auto driver = open_driver(FAKE_CUDA_DRIVER_WITHOUT_OPTIONS);
  ASSERT_OK(driver);
  EXPECT_FALSE((*driver)->has_graphs());
  EXPECT_FALSE((*driver)->has_pools());
}

TEST_F(DriverTest, FailuresOfTheStartHaveTheirReasons) {
  const struct {
    int result;
    ErrorCode code;
  } cases[] = {{100, ErrorCode::cuda_no_device},   {802, ErrorCode::cuda_unavailable},
               {803, ErrorCode::cuda_unavailable}, {34, ErrorCode::cuda_driver_missing},
               {999, ErrorCode::cuda_unavailable}, {12345, ErrorCode::cuda_unavailable}};
  for (const auto& [result, code] : cases) {
    fake_cuda_fail("cuInit", 1, result, 0);
    const auto driver = open_driver(FAKE_CUDA_DRIVER);
    ASSERT_FALSE(driver.has_value());
    EXPECT_EQ(driver.error().code, code) << result;
  }
}

TEST_F(DriverTest, EachResultHasItsMeaning) {
  EXPECT_EQ(driver_error(CUDA_ERROR_OUT_OF_MEMORY, "x").code, ErrorCode::out_of_memory);
  EXPECT_EQ(driver_error(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "x").code, ErrorCode::device_code_refused);
  EXPECT_EQ(driver_error(CUDA_ERROR_ILLEGAL_ADDRESS, "x").code, ErrorCode::device_fault);
  EXPECT_EQ(driver_error(static_cast<CUresult>(4711), "x").code, ErrorCode::device_call_failed);
  EXPECT_NE(driver_error(CUDA_ERROR_ILLEGAL_ADDRESS, "x").message.find("CUDA_ERROR_ILLEGAL_ADDRESS (700)"),
            std::string::npos);
  EXPECT_TRUE(is_lost(CUDA_ERROR_LAUNCH_FAILED));
  EXPECT_FALSE(is_lost(CUDA_ERROR_OUT_OF_MEMORY));
}

TEST(Architecture, TargetsAreParsed) {
  const auto hopper = parse_target("cuda-sm_90");
  ASSERT_OK(hopper);
  EXPECT_EQ((*hopper)->code, "sm_90a");
  EXPECT_EQ(target_name(**hopper), "cuda-sm_90");
  for (const char* wrong : {"", "cpu", "cuda", "cuda-sm_", "cuda-sm_9x", "cuda-sm_90 ", "cuda-sm_-90", "sm_90"})
    EXPECT_FALSE(parse_target(wrong).has_value()) << wrong;
  EXPECT_FAILS(parse_target("cuda-sm_70"), cuda_architecture_unsupported);
  EXPECT_FAILS(parse_target("cuda-sm_990"), cuda_architecture_unsupported);
}

}  // namespace
}  // namespace lathe::cuda
