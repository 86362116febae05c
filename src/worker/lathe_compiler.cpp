// SPDX-License-Identifier: Apache-2.0
// lathe-compiler: compiles device code for the process that started it, so that a crash of NVRTC does not end that
// process. It is not run by hand. See device/cuda/worker_protocol.h and decision 0013.
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/child_process.h"
#include "device/cuda/worker_protocol.h"

namespace lathe::cuda::worker {
namespace {

constexpr int kSecond = 1000;

// Ends this process, and what it has started, when its parent ends, even while NVRTC compiles. PR_SET_PDEATHSIG would
// not do: it fires when the *thread* that started us ends. A closed connection is not enough either: a fork of the
// parent may hold it open.
void watch(pid_t parent) {
  while (!poll_socket(ChildProcess::kSocket, POLLRDHUP, kSecond) && ::getppid() == parent) {
  }
  if (::getpgrp() == ::getpid()) ::kill(0, SIGKILL);  // the group is ours: ChildProcess has made it
  ::_exit(EXIT_SUCCESS);
}

void limit(int resource, rlim_t value) {
  rlimit now{};
  if (::getrlimit(resource, &now) != 0) return;
  now.rlim_cur = std::min(now.rlim_max, value);
  ::setrlimit(resource, &now);
}

void limit_memory(uint64_t bytes) {
  limit(RLIMIT_CORE, 0);  // a core dump of NVRTC in the user's folder helps nobody
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // sanitizers reserve terabytes
  limit(RLIMIT_DATA, bytes);
#endif
  // When memory runs out, the system kills this process before others.
  if (std::FILE* file = std::fopen("/proc/self/oom_score_adj", "we")) {
    std::fputs("1000", file);
    std::fclose(file);
  }
}

Result<> serve() {
  Connection connection(ChildProcess::kSocket, [](short events) -> Result<> {
    poll_socket(ChildProcess::kSocket, events, -1);
    return {};
  });
  LATHE_TRY(connection.send(Greeting{}));
  LATHE_ASSIGN(const Setup setup, connection.receive<Setup>());
  limit_memory(setup.memory);
  const Result<std::unique_ptr<const Nvrtc>> nvrtc = open_nvrtc(setup.nvrtc);
  if (!nvrtc) return connection.send(Ready{static_cast<int32_t>(nvrtc.error().code), nvrtc.error().message, {}});
  LATHE_TRY(connection.send(Ready{0, "", **nvrtc}));
  for (;;) {
    LATHE_ASSIGN(const Request request, connection.receive<Request>());
    LATHE_TRY(connection.send(Reply{compile_source(**nvrtc, request)}));
  }
}

}  // namespace
}  // namespace lathe::cuda::worker

int main(int count, char** words) {
  namespace worker = lathe::cuda::worker;
  pid_t parent = 0;
  const char* text = count == 3 && std::strcmp(words[1], "--worker") == 0 ? words[2] : "";
  const auto [end, problem] = std::from_chars(text, text + std::strlen(text), parent);
  if (problem != std::errc() || *end != '\0') {
    std::fputs("lathe-compiler compiles kernels for a process that builds an engine with Lathe, which starts it.\n",
               stderr);
    return EXIT_FAILURE;
  }
  ::fcntl(lathe::ChildProcess::kSocket, F_SETFD, FD_CLOEXEC);
  std::thread(worker::watch, parent).detach();
  (void)worker::serve();  // returns when the connection is closed: there is nobody left to report an error to
  ::_exit(EXIT_SUCCESS);  // does not run NVRTC's destructors
}
