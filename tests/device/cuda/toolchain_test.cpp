// SPDX-License-Identifier: Apache-2.0
// Compiling in worker processes, with a stand-in for NVRTC that can be told to misbehave (FAKE_NVRTC_FAULT).
#include "device/cuda/toolchain.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "base/child_process.h"
#include "device/cuda/nvrtc_compiler.h"
#include "fake_cuda/fake_device.h"

namespace lathe::cuda {
namespace {

namespace fs = std::filesystem;

struct Lines final : Log {
  void write(Severity severity, std::string_view line) override {
    if (severity == Severity::warning) warnings.emplace_back(line);
  }
  std::vector<std::string> warnings;
};

// The processes whose parent this is.
std::set<pid_t> children() {
  std::set<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "stat");
    std::string id, name, state, parent;
    if (file >> id >> name >> state >> parent && parent == std::to_string(::getpid()) && state != "Z")
      found.insert(std::atoi(id.c_str()));
  }
  return found;
}

size_t descriptors() {
  return static_cast<size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

CompileRequest kernel(const std::string& text) {
  return {fmt::format("// {}\n#include \"lib/tensor.cuh\"\nLATHE_KERNEL(64, 1) void lathe_kernel() {{}}\n", text),
          {{"lib/tensor.cuh", "#define LATHE_KERNEL(threads, blocks) extern \"C\"\n"}},
          {"--gpu-architecture=sm_90a"}};
}

class ToolchainTest : public testing::Test {
 protected:
  void SetUp() override {
    descriptors_ = descriptors();
    options_.nvrtc = {FAKE_NVRTC};
    options_.workers = 2;
    options_.log = &log_;
    unsetenv("LATHE_COMPILER");
  }
  // No process and no descriptor is left over.
  void TearDown() override {
    unsetenv("FAKE_NVRTC_FAULT");
    EXPECT_EQ(children(), std::set<pid_t>());
    EXPECT_EQ(descriptors(), descriptors_);
  }
  std::unique_ptr<Toolchain> open() {
    Result<std::unique_ptr<Toolchain>> toolchain = open_toolchain(options_);
    EXPECT_TRUE(toolchain) << toolchain.error().to_string();
    return toolchain ? *std::move(toolchain) : nullptr;
  }
  // Whether a kernel that is none of the faulty ones compiles.
  static bool compiles(Toolchain& toolchain, const std::string& text = "fine") {
    const Result<Compiled> compiled = toolchain.compile(kernel(text));
    EXPECT_TRUE(compiled) << compiled.error().to_string();
    return compiled && compiled->result == NVRTC_SUCCESS && compiled->code.starts_with("\177ELF");
  }
  // That of a source which misbehaves so; the toolchain is well afterwards.
  std::string message_of_loss(const char* fault) {
    CompilerOptions patient = options_;  // the stand-in's own compiler is slow at first, and keeps what it has made
    patient.seconds = 60;
    const auto first = open_toolchain(patient);
    EXPECT_TRUE(first && compiles(**first, "fine") && compiles(**first, "faulty"));
    setenv("FAKE_NVRTC_FAULT", fmt::format("{}:faulty", fault).c_str(), 1);
    const auto toolchain = open();
    const Result<Compiled> compiled = toolchain->compile(kernel("faulty"));
    EXPECT_FALSE(compiled);
    if (compiled) return "";
    EXPECT_EQ(compiled.error().code, ErrorCode::kernel_compile_failed);
    EXPECT_TRUE(compiles(*toolchain));
    EXPECT_EQ(log_.warnings, std::vector<std::string>()) << "the candidate's error says it";
    return compiled.error().message;
  }

  CompilerOptions options_;
  Lines log_;
  size_t descriptors_ = 0;
};

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
  EXPECT_NE(message_of_loss("crash").find("signal 11"), std::string::npos);
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
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  options_.memory = size_t{512} << 20;
  EXPECT_NE(message_of_loss("memory").find("limited to 512 MiB"), std::string::npos);
#endif
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

TEST_F(ToolchainTest, InThisProcessOnRequest) {
  setenv("LATHE_COMPILER", "", 1);
  const auto toolchain = open();
  EXPECT_TRUE(compiles(*toolchain));
  EXPECT_EQ(children(), std::set<pid_t>());
  EXPECT_EQ(log_.warnings, std::vector<std::string>());
}

TEST_F(ToolchainTest, InThisProcessWithoutTheProgram) {
  options_.program = "/nowhere/lathe-compiler";
  const auto toolchain = open();
  EXPECT_TRUE(compiles(*toolchain, "one") && compiles(*toolchain, "two"));
  ASSERT_EQ(log_.warnings.size(), 1u);
  EXPECT_NE(log_.warnings[0].find("/nowhere/lathe-compiler"), std::string::npos) << log_.warnings[0];
}

TEST_F(ToolchainTest, InThisProcessWhereTheProgramIsAnother) {
  options_.program = "/bin/true";
  const auto toolchain = open();
  EXPECT_TRUE(compiles(*toolchain));
  ASSERT_EQ(log_.warnings.size(), 1u);
  EXPECT_NE(log_.warnings[0].find("exit status 0"), std::string::npos) << log_.warnings[0];
}

// It greets with protocol 99.
TEST_F(ToolchainTest, InThisProcessWhereTheProgramIsOfAnotherVersion) {
  options_.program = testing::TempDir() + "/another_version";
  std::ofstream(*options_.program) << "#!/bin/sh\nprintf 'LLWK\\001\\000\\000\\000\\004\\000\\000\\000\\000\\000\\000"
                                      "\\000\\143\\000\\000\\000' >&"
                                   << lathe::ChildProcess::kSocket << "\n";
  fs::permissions(*options_.program, fs::perms::owner_all);
  const auto toolchain = open();
  EXPECT_TRUE(compiles(*toolchain));
  ASSERT_EQ(log_.warnings.size(), 1u);
  EXPECT_NE(log_.warnings[0].find("another version of Lathe (its protocol is 99"), std::string::npos)
      << log_.warnings[0];
  EXPECT_EQ(log_.warnings[0].find("started"), std::string::npos) << log_.warnings[0];
}

// The kernels of a worker that cannot open NVRTC are compiled by those that could.
TEST_F(ToolchainTest, WorkersWithoutNvrtcCostNoKernel) {
  const auto toolchain = open();
  EXPECT_TRUE(compiles(*toolchain));
  setenv("FAKE_NVRTC_FAULT", "load", 1);
  std::atomic<int> compiled = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i)
      threads.emplace_back([&, i] { compiled += compiles(*toolchain, fmt::format("kernel {}", i)); });
  }
  EXPECT_EQ(compiled, 6);
  EXPECT_EQ(children().size(), 1u);
  ASSERT_EQ(log_.warnings.size(), 1u);
  EXPECT_NE(log_.warnings[0].find("opening NVRTC"), std::string::npos) << log_.warnings[0];
}

