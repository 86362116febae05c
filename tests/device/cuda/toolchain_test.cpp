// SPDX-License-Identifier: Apache-2.0
// Compiling in worker processes: what a source, NVRTC or a worker does wrong costs what it must.
#include "device/cuda/toolchain.h"

#include <atomic>
#include <csignal>

#include "device/cuda/toolchain_fixture.h"
#include "sanitized.h"

namespace lathe::cuda {
namespace {

namespace fs = std::filesystem;

TEST_F(ToolchainTest, WorkersTellOfNvrtcWhichIsNotLoadedHere) {
  const auto toolchain = open();
  EXPECT_EQ(toolchain->nvrtc().path, FAKE_NVRTC);
  EXPECT_EQ(toolchain->nvrtc().major, 13);
  EXPECT_EQ(toolchain->nvrtc().architectures, (std::vector<int32_t>{75, 80, 86, 90, 100, 120}));
  EXPECT_TRUE(compiles(*toolchain));
}

TEST_F(ToolchainTest, WorkersAreReusedAndEndWithTheToolchain) {
  auto toolchain = open();
  EXPECT_TRUE(compiles(*toolchain, "one"));
  const std::set<pid_t> before = children();
  EXPECT_EQ(before.size(), 1u);
  EXPECT_TRUE(compiles(*toolchain, "two"));
  EXPECT_EQ(children(), before);
  toolchain.reset();
  EXPECT_EQ(children(), std::set<pid_t>());
}

TEST_F(ToolchainTest, ManyThreadsShareFewWorkers) {
  const auto toolchain = open();
  std::atomic<int> compiled = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 16; ++i)
      threads.emplace_back([&] {
        for (int n = 0; n < 4; ++n) compiled += compiles(*toolchain, fmt::format("kernel {}", n));
      });
  }
  EXPECT_EQ(compiled, 64);
  EXPECT_LE(children().size(), 2u);
}

TEST_F(ToolchainTest, ErrorsOfTheSourceAreNoLosses) {
  const auto toolchain = open();
  CompileRequest wrong = kernel("wrong");
  wrong.source += "unheard_of;\n";
  const auto compiled = toolchain->compile(wrong);
  ASSERT_OK(compiled);
  EXPECT_EQ(compiled->result, NVRTC_ERROR_COMPILATION);
  EXPECT_NE(compiled->log.find("unheard_of"), std::string::npos) << compiled->log;
}

TEST_F(ToolchainTest, ACrashCostsTheKernelAlone) {
  const std::string message = message_of_loss("crash");
  EXPECT_NE(message.find(kIsSanitized ? "exit status" : "signal 11"), std::string::npos) << message;
}

TEST_F(ToolchainTest, AnEndCostsTheKernelAlone) {
  EXPECT_NE(message_of_loss("exit").find("exit status 7"), std::string::npos);
}

TEST_F(ToolchainTest, WhatStandsStillIsStopped) {
  options_.seconds = 3;
  EXPECT_NE(message_of_loss("hang").find("did nothing for 3 s, and was stopped"), std::string::npos);
}

TEST_F(ToolchainTest, WhatRunsForEverIsStopped) {
  options_.seconds = 3;
  EXPECT_NE(message_of_loss("spin").find("more than 3 s of processor time, and was stopped"), std::string::npos);
}

TEST_F(ToolchainTest, MemoryIsLimited) {
  if (kIsSanitized) GTEST_SKIP();
  options_.memory = size_t{512} << 20;
  EXPECT_NE(message_of_loss("memory").find("limited to 512 MiB"), std::string::npos);
}

TEST_F(ToolchainTest, LongLogsAreShortened) {
  setenv("FAKE_NVRTC_FAULT", "log:talks", 1);
  const auto toolchain = open();
  const auto compiled = toolchain->compile(kernel("talks"));
  ASSERT_OK(compiled);
  EXPECT_LT(compiled->log.size(), size_t{1} << 20);
  EXPECT_TRUE(compiled->log.starts_with("first line\n"));
  EXPECT_TRUE(compiled->log.ends_with("8 bytes spill stores\n"));
}

TEST_F(ToolchainTest, WhatTheCompilerPrintsIsNotSeen) {
  setenv("FAKE_NVRTC_FAULT", "noise:loud", 1);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EXPECT_TRUE(compiles(*open(), "loud"));
  EXPECT_EQ(testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr(), "");
}

TEST_F(ToolchainTest, WorkersThatAreKilledAreReplaced) {
  setenv("FAKE_NVRTC_FAULT", "hang:waits", 1);
  const auto toolchain = open();
  EXPECT_TRUE(compiles(*toolchain));
  const std::set<pid_t> first = children();
  ASSERT_EQ(first.size(), 1u);
  std::jthread killer([&] {
    ::usleep(300000);
    ::kill(*first.begin(), SIGKILL);
  });
  const auto compiled = toolchain->compile(kernel("waits"));
  EXPECT_FAILS(compiled, kernel_compile_failed);
  EXPECT_NE(compiled.error().message.find("signal 9"), std::string::npos) << compiled.error().message;
  // One that waits for work, too: then the next kernel is lost.
  EXPECT_TRUE(compiles(*toolchain, "fine again"));
  ASSERT_EQ(children().size(), 1u);
  EXPECT_NE(children(), first);
}

