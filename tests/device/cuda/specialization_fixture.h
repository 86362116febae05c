// SPDX-License-Identifier: Apache-2.0
// An engine of one kernel on the stand-in GPU, of which the open form writes -1 and the source writes the size that it
// is given: a result tells which of them has run. What compiles can be made to wait.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <mutex>

#include "base/deflate.h"
#include "device/cuda/launch_case.h"
#include "device/cuda/toolchain.h"
#include "fake_cuda/fake_device.h"
#include "plan/writer.h"
#include "runtime/context.h"

namespace lathe::cuda {

struct SharedLines final : Log {
  void write(Severity severity, std::string_view line) override {
    const std::lock_guard lock(mutex);
    if (severity == Severity::warning) warnings.emplace_back(line);
  }
  std::vector<std::string> taken() {
    const std::lock_guard lock(mutex);
    return std::exchange(warnings, {});
  }
  std::mutex mutex;
  std::vector<std::string> warnings;
};

class SpecializationTest : public FakeDeviceTest {
 protected:
  using Policy = SpecializationPolicy;
  static constexpr int64_t kMost = 1000;

  void SetUp() override {
    FakeDeviceTest::SetUp();
    setenv("LATHE_NVRTC", FAKE_NVRTC, 1);
    fake_cuda_set_kernel(
        "lathe_kernel", [](void** parameters, const unsigned*, void*) { **static_cast<int64_t**>(parameters[1]) = -1; },
        nullptr);
    char name[] = "/tmp/lathe_specialization_XXXXXX";
    const char* const given = std::getenv("LATHE_SPECIALIZATION_FOLDER");  // by the process that has started this one
    folder_ = given ? given : ::mkdtemp(name);
    const char* const kept = std::getenv("LATHE_CACHE_DIR");  // of code that other tests have compiled
    cache_folder_ = kept ? kept : "";
    setenv("LATHE_CACHE_DIR", folder_.c_str(), 1);
    releaseIdleDevices();  // and compilers with their cache
    device_ = *open_device(0);
    memory_ = *device_->allocate(2 * kMost * sizeof(float));
    load(kSource);
  }
  void TearDown() override {
    go();  // the engine waits for what is being compiled
    engine_.reset();
    memory_ = DeviceMemory();
    device_.reset();
    for (const char* name : {"LATHE_COMPILER", "FAKE_NVRTC_FAULT", "LATHE_CACHE_DIR"}) unsetenv(name);
    if (!cache_folder_.empty()) setenv("LATHE_CACHE_DIR", cache_folder_.c_str(), 1);
    std::filesystem::remove_all(folder_);
    FakeDeviceTest::TearDown();
  }

  void load(std::string_view source) {
    const std::vector<std::byte> open = bytes_of("FAKE_CUBIN sm_90\nkernel lathe_kernel 4\n");
    constexpr std::string_view kHeader = "#define ONE 1L\n";
    const auto header = deflate_bytes(std::as_bytes(std::span(kHeader)));
    ASSERT_OK(header);
    plan::Plan plan;
    plan.target = "cuda-sm_90";
    plan.symbols = {{"n", SymbolSource::input_dim, 0, 0, {1, kMost}}};
    plan.profiles = {{{{1, 7, kMost}}}};
    plan.tensors = {{"x", DType::f32, {Expr::symbol(0)}, {}, plan::StorageKind::binding, 0, 0},
                    {"y", DType::i64, {Expr(1)}, {}, plan::StorageKind::binding, 1, 0}};
    plan.bindings = {{"x", true, 0, false, {}}, {"y", false, 1, false, {}}};
    LaunchCase one;
    one.launches[0].entry = "lathe_kernel";
    plan::Step& step = plan.steps.emplace_back();
    step.work = plan::DeviceLaunches{"size", "", one.launches, one.workspace};
    step.name = "size";
    step.inputs = {0};
    step.outputs = {1};
    plan.codes = {
        {{{CodeForm::binary, "cuda-sm_90", open}, {CodeForm::source, "cuda", std::as_bytes(std::span(source))}}}};
    plan.headers = {SourceFile{"lib/one.cuh", std::span<const std::byte>(*header)}};
    const auto bytes = plan::write_plan(plan);
    ASSERT_OK(bytes);
    auto engine = lathe::Engine::load(*bytes, nullptr, {device_, {}});
    ASSERT_OK(engine);
    engine_ = *std::move(engine);
  }

  std::unique_ptr<Context> make_context(Policy policy, std::shared_ptr<KernelCache> cache = nullptr) {
    std::unique_ptr<Context> context = *Context::create(engine_);
    context->set_specialization(policy, {std::move(cache), &log_});
    EXPECT_TRUE(context->set_address(0, memory_.data()));
    EXPECT_TRUE(context->set_address(1, memory_.data() + kMost * sizeof(float)));
    return context;
  }
  // What the kernel has written.
  int64_t run(Context& context, int64_t n) {
    const Result<> set = context.set_input_dims(0, std::array{n});
    const Result<> ran = set ? context.run() : set;
    EXPECT_TRUE(ran) << ran.error().message;
    return *reinterpret_cast<const int64_t*>(context.address(1));
  }
  // Of sizes that have no kernels yet: these are begun behind the second run.
  void run_twice(Context& context, int64_t n) {
    for (int i = 0; i < 2; ++i) EXPECT_EQ(run(context, n), kOpen);
  }
  static constexpr int64_t kOpen = -1;
  static int64_t special(int64_t n) { return 3 * n; }  // of LaunchCase
  Specializer::Counts counts() const { return engine_->specializer()->counts(); }
  void wait_for_all() const {
    while (counts().waiting > 0) ::usleep(1000);
  }

  // Nothing is compiled from here on until go(), or the end of this process.
  void hold() {
    const std::string script = (folder_ / "compiler").string(), folder = folder_.string();
    std::ofstream(script) << "#!/bin/sh\nwhile [ -d " << folder << " ] && [ ! -e " << folder
                          << "/go ] && kill -0 $2; do sleep 0.01; done\nexec " << *compiler_program({}) << " \"$@\"\n";
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    setenv("LATHE_COMPILER", script.c_str(), 1);
    releaseIdleDevices();
  }
  void go() const { std::ofstream(folder_ / "go").put('1'); }

  static constexpr std::string_view kSource = R"(
#include "lib/one.cuh"
#ifdef __CUDACC__
#define KERNEL extern "C" __global__
#else
#define KERNEL extern "C" __attribute__((visibility("default")))
KERNEL const unsigned lathe_kernel_parameters = 4;
extern "C" void lathe_emulated_dependency_wait();
#endif
KERNEL void lathe_kernel(const float*, long* y, float*, long n) {
#ifndef __CUDACC__
  lathe_emulated_dependency_wait();
#endif
  y[0] = ONE * n;
}
)";
  SharedLines log_;
  std::filesystem::path folder_;
  std::string cache_folder_;
  std::shared_ptr<Device> device_;
  DeviceMemory memory_;
  std::shared_ptr<const lathe::Engine> engine_;
};

}  // namespace lathe::cuda
