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

// A running program, joined to this process by one socket, which the program has as descriptor kSocket; it inherits no
// other descriptor: 0, 1 and 2 are /dev/null. Its signals have their default actions, and what the terminal sends to
// this process does not reach it. Whatever this process does with SIGCHLD, SIGPIPE, its working directory or its
// standard streams, none of that matters here; in a fork of this process the object does nothing.
class ChildProcess {
 public:
  static constexpr int kSocket = 3;

  // No shell is involved: `program` is a path. Fails with invalid_state where processes may not be started.
  static Result<std::unique_ptr<ChildProcess>> start(const std::string& program, std::vector<std::string> arguments);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();

  int socket() const { return socket_; }
  pid_t id() const { return id_; }
  bool is_ours() const;  // of this process, not of one that it was forked from
  // Processor time that it has used so far; negative where that is not known.
  double cpu_seconds() const;
  // Ends it, and all that it started, if it has not ended, and tells how it ended: "exit status 1", "signal 11
  // (Segmentation fault)".
  std::string stop();

 private:
  ChildProcess(pid_t id, int socket);
  std::optional<int> end() noexcept;  // waitpid()'s status, where it can be known
  pid_t id_;
  int socket_;
  pid_t parent_;
};

}  // namespace lathe