TEST_F(ToolchainTest, NvrtcThatCrashesAtOnceIsToldAndNotLoadedHere) {
  setenv("FAKE_NVRTC_FAULT", "load", 1);
  options_.nvrtc = {fmt::format("{}/./{}", fs::path(FAKE_NVRTC).parent_path().string(),
                                fs::path(FAKE_NVRTC).filename().string())};  // of which nothing is known yet
  const auto toolchain = open_toolchain(options_);
  EXPECT_FAILS(toolchain, nvrtc_unsuitable);
  EXPECT_NE(toolchain.error().message.find("opening NVRTC"), std::string::npos) << toolchain.error().message;
}

TEST_F(ToolchainTest, NvrtcThatEndsWithEveryKernelIsGivenUp) {
  setenv("FAKE_NVRTC_FAULT", "crash:kernel", 1);
  const auto toolchain = open();
  for (int i = 0; i < 8; ++i) EXPECT_FAILS(toolchain->compile(kernel("a kernel")), kernel_compile_failed);
  const auto last = toolchain->compile(kernel("fine"));
  EXPECT_FAILS(last, kernel_compile_failed);
  EXPECT_NE(last.error().message.find("has compiled nothing"), std::string::npos) << last.error().message;
}

// All who wait for a worker are told.
TEST_F(ToolchainTest, NvrtcIsGivenUpByAllThreads) {
  setenv("FAKE_NVRTC_FAULT", "crash:kernel", 1);
  options_.workers = 1;
  const auto toolchain = open();
  std::atomic<int> failed = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 24; ++i) threads.emplace_back([&] { failed += !toolchain->compile(kernel("a kernel")); });
  }
  EXPECT_EQ(failed, 24);
}

// As when it is updated between two builds of one process.
TEST_F(ToolchainTest, NvrtcThatWasReplacedIsUsedByTheNextToolchain) {
  options_.nvrtc = {testing::TempDir() + "/replaced/libnvrtc.so"};
  fs::create_directories(fs::path(options_.nvrtc[0]).parent_path());
  fs::copy_file(FAKE_NVRTC, options_.nvrtc[0], fs::copy_options::overwrite_existing);
  EXPECT_TRUE(compiles(*open()));
  setenv("FAKE_NVRTC_FAULT", "newer", 1);
  EXPECT_FAILS(open()->compile(kernel("fine")), nvrtc_unsuitable);
  const auto toolchain = open();
  EXPECT_EQ(toolchain->nvrtc().minor, 1);
  EXPECT_TRUE(compiles(*toolchain));
  unsetenv("FAKE_NVRTC_FAULT");
  EXPECT_FAILS(open()->compile(kernel("fine")), nvrtc_unsuitable);
  EXPECT_TRUE(compiles(*open()));
}

TEST_F(ToolchainTest, AMissingNvrtcIsNamed) {
  options_.nvrtc = {"/nowhere/libnvrtc.so.13"};
  const auto toolchain = open_toolchain(options_);
  EXPECT_FAILS(toolchain, nvrtc_missing);
  EXPECT_NE(toolchain.error().message.find("/nowhere/libnvrtc.so.13"), std::string::npos);
}

// The kernels of a worker that cannot open NVRTC are compiled by those that could. They are none that the stand-in has
// kept, so that one worker is busy while others are started.
TEST_F(ToolchainTest, WorkersWithoutNvrtcCostNoKernel) {
  const auto toolchain = open();
  EXPECT_TRUE(compiles(*toolchain));
  setenv("FAKE_NVRTC_FAULT", "load", 1);
  std::atomic<int> compiled = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i)
      threads.emplace_back([&, i] { compiled += compiles(*toolchain, fmt::format("kernel {} of {}", i, getpid())); });
  }
  EXPECT_EQ(compiled, 6);
  EXPECT_EQ(children().size(), 1u);
  ASSERT_EQ(log_.lines.size(), 1u);
  EXPECT_NE(log_.lines[0].find("opening NVRTC"), std::string::npos) << log_.lines[0];
}

TEST_F(ToolchainTest, AllocationsMayFailInTheWorker) {
  if (kIsSanitized) GTEST_SKIP();
  options_.memory = size_t{48} << 20;
  const auto toolchain = open();
  CompileRequest large = kernel("large");
  large.source.append(size_t{60} << 20, ' ');
  EXPECT_FAILS(toolchain->compile(large), kernel_compile_failed);
  EXPECT_FAILS(toolchain->compile({std::string(size_t{300} << 20, ' '), {}, {}}), kernel_compile_failed);
  EXPECT_TRUE(compiles(*toolchain));
}

TEST(CompilerProgram, LiesBesideTheLibrary) {
  unsetenv("LATHE_COMPILER");
  const auto found = compiler_program(std::nullopt);
  ASSERT_OK(found);
  EXPECT_TRUE(fs::path(*found).is_absolute()) << *found;
  EXPECT_EQ(::access(found->c_str(), X_OK), 0) << *found;
  setenv("LATHE_COMPILER", "/given", 1);
  EXPECT_EQ(*compiler_program(std::nullopt), "/given");
  EXPECT_EQ(*compiler_program("/nearer"), "/nearer");
  unsetenv("LATHE_COMPILER");
}

}  // namespace
}  // namespace lathe::cuda
