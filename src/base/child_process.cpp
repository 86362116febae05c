// SPDX-License-Identifier: Apache-2.0
#include "base/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <system_error>
#include <utility>

extern char** environ;

namespace lathe {
namespace {

constexpr const char* kNull = "/dev/null";

tl::unexpected<Error> refused(std::string_view what, int error) {
  return fail(ErrorCode::invalid_state, "{}: {}", what, std::generic_category().message(error));
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

// What the child process does before it executes the program.
class Actions {
 public:
  Actions() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  ~Actions() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }

  // `socket` becomes the child's descriptor kSocket. Returns 0 or an errno.
  int set(int socket) {
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    for (const int error :
         {posix_spawn_file_actions_addopen(&files, STDIN_FILENO, kNull, O_RDONLY, 0),
          posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, kNull, O_WRONLY, 0),
          posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO),
          posix_spawn_file_actions_adddup2(&files, socket, ChildProcess::kSocket),
          posix_spawn_file_actions_addclosefrom_np(&files, ChildProcess::kSocket + 1),
          posix_spawnattr_setsigdefault(&attributes, &all), posix_spawnattr_setsigmask(&attributes, &none),
          posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID)})
      if (error != 0) return error;
    return 0;
  }

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
};

std::string describe_end(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const std::string& program,
                                                          std::vector<std::string> arguments) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return refused("a pair of sockets", errno);
  Descriptor low[] = {Descriptor(pair[0]), Descriptor(pair[1])};
  // Both ends must have numbers above kSocket, or setting up the child's descriptors would overwrite them: where this
  // process has closed its standard streams, socketpair() returns 0 and 1.
  Descriptor ours(::fcntl(low[0].get(), F_DUPFD_CLOEXEC, kSocket + 1));
  Descriptor theirs(::fcntl(low[1].get(), F_DUPFD_CLOEXEC, kSocket + 1));
  if (ours.get() < 0 || theirs.get() < 0) return refused("a descriptor", errno);

  Actions actions;
  if (const int error = actions.set(theirs.get())) return refused("preparing a process", error);
  std::vector<char*> words = {const_cast<char*>(program.c_str())};
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  auto child = std::unique_ptr<ChildProcess>(new ChildProcess(-1, ours.release()));
  pid_t id = -1;
  if (const int error = posix_spawn(&id, program.c_str(), &actions.files, &actions.attributes, words.data(), environ))
    return refused(fmt::format("'{}' cannot be started", program), error);
  child->id_ = id;
  return child;
}

ChildProcess::ChildProcess(pid_t id, int socket) : id_(id), socket_(socket), parent_(::getpid()) {}

ChildProcess::~ChildProcess() {
  end();
  ::close(socket_);
}

bool ChildProcess::is_ours() const { return parent_ == ::getpid(); }

double ChildProcess::cpu_seconds() const {
  clockid_t clock;
  timespec time;
  if (id_ < 0 || ::clock_getcpuclockid(id_, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return -1;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::string ChildProcess::stop() {
  const std::optional<int> status = end();
  return status ? describe_end(*status) : "an unknown cause";
}

std::optional<int> ChildProcess::end() noexcept {
  if (id_ < 0 || !is_ours()) return std::nullopt;
  const pid_t id = std::exchange(id_, -1);
  // As long as a child has not been waited for, its id is not given to another process, so signals cannot hit the wrong
  // one. The host program may wait for all its children, or ignore SIGCHLD, so that the system does: then an ended
  // child is gone already, and there is nothing to signal.
  siginfo_t ignored{};
  if (::waitid(P_PID, static_cast<id_t>(id), &ignored, WEXITED | WNOHANG | WNOWAIT) != 0) return std::nullopt;
  ::kill(-id, SIGKILL);  // its process group; a process that is ending already keeps its exit status
  ::kill(id, SIGKILL);
  int status = 0;
  pid_t ended;
  while ((ended = ::waitpid(id, &status, 0)) < 0 && errno == EINTR) {
  }
  if (ended != id) return std::nullopt;
  return status;
}

}  // namespace lathe
