// SPDX-License-Identifier: Apache-2.0
// lathe conformance: cases run in worker processes, so that a crash or a hang ends one case only.
#include <fmt/core.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "conformance_case.h"
#include "failure.h"
#include "session.h"

namespace lathe::cli {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr int kNoCase = -1;

const char* name_of(Verdict verdict) {
  return verdict == Verdict::passed ? "passed" : verdict == Verdict::failed ? "FAILED" : "unsupported";
}

Mode parse_mode(const std::string& name) {
  if (name == "frozen") return Mode::frozen;
  if (name == "symbolic") return Mode::symbolic;
  return name == "reload" ? Mode::reload : Mode::runtime;
}

std::vector<std::string> find_cases(const std::vector<std::string>& directories) {
  std::vector<std::string> cases;
  for (const std::string& directory : directories) {
    std::error_code error;
    if (!fs::is_directory(directory, error)) throw UsageError(directory + " is not a folder");
    if (fs::exists(fs::path(directory) / "model.onnx")) cases.push_back(directory);
    for (const auto& entry : fs::recursive_directory_iterator(directory, error))
      if (entry.is_directory() && fs::exists(entry.path() / "model.onnx")) cases.push_back(entry.path().string());
  }
  std::sort(cases.begin(), cases.end());
  cases.erase(std::unique(cases.begin(), cases.end()), cases.end());
  if (cases.empty()) throw UsageError("no folder with a model.onnx was found");
  return cases;
}

bool write_all(int file, const void* data, size_t size) {
  for (const auto* at = static_cast<const char*>(data); size > 0;) {
    const ssize_t count = write(file, at, size);
    if (count <= 0 && errno != EINTR) return false;
    if (count > 0) at += count, size -= static_cast<size_t>(count);
  }
  return true;
}

bool read_all(int file, void* data, size_t size) {
  for (auto* at = static_cast<char*>(data); size > 0;) {
    const ssize_t count = read(file, at, size);
    if (count == 0 || (count < 0 && errno != EINTR)) return false;
    if (count > 0) at += count, size -= static_cast<size_t>(count);
  }
  return true;
}

// A process that runs cases: gets their index, answers with verdict, length and reason.
class Worker {
 public:
  Worker(const std::vector<std::string>& cases, CaseOptions options) : cases_(cases), options_(std::move(options)) {
    start();
  }
  ~Worker() { stop(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  int file() const { return answers_; }
  int current() const { return current_; }
  double busy_seconds() const { return seconds_since(since_); }

  void give(int index) {
    current_ = index;
    since_ = Clock::now();
    write_all(orders_, &index, sizeof(index));
  }

  // The answer for current(), which must be ready or never come; a dead worker is replaced.
  CaseResult take() {
    current_ = kNoCase;
    int32_t head[2];
    CaseResult result;
    if (read_all(answers_, head, sizeof(head))) {
      result.verdict = static_cast<Verdict>(head[0]);
      result.reason.resize(static_cast<size_t>(head[1]));
      if (read_all(answers_, result.reason.data(), result.reason.size())) {
        if (has_lost_device(result)) restart();
        return result;
      }
    }
    const int status = restart();
    if (WIFSIGNALED(status)) return {Verdict::failed, fmt::format("crash: {}", strsignal(WTERMSIG(status)))};
    return {Verdict::failed, fmt::format("crash: the process ended with status {}", WEXITSTATUS(status))};
  }

  CaseResult give_up(double seconds) {
    current_ = kNoCase;
    restart();
    return {Verdict::failed, fmt::format("no answer after {:.0f} s", seconds)};
  }

 private:
  // A fault of device code ends the use of the GPU in its process: the next cases need another.
  static bool has_lost_device(const CaseResult& result) {
    return result.verdict == Verdict::failed && result.reason.find("LATHE-61") != std::string::npos;
  }

  int restart() {
    const int status = stop();
    start();
    return status;
  }

  void start() {
    int orders[2], answers[2];
    if (pipe(orders) != 0 || pipe(answers) != 0) throw Failure(fmt::format("pipe: {}", std::strerror(errno)));
    std::fflush(nullptr);
    process_ = fork();
    if (process_ < 0) throw Failure(fmt::format("fork: {}", std::strerror(errno)));
    if (process_ == 0) {
      close(orders[1]);
      close(answers[0]);
      serve(orders[0], answers[1]);
    }
    close(orders[0]);
    close(answers[1]);
    orders_ = orders[1];
    answers_ = answers[0];
  }

  [[noreturn]] void serve(int orders, int answers) const {
    for (int index; read_all(orders, &index, sizeof(index));) {
      const CaseResult result = run_case(cases_[static_cast<size_t>(index)], options_);
      const int32_t head[2] = {static_cast<int32_t>(result.verdict), static_cast<int32_t>(result.reason.size())};
      if (!write_all(answers, head, sizeof(head)) || !write_all(answers, result.reason.data(), result.reason.size()))
        break;
    }
    _exit(0);
  }

  // Other workers may hold ends of this one's pipes, so that closing them does not end it.
  int stop() {
    kill(process_, SIGKILL);
    close(orders_);
    close(answers_);
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }

  const std::vector<std::string>& cases_;
  CaseOptions options_;
  pid_t process_ = -1;
  int orders_ = -1, answers_ = -1;
  int current_ = kNoCase;
  Clock::time_point since_;
};

int allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

class Conformance {
 public:
  explicit Conformance(const ConformanceCommand& command)
      : command_(command), cases_(find_cases(command.directories)), results_(cases_.size()) {}

  void run() {
    const size_t jobs = static_cast<size_t>(command_.jobs > 0 ? command_.jobs : allowed_cpus());
    std::vector<std::unique_ptr<Worker>> workers;
    for (size_t i = 0; i < std::min(jobs, cases_.size()); ++i)
      workers.push_back(
          std::make_unique<Worker>(cases_, CaseOptions{parse_mode(command_.mode), command_.target, !command_.no_tf32}));
    size_t next = 0, done = 0;
    while (done < cases_.size()) {
      std::vector<pollfd> files;
      for (auto& worker : workers) {
        if (worker->current() == kNoCase && next < cases_.size()) worker->give(static_cast<int>(next++));
        files.push_back({worker->current() == kNoCase ? -1 : worker->file(), POLLIN, 0});
      }
      poll(files.data(), files.size(), 200);
      for (size_t i = 0; i < workers.size(); ++i) {
        Worker& worker = *workers[i];
        const int index = worker.current();
        if (index == kNoCase) continue;
        if (files[i].revents)
          finish(index, worker.take());
        else if (worker.busy_seconds() > command_.timeout)
          finish(index, worker.give_up(command_.timeout));
        else
          continue;
        ++done;
      }
    }
  }

  int count(Verdict verdict) const {
    return static_cast<int>(std::count_if(results_.begin(), results_.end(),
                                          [&](const CaseResult& result) { return result.verdict == verdict; }));
  }

  Json json() const {
    Json cases = Json::array();
    for (size_t i = 0; i < cases_.size(); ++i)
      cases.push_back({{"case", cases_[i]}, {"result", name_of(results_[i].verdict)}, {"reason", results_[i].reason}});
    return {{"mode", command_.mode},
            {"passed", count(Verdict::passed)},
            {"failed", count(Verdict::failed)},
            {"unsupported", count(Verdict::unsupported)},
            {"cases", std::move(cases)}};
  }

 private:
  void finish(int index, CaseResult result) {
    CaseResult& kept = results_[static_cast<size_t>(index)] = std::move(result);
    if (kept.verdict == Verdict::passed || (command_.quiet && kept.verdict == Verdict::unsupported)) return;
    std::string reason = kept.reason;
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    fmt::print("{} {}: {}\n", name_of(kept.verdict), cases_[static_cast<size_t>(index)], reason);
  }

  const ConformanceCommand& command_;
  std::vector<std::string> cases_;
  std::vector<CaseResult> results_;
};

}  // namespace

int conformance(const ConformanceCommand& command) {
  std::signal(SIGPIPE, SIG_IGN);
  Conformance conformance(command);
  conformance.run();
  if (!command.json.empty())
    write_file(command.json, conformance.json().dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  const int failed = conformance.count(Verdict::failed);
  fmt::print("passed={} failed={} unsupported={}\n", conformance.count(Verdict::passed), failed,
             conformance.count(Verdict::unsupported));
  return failed == 0 ? 0 : 1;
}

}  // namespace lathe::cli
