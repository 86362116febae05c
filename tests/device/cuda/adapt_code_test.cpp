// SPDX-License-Identifier: Apache-2.0
// Which image of a module a GPU takes.
#include <gtest/gtest.h>

#include "base/deflate.h"
#include "device/cuda/adapt_code.h"
#include "device/cuda/launch_case.h"
#include "device/family.h"
#include "fake_cuda/fake_device.h"
#include "plan/limits.h"
#include "plan/writer.h"
#include "runtime/context.h"

namespace lathe::cuda {
namespace {

const std::byte kBytes[16] = {};

CodeModule module_of(const std::vector<std::pair<CodeForm, const char*>>& images) {
  CodeModule module;
  for (size_t i = 0; i < images.size(); ++i)
    module.images.push_back({images[i].first, images[i].second, std::span(kBytes).subspan(i, 1)});
  return module;
}

constexpr CodeForm kBinary = CodeForm::binary, kAssembly = CodeForm::assembly, kSource = CodeForm::source;

// The image's number, by its bytes; -1: none.
int chosen(const CodeModule& module, std::string_view target) {
  const Result<const CodeImage*> image = choose_image(module, target);
  if (image) return static_cast<int>((*image)->bytes.data() - kBytes);
  EXPECT_EQ(image.error().code, ErrorCode::plan_target) << image.error().message;
  return -1;
}

TEST(AdaptCode, TheExactBinaryElseTheNewestAssembly) {
  const CodeModule all = module_of({{kAssembly, "cuda-sm_75"},
                                    {kBinary, "cuda-sm_80"},
                                    {kAssembly, "cuda-sm_80"},
                                    {kAssembly, "cuda-sm_100"},
                                    {kAssembly, "cuda-sm_90a"},
                                    {kBinary, "cuda-sm_90"}});
  EXPECT_EQ(chosen(all, "cuda-sm_90"), 5);
  EXPECT_EQ(chosen(all, "cuda-sm_80"), 1);
  EXPECT_EQ(chosen(all, "cuda-sm_86"), 2) << "a binary for sm_80 is for that alone";
  EXPECT_EQ(chosen(all, "cuda-sm_75"), 0);
  EXPECT_EQ(chosen(all, "cuda-sm_120"), 3);
  EXPECT_EQ(chosen(all, "cuda-emulator"), -1);
}

TEST(AdaptCode, AssemblyOfOneArchitectureRunsThereOnly) {
  const CodeModule module = module_of({{kAssembly, "cuda-sm_90a"}});
  EXPECT_EQ(chosen(module, "cuda-sm_90"), 0);
  EXPECT_EQ(chosen(module, "cuda-sm_100"), -1);
  EXPECT_EQ(chosen(module, "cuda-sm_80"), -1);
}

TEST(AdaptCode, WhatIsThereIsListed) {
  const CodeModule module = module_of({{kBinary, "cuda-sm_80"}, {kAssembly, "cuda-sm_100"}, {kSource, "other"}});
  const Result<const CodeImage*> code = choose_image(module, "cuda-sm_90");
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().code, ErrorCode::plan_target);
  for (const char* part : {"binary for cuda-sm_80", "assembly for cuda-sm_100", "source for other", "'cuda-sm_90'"})
    EXPECT_NE(code.error().message.find(part), std::string::npos) << code.error().message;
  EXPECT_EQ(chosen(module, "cpu-x86_64-avx2"), -1);
  EXPECT_EQ(chosen({}, "cuda-sm_90"), -1);
}

// A plan of one launch, whose module has the images that a test gives it, on the stand-in driver.
class AdaptedPlanTest : public FakeDeviceTest {
 protected:
  static plan::Plan make_plan(CodeModule module) {
    plan::Plan plan;
    plan.target = "cuda-sm_90";
    plan.symbols = {{"n", SymbolSource::input_dim, 0, 0, {1, 100}}};
    plan.profiles = {{{{1, 7, 100}}}};
    const Shape dims = {Expr::symbol(0)};
    plan.tensors = {{"x", DType::f32, dims, {}, plan::StorageKind::binding, 0, 0},
                    {"y", DType::f32, dims, {}, plan::StorageKind::binding, 1, 0}};
    plan.bindings = {{"x", true, 0, false, {}}, {"y", false, 1, false, {}}};
    const LaunchCase launch;
    plan::Step& step = plan.steps.emplace_back();
    step.work = plan::DeviceLaunches{"add", "", launch.launches, launch.workspace};
    step.name = "sum";
    step.inputs = {0};
    step.outputs = {1};
    plan.codes = {std::move(module)};
    return plan;
  }

  static Result<std::shared_ptr<const Engine>> load(const plan::Plan& plan) {
    LATHE_ASSIGN(const std::vector<std::byte> bytes, plan::write_plan(plan));
    LATHE_ASSIGN(std::shared_ptr<Device> device, open_device(0));
    return Engine::load(bytes, nullptr, {std::move(device), {}});
  }

