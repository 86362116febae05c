// SPDX-License-Identifier: Apache-2.0
// Compiling where the process that asks has no workers, forks, ends, or may start no process.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <csignal>
#include <cstddef>

#include "base/child_process.h"
#include "device/cuda/toolchain_fixture.h"

namespace lathe::cuda {
namespace {

namespace fs = std::filesystem;

TEST_F(ToolchainTest, InThisProcessOnRequest) {
  setenv("LATHE_COMPILER", "", 1);
  const auto toolchain = open();
  EXPECT_TRUE(compiles(*toolchain));
  EXPECT_EQ(children(), std::set<pid_t>());
  EXPECT_EQ(log_.lines, std::vector<std::string>());
}

TEST_F(ToolchainTest, InThisProcessWithoutTheProgram) {
  options_.program = "/nowhere/lathe-compiler";
  const auto toolchain = open();
  EXPECT_TRUE(compiles(*toolchain, "one") && compiles(*toolchain, "two"));
  ASSERT_EQ(log_.lines.size(), 1u);
  EXPECT_NE(log_.lines[0].find("/nowhere/lathe-compiler"), std::string::npos) << log_.lines[0];
}

TEST_F(ToolchainTest, InThisProcessWhereTheProgramIsAnother) {
  options_.program = "/bin/true";
  const auto toolchain = open();
  EXPECT_TRUE(compiles(*toolchain));
  ASSERT_EQ(log_.lines.size(), 1u);
  EXPECT_NE(log_.lines[0].find("exit status 0"), std::string::npos) << log_.lines[0];
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
  ASSERT_EQ(log_.lines.size(), 1u);
  EXPECT_NE(log_.lines[0].find("another version of Lathe (its protocol is 99"), std::string::npos) << log_.lines[0];
  EXPECT_EQ(log_.lines[0].find("started"), std::string::npos) << log_.lines[0];
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
    EXPECT_EQ(log_.lines, std::vector<std::string>());
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

bool is_running(pid_t id) {
  std::ifstream file(fmt::format("/proc/{}/stat", id));
  std::string number, name, state;
  return file >> number >> name >> state && state != "Z";
}

// Even where a fork still holds the connection, and while they compile by a program that they have started.
TEST_F(ToolchainTest, WorkersEndWithTheProcess) {
  setenv("FAKE_NVRTC_FAULT", "start:waits", 1);
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
    std::jthread waits([&] { (void)toolchain->compile(kernel("waits")); });
    while (children(worker).empty()) ::usleep(1000);
    const pid_t all[] = {worker, *children(worker).begin(), holder};
    if (::write(ids[1], all, sizeof all) != sizeof all) ::_exit(1);
    ::kill(::getpid(), SIGKILL);
  }
  pid_t all[3] = {};
  ASSERT_EQ(::read(ids[0], all, sizeof all), static_cast<ssize_t>(sizeof all));
  ASSERT_EQ(::waitpid(builder, nullptr, 0), builder);
  for (const pid_t id : {all[0], all[1]}) {
    for (int tries = 0; tries < 1000 && is_running(id); ++tries) ::usleep(10000);
    EXPECT_FALSE(is_running(id));
  }
  ::kill(all[2], SIGKILL);
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
      ASSERT_EQ(log_.lines.size(), 1u);
      EXPECT_NE(log_.lines[0].find("not permitted"), std::string::npos) << log_.lines[0];
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
    EXPECT_EQ(log_.lines, std::vector<std::string>());
    for (const pid_t child : children()) ::kill(child, SIGKILL);
    EXPECT_FAILS(toolchain->compile(kernel("fine")), kernel_compile_failed);
    EXPECT_TRUE(compiles(*toolchain));
    EXPECT_EQ(log_.lines.size(), 1u);
  });
}

}  // namespace
}  // namespace lathe::cuda
