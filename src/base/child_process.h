// SPDX-License-Identifier: Apache-2.0
// Programs that this process starts and talks to.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace lathe {

// A running program, connected to this process by a stream socket, which the program has as descriptor kSocket. It
// inherits no other descriptor: 0, 1 and 2 are /dev/null. It runs in a session of its own with default signal actions,
// so a Ctrl-C at the terminal does not reach it. All this works whatever the host program does with SIGCHLD, SIGPIPE
// and its standard streams. In a fork of this process the object only closes its copy of the socket.
// Not thread-safe.
class ChildProcess {
 public:
  static constexpr int kSocket = 3;

  // `program` is a path; no shell is involved. Fails with invalid_state where the program cannot be started.
  static Result<std::unique_ptr<ChildProcess>> start(const std::string& program, std::vector<std::string> arguments);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();

  int socket() const { return socket_; }
  pid_t id() const { return id_; }
  bool is_ours() const;  // false in a fork of the process that called start()
  // Processor time that the program has used so far; negative where it is not known.
  double cpu_seconds() const;
  // Kills the program and its process group unless it has ended, waits for it, and says how it ended: "exit status 1",
  // "signal 11 (Segmentation fault)". The destructor does the same.
  std::string stop();

 private:
  ChildProcess(pid_t id, int socket);
  std::optional<int> end() noexcept;  // waitpid()'s status; none where somebody else has waited for the child
  pid_t id_;
  int socket_;
  pid_t parent_;
};

}  // namespace lathe
