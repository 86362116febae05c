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

// What the child does between its beginning and the program's.
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

  // An errno.
  int describe(int socket) {
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
  // Above the numbers that the child's descriptors get, and above the standard streams, which may be closed here.
  Descriptor ours(::fcntl(low[0].get(), F_DUPFD_CLOEXEC, kSocket + 1));
  Descriptor theirs(::fcntl(low[1].get(), F_DUPFD_CLOEXEC, kSocket + 1));
  if (ours.get() < 0 || theirs.get() < 0) return refused("a descriptor", errno);

  Actions actions;
  if (const int error = actions.describe(theirs.get())) return refused("preparing a process", error);
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
  // While its end has not been collected, its number belongs to nobody else. The program may collect the ends of all
  // its children, or have the system do that (SIGCHLD ignored): then there is nothing to signal.
  siginfo_t ignored{};
  if (::waitid(P_PID, static_cast<id_t>(id), &ignored, WEXITED | WNOHANG | WNOWAIT) != 0) return std::nullopt;
  ::kill(-id, SIGKILL);  // its session: one that is ending already keeps its status
  ::kill(id, SIGKILL);
  int status = 0;
  pid_t ended;
  while ((ended = ::waitpid(id, &status, 0)) < 0 && errno == EINTR) {
  }
  if (ended != id) return std::nullopt;
  return status;
}

}  // namespace lathe
