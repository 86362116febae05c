// SPDX-License-Identifier: Apache-2.0
// Plans that this machine refuses, and which of the interface's error codes recorders are told.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "api/plan_keys.h"
#include "api/report.h"
#include "api/target.h"
#include "kernels/cpu/target.h"
#include "lathe.h"
#include "plan/header.h"
#include "plan/random_plan.h"
#include "plan/writer.h"

namespace lathe::api {
namespace {

struct Recorded final : nv::ILogger {
  void log(Severity severity, const char* message) noexcept override {
    if (severity <= Severity::kERROR) text += message;
  }
  std::string text;
};

std::vector<std::byte> plan_for(const std::string& target, Version version = library_version()) {
  plan::OwnedPlan owned = plan::PlanGenerator(1).make(1, 1);
  owned.plan.target = target;
  std::vector<std::byte> bytes = *plan::write_plan(owned.plan);
  plan::PlanHeader header = *plan::read_header(bytes);
  header.version = version;
  const auto encoded = plan::encode_header(header);
  std::copy(encoded.begin(), encoded.end(), bytes.begin());
  return bytes;
}

std::string refusal_of(const std::vector<std::byte>& bytes) {
  Recorded recorded;
  const std::unique_ptr<nv::IRuntime> runtime(nv::createInferRuntime(recorded));
  const std::unique_ptr<nv::ICudaEngine> engine(runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
  EXPECT_EQ(engine, nullptr);
  return recorded.text;
}

TEST(Refusal, PlansOfAnotherVersionAreToldAsSuchWithoutADriver) {
  if (nv::on_gpu()) GTEST_SKIP() << "the driver is open for good";
  setenv("LATHE_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  Version other = library_version();
  ++other.minor;
  const std::string newer = refusal_of(plan_for("cuda-sm_90", other));
  EXPECT_NE(newer.find("LATHE-4002"), std::string::npos) << newer;
  EXPECT_EQ(newer.find("LATHE-6"), std::string::npos) << newer;
  const std::string same = refusal_of(plan_for("cuda-sm_90"));
  EXPECT_NE(same.find("LATHE-6001"), std::string::npos) << same;
  unsetenv("LATHE_CUDA_DRIVER");
}

TEST(Refusal, CpuTargetsAreCompared) {
  for (const char* target : {"cpu-x86_64-avx9000", "cpu", "cpu-riscv-baseline", "cpu-x86_64"}) {
    const std::string text = refusal_of(plan_for(target));
    EXPECT_NE(text.find("LATHE-4003"), std::string::npos) << target << ": " << text;
    EXPECT_NE(text.find(cpu::target_name()), std::string::npos) << target << ": " << text;
  }
  for (const std::string& target : cpu::runnable_targets()) {  // refused for something else: the plan is a random one
    const std::string text = refusal_of(plan_for(target));
    EXPECT_EQ(text.find("is for '"), std::string::npos) << target << ": " << text;
  }
}

// What cannot be run can be looked at.
TEST(Refusal, PlansWithBlocksAreShown) {
  plan::OwnedPlan owned = plan::PlanGenerator(1).make(20, 8, 0, true);
  owned.plan.target = cpu::target_name();
  owned.plan.detached = plan::detach(owned.plan.weights);
  const std::vector<std::byte> bytes = *plan::write_plan(owned.plan);
  EXPECT_NE(refusal_of(bytes).find("supply"), std::string::npos) << refusal_of(bytes);
  const std::unique_ptr<nv::IHostMemory> json(planJson(bytes.data(), bytes.size()));
  ASSERT_NE(json, nullptr) << lastError();
  const std::string_view text(static_cast<const char*>(json->data()), json->size());
  for (const char* part : {"\"kind\": \"loop\"", "\"kind\": \"branch\"", "\"kind\": \"call\"", "\"depth\": 1",
                           "\"name\": \"weights\"", "\"in_file\": false", "\"format\": 2"})
    EXPECT_NE(text.find(part), std::string_view::npos) << part;

  owned.plan.detached.reset();
  owned.plan.metadata.emplace_back(kVerbosityKey, "detailed");
  const std::vector<std::byte> whole = *plan::write_plan(owned.plan);
  Recorded recorded;
  const std::unique_ptr<nv::IRuntime> runtime(nv::createInferRuntime(recorded));
  setInspectionOnly(*runtime, true);
  const std::unique_ptr<nv::ICudaEngine> engine(runtime->deserializeCudaEngine(whole.data(), whole.size()));
  ASSERT_NE(engine, nullptr) << recorded.text;
  const std::unique_ptr<nv::IEngineInspector> inspector(engine->createEngineInspector());
  EXPECT_EQ(engine->getNbLayers(), static_cast<int32_t>(owned.plan.steps.size()));
  const char* lines = inspector->getEngineInformation(nv::LayerInformationFormat::kONELINE);
  ASSERT_NE(lines, nullptr);
  EXPECT_NE(std::string_view(lines).find("\n  Name: step"), std::string_view::npos)
      << "steps of blocks are indented: " << lines;
  const std::string_view layers = inspector->getEngineInformation(nv::LayerInformationFormat::kJSON);
  EXPECT_NE(layers.find("\"Depth\": 1"), std::string_view::npos) << layers;
}

TEST(ErrorCodes, RecordersAreToldWhatKindOfFailureItWas) {
  EXPECT_EQ(code_for(ErrorCode::device_fault), nv::ErrorCode::kFAILED_EXECUTION);
  EXPECT_EQ(code_for(ErrorCode::device_lost), nv::ErrorCode::kFAILED_EXECUTION);
  EXPECT_EQ(code_for(ErrorCode::device_call_failed), nv::ErrorCode::kFAILED_EXECUTION);
  EXPECT_EQ(code_for(ErrorCode::launch_refused), nv::ErrorCode::kFAILED_EXECUTION);
  EXPECT_EQ(code_for(ErrorCode::cuda_driver_missing), nv::ErrorCode::kFAILED_INITIALIZATION);
  EXPECT_EQ(code_for(ErrorCode::nvrtc_missing), nv::ErrorCode::kFAILED_INITIALIZATION);
  EXPECT_EQ(code_for(ErrorCode::plan_signature), nv::ErrorCode::kFAILED_INITIALIZATION);
  EXPECT_EQ(code_for(ErrorCode::cuda_architecture_unsupported), nv::ErrorCode::kUNSUPPORTED_STATE);
  EXPECT_EQ(code_for(ErrorCode::stream_captured), nv::ErrorCode::kINVALID_STATE);
  EXPECT_EQ(code_for(ErrorCode::kernel_compile_failed), nv::ErrorCode::kINTERNAL_ERROR);
  EXPECT_EQ(code_for(ErrorCode::invalid_argument), nv::ErrorCode::kINVALID_ARGUMENT);
}

}  // namespace
}  // namespace lathe::api