TEST_F(ToolchainTest, AllocationsMayFailInTheWorker) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  options_.memory = size_t{48} << 20;
  const auto toolchain = open();
  CompileRequest large = kernel("large");
  large.source.append(size_t{60} << 20, ' ');
  EXPECT_FAILS(toolchain->compile(large), kernel_compile_failed);
  EXPECT_FAILS(toolchain->compile({std::string(size_t{300} << 20, ' '), {}, {}}), kernel_compile_failed);
  EXPECT_TRUE(compiles(*toolchain));
#endif
}

// What a process may do to itself is tried in a fork, whose end tells.
template <class Work>
void in_a_fork(Work&& work) {
  const pid_t id = ::fork();
  if (id == 0) {
    work();
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(id, &status, 0), id);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(ToolchainTest, WorksWhateverTheProcessHasDone) {
  in_a_fork([&] {
    ASSERT_EQ(::chdir("/"), 0);
    for (const int stream : {0, 1, 2}) ::close(stream);
    ::signal(SIGCHLD, SIG_IGN);
    ::signal(SIGPIPE, SIG_DFL);
    {
      const auto toolchain = open();
      EXPECT_TRUE(compiles(*toolchain));
      // One that is idle is killed: writing to it must not raise SIGPIPE.
      for (const pid_t child : children()) ::kill(child, SIGKILL);
      while (!children().empty()) ::usleep(1000);
      EXPECT_FALSE(toolchain->compile(kernel("lost")));
      EXPECT_TRUE(compiles(*toolchain));
    }
    EXPECT_EQ(children(), std::set<pid_t>());
    EXPECT_EQ(log_.warnings, std::vector<std::string>());
  });
}

TEST_F(ToolchainTest, AForkHasItsOwnWorkers) {
  const auto toolchain = open();
  EXPECT_TRUE(compiles(*toolchain));
  const std::set<pid_t> ours = children();
  in_a_fork([&] {
    EXPECT_TRUE(compiles(*toolchain, "in the fork"));
    EXPECT_EQ(children().size(), 1u);
    for (const pid_t child : children()) ::kill(child, SIGKILL);
  });
  EXPECT_TRUE(compiles(*toolchain));
  EXPECT_EQ(children(), ours);
}

// Even where a fork still holds the connection, and while they compile.
TEST_F(ToolchainTest, WorkersEndWithTheProcess) {
  setenv("FAKE_NVRTC_FAULT", "hang:waits", 1);
  int ids[2];
  ASSERT_EQ(::pipe(ids), 0);
  pid_t holder = -1;
  const pid_t builder = ::fork();
  if (builder == 0) {
    const auto toolchain = open();
    if (!compiles(*toolchain)) ::_exit(1);
    const pid_t worker = *children().begin();
    holder = ::fork();
    if (holder == 0) {
      ::pause();
      ::_exit(0);
    }
    const pid_t both[] = {worker, holder};
    if (::write(ids[1], both, sizeof both) != sizeof both) ::_exit(1);
    std::jthread waits([&] { (void)toolchain->compile(kernel("waits")); });
    ::usleep(200000);
    ::kill(::getpid(), SIGKILL);
  }
  pid_t both[2] = {};
  ASSERT_EQ(::read(ids[0], both, sizeof both), static_cast<ssize_t>(sizeof both));
  ASSERT_EQ(::waitpid(builder, nullptr, 0), builder);
  const auto is_running = [](pid_t id) {
    std::ifstream file(fmt::format("/proc/{}/stat", id));
    std::string number, name, state;
    return file >> number >> name >> state && state != "Z";
  };
  for (int tries = 0; tries < 1000 && is_running(both[0]); ++tries) ::usleep(10000);
  EXPECT_FALSE(is_running(both[0]));
  ::kill(both[1], SIGKILL);
  ::close(ids[0]);
  ::close(ids[1]);
}

// As in containers and browsers whose filters forbid to start programs.
void forbid(std::initializer_list<long> calls) {
  std::vector<sock_filter> filter = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const long call : calls) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

TEST_F(ToolchainTest, WhereNoProcessMayBeStarted) {
  compiles(*open());  // the stand-in's own compiler has made the kernel, for it could not in there
  for (const long call : {SYS_execve, SYS_socketpair})
    in_a_fork([&] {
      forbid({call});
      const auto toolchain = open();
      EXPECT_TRUE(compiles(*toolchain));
      ASSERT_EQ(log_.warnings.size(), 1u);
      EXPECT_NE(log_.warnings[0].find("not permitted"), std::string::npos) << log_.warnings[0];
    });
}

// What is started first has to do when no more can be.
TEST_F(ToolchainTest, WhereFewProcessesMayBeStarted) {
  for (int i = 0; i < 8; ++i) compiles(*open(), fmt::format("kernel {}", i));
  in_a_fork([&] {
    const auto toolchain = open();
    EXPECT_TRUE(compiles(*toolchain));
    forbid({SYS_execve});
    std::atomic<int> compiled = 0;
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 8; ++i)
        threads.emplace_back([&, i] { compiled += compiles(*toolchain, fmt::format("kernel {}", i)); });
    }
    EXPECT_EQ(compiled, 8);
    EXPECT_EQ(children().size(), 1u);
    EXPECT_EQ(log_.warnings, std::vector<std::string>());
    for (const pid_t child : children()) ::kill(child, SIGKILL);
    EXPECT_FAILS(toolchain->compile(kernel("fine")), kernel_compile_failed);
    EXPECT_TRUE(compiles(*toolchain));
    EXPECT_EQ(log_.warnings.size(), 1u);
  });
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
