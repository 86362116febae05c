// SPDX-License-Identifier: Apache-2.0
#include "base/child_process.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace lathe {
namespace {

namespace fs = std::filesystem;

size_t descriptors() {
  return static_cast<size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

// Runs a shell's words in the child and returns what it says on its socket.
std::string said(const std::string& script) {
  const auto child = ChildProcess::start("/bin/sh", {"-c", script});
  EXPECT_TRUE(child) << child.error().to_string();
  std::string text(4096, '\0');
  size_t size = 0;
  for (ssize_t got; child && (got = ::recv((*child)->socket(), &text[size], text.size() - size, 0)) > 0;)
    size += static_cast<size_t>(got);
  text.resize(size);
  return text;
}

// Each in a process of its own, whose end tells: what they do to the process must not touch the other tests.
#define IN_A_FORK(...)                                                    \
  do {                                                                    \
    const pid_t fork_id = ::fork();                                       \
    if (fork_id == 0) {                                                   \
      __VA_ARGS__;                                                        \
      ::_exit(::testing::Test::HasFailure() ? 1 : 0);                     \
    }                                                                     \
    int fork_status = 0;                                                  \
    ASSERT_EQ(::waitpid(fork_id, &fork_status, 0), fork_id);              \
    EXPECT_TRUE(WIFEXITED(fork_status) && WEXITSTATUS(fork_status) == 0); \
  } while (0)

TEST(ChildProcess, TalksOverItsSocketAndInheritsNothingElse) {
  const int inherited = ::dup(STDERR_FILENO);  // without close-on-exec
  // The second without a pipe, of which the shell may still hold an end; what listed the folder is closed by then.
  EXPECT_EQ(said("ls -l /proc/$$/fd | grep -c /dev/null >&3; n=0; for f in /proc/$$/fd/*; do case ${f##*/} in "
                 "[0-3]|10|255) ;; *) [ -L $f ] && n=$((n + 1)); esac; done; echo $n >&3"),
            "3\n0\n");
  ::close(inherited);
}

TEST(ChildProcess, EndsAreTold) {
  const auto exited = ChildProcess::start("/bin/sh", {"-c", "exit 5"});
  ASSERT_TRUE(exited);
  char none;
  EXPECT_EQ(::recv((*exited)->socket(), &none, 1, 0), 0);
  EXPECT_EQ((*exited)->stop(), "exit status 5");
  const auto killed = ChildProcess::start("/bin/sh", {"-c", "kill -SEGV $$"});
  ASSERT_TRUE(killed);
  EXPECT_EQ(::recv((*killed)->socket(), &none, 1, 0), 0);
  EXPECT_EQ((*killed)->stop(), "signal 11 (Segmentation fault)");
  const auto stopped = ChildProcess::start("/bin/sh", {"-c", "sleep 100"});
  ASSERT_TRUE(stopped);
  EXPECT_EQ((*stopped)->stop(), "signal 9 (Killed)");
}

TEST(ChildProcess, WhatTheChildStartedEndsWithIt) {
  auto child = ChildProcess::start("/bin/sh", {"-c", "sleep 100 & echo $! >&3; wait"});
  ASSERT_TRUE(child);
  char text[32] = {};
  ASSERT_GT(::recv((*child)->socket(), text, sizeof text - 1, 0), 1);
  child->reset();
  const pid_t grandchild = std::atoi(text);
  for (int tries = 0; tries < 500 && ::kill(grandchild, 0) == 0; ++tries) {
    std::ifstream stat(fmt::format("/proc/{}/stat", grandchild));
    std::string id, name, state;
    if (stat >> id >> name >> state && state == "Z") break;  // nobody here collects it
    ::usleep(10000);
  }
  std::ifstream stat(fmt::format("/proc/{}/stat", grandchild));
  std::string id, name, state;
  EXPECT_TRUE(!(stat >> id >> name >> state) || state == "Z") << state;
}

TEST(ChildProcess, LeavesNothingBehind) {
  const size_t before = descriptors();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(ChildProcess::start("/bin/sh", {"-c", "sleep 100"}));
    ASSERT_FALSE(ChildProcess::start("/nowhere/program", {}));
  }
  EXPECT_EQ(descriptors(), before);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // no children
}

TEST(ChildProcess, MissingProgramsAreNamed) {
  const auto child = ChildProcess::start("/nowhere/program", {});
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().code, ErrorCode::invalid_state);
  EXPECT_NE(child.error().message.find("/nowhere/program"), std::string::npos) << child.error().message;
}

TEST(ChildProcess, RunsWhereDescriptorsAreUsedUp) {
  IN_A_FORK({
    const rlimit few{descriptors() - 1, descriptors() - 1};
    ::setrlimit(RLIMIT_NOFILE, &few);
    const auto child = ChildProcess::start("/bin/true", {});
    EXPECT_FALSE(child);
  });
}

TEST(ChildProcess, RunsWithoutStandardStreams) {
  IN_A_FORK({
    for (const int stream : {0, 1, 2}) ::close(stream);
    EXPECT_EQ(said("echo hello >&3"), "hello\n");
  });
}

TEST(ChildProcess, RunsWhereTheEndsOfChildrenAreIgnored) {
  IN_A_FORK({
    ::signal(SIGCHLD, SIG_IGN);
    EXPECT_EQ(said("echo hello >&3"), "hello\n");
    const auto child = ChildProcess::start("/bin/sh", {"-c", "sleep 100"});
    EXPECT_EQ((*child)->stop(), "an unknown cause");
  });
}

TEST(ChildProcess, HasNoSignalBlockedOrIgnored) {
  IN_A_FORK({
    ::signal(SIGTERM, SIG_IGN);
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    // The library of C keeps the first two real-time signals for itself.
    EXPECT_EQ(
        said("grep -E 'Sig(Blk|Ign)' /proc/$$/status | while read name mask; do echo $((0x$mask & ~0x180000000)); "
             "done >&3"),
        "0\n0\n");
  });
}

TEST(ChildProcess, AForkLeavesItAlone) {
  const auto child = ChildProcess::start("/bin/sh", {"-c", "read line <&3; echo still here >&3"});
  ASSERT_TRUE(child);
  IN_A_FORK({
    EXPECT_FALSE((*child)->is_ours());
    (*child)->stop();
  });
  ASSERT_EQ(::send((*child)->socket(), "go\n", 3, MSG_NOSIGNAL), 3);
  char text[32] = {};
  EXPECT_GT(::recv((*child)->socket(), text, sizeof text - 1, 0), 0);
  EXPECT_STREQ(text, "still here\n");
}

}  // namespace
}  // namespace lathe