  const std::vector<std::byte> code_ = bytes_of(LaunchCase().text), bytes_ = bytes_of("nothing that a GPU takes");
  const std::vector<std::byte> source_ = bytes_of(R"(
#ifdef __CUDACC__
#define KERNEL extern "C" __global__
#else
#define KERNEL extern "C" __attribute__((visibility("default")))
KERNEL const unsigned lathe_kernel_parameters = 4;
#endif
KERNEL void lathe_kernel(const float* x, float* y, float*, long n) {
  if (n > 0) y[0] = x[0];
}
)");
};

TEST_F(AdaptedPlanTest, LoadsWhatFits) {
  for (const std::vector<CodeImage>& images : std::vector<std::vector<CodeImage>>{
           {{CodeForm::binary, "cuda-sm_90", code_}},
           {{CodeForm::binary, "cuda-sm_80", bytes_}, {CodeForm::assembly, "cuda-sm_80", code_}},
           {{CodeForm::source, "cuda", bytes_}, {CodeForm::binary, "cuda-sm_90", code_}}}) {
    const auto engine = load(make_plan({images}));
    ASSERT_OK(engine);
    ASSERT_OK((*engine)->make_kernels(nullptr));
    EXPECT_NE((*engine)->code()[0].kernel, nullptr);
  }
}

TEST_F(AdaptedPlanTest, NamesWhatIsThereWhereNothingFits) {
  const auto engine = load(make_plan({{{CodeForm::binary, "cuda-sm_80", code_}}}));
  EXPECT_FAILS(engine, plan_target);
  EXPECT_NE(engine.error().message.find("binary for cuda-sm_80"), std::string::npos) << engine.error().message;
}

TEST_F(AdaptedPlanTest, CompressedCodeIsLoaded) {
  const std::vector<std::byte> deflated = *deflate_bytes(code_);
  for (const std::vector<CodeImage>& images : std::vector<std::vector<CodeImage>>{
           {{CodeForm::binary, "cuda-sm_90", deflated}, {CodeForm::source, "cuda", source_}},
           {{CodeForm::binary, "cuda-sm_80", bytes_}, {CodeForm::assembly, "cuda-sm_80", deflated}}}) {
    plan::Plan plan = make_plan({images});
    plan.is_code_deflated = true;
    const auto engine = load(plan);
    ASSERT_OK(engine);
    ASSERT_OK((*engine)->make_kernels(nullptr));
    EXPECT_NE((*engine)->code()[0].kernel, nullptr);
  }
}

TEST_F(AdaptedPlanTest, CompressedCodeIsRefusedWhereItIsDamagedOrTooMuch) {
  const std::vector<std::byte> deflated = *deflate_bytes(code_);
  const auto expect_refusal = [&](std::span<const std::byte> bytes, std::string_view reason) {
    plan::Plan plan = make_plan({{{CodeForm::binary, "cuda-sm_90", bytes}}});
    plan.is_code_deflated = true;
    const auto engine = load(plan);
    EXPECT_FAILS(engine, plan_malformed);
    EXPECT_NE(engine.error().message.find(reason), std::string::npos) << engine.error().message;
  };
  expect_refusal(code_, "compressed content");
  expect_refusal(std::span(deflated).first(deflated.size() / 2), "is damaged");
  std::vector<std::byte> large = deflated;
  for (size_t i = 0; i < kDeflatedSizeBytes; ++i)
    large[i] = static_cast<std::byte>((plan::kMaxDeflatedCode + 1) >> (8 * i));
  expect_refusal(large, "at most");
}

// By what stands in for NVRTC, which compiles for the host and gives what the stand-in driver loads.
TEST_F(AdaptedPlanTest, SourceIsCompiled) {
  setenv("LATHE_NVRTC", FAKE_NVRTC, 1);
  plan::Plan plan = make_plan({{{CodeForm::source, "cuda", source_}}});
  std::get<plan::DeviceLaunches>(plan.steps[0].work).launches[0].entry = "lathe_kernel";
  const auto engine = load(plan);
  ASSERT_OK(engine);
  EXPECT_EQ((*engine)->code()[0].kernel, nullptr) << "nothing is compiled before it is needed";
  ASSERT_OK((*engine)->make_kernels(nullptr));
  EXPECT_NE((*engine)->code()[0].kernel, nullptr);
  const auto of_nonsense = load(make_plan({{{CodeForm::source, "cuda", bytes_}}}));
  ASSERT_OK(of_nonsense);
  const Result<> broken = (*of_nonsense)->make_kernels(nullptr);
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().message.find("device code that the plan has as source"), std::string::npos)
      << broken.error().message;
}

}  // namespace
}  // namespace lathe::cuda
