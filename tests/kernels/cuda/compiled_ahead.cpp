// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/compiled_ahead.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "base/for_each_in_threads.h"
#include "emulated_compiler.h"
#include "kernels/cuda/emulated_module.h"

namespace lathe::cuda {
namespace {

int notes = -1;  // where the child writes sources, each ended by a zero
std::atomic<bool> is_noting = true;

std::map<std::string, std::vector<std::byte>, std::less<>>& objects() {
  static std::map<std::string, std::vector<std::byte>, std::less<>> all;
  return all;
}

void note(const std::string& source) {
  static std::mutex mutex;
  static std::set<std::string> noted;
  const std::lock_guard lock(mutex);
  if (!noted.insert(source).second) return;
  std::string_view rest(source.c_str(), source.size() + 1);
  while (!rest.empty()) {
    const ssize_t written = write(notes, rest.data(), rest.size());
    if (written < 0) return;
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

[[noreturn]] void note_kernels_of_tests() {
  const int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  delete listeners.Release(listeners.default_xml_generator());
  _exit(RUN_ALL_TESTS());
}

std::vector<std::string> find_sources() {
  std::vector<std::string> sources;
  int ends[2];
  if (pipe(ends) != 0) return sources;
  const pid_t child = fork();
  if (child == 0) {
    notes = ends[1];
    note_kernels_of_tests();
  }
  close(ends[1]);
  std::string text;
  char part[1 << 16];
  for (ssize_t size; child > 0 && (size = read(ends[0], part, sizeof part)) > 0;)
    text.append(part, static_cast<size_t>(size));
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  for (size_t at = 0, end; (end = text.find('\0', at)) != text.npos; at = end + 1)
    sources.push_back(text.substr(at, end - at));
  return sources;
}

// Those that begin by including the same, so that no kernel gets a header that another one has asked for.
std::vector<std::vector<std::string>> groups_of(const std::vector<std::string>& sources) {
  constexpr size_t kMost = 24;  // more take the compiler longer than their share
  std::map<std::string, std::vector<std::vector<std::string>>> groups;
  for (const std::string& source : sources) {
    const size_t last = source.rfind("#include \"");
    auto& group = groups[source.substr(0, last == source.npos ? 0 : source.find('\n', last))];
    if (group.empty() || group.back().size() == kMost) group.emplace_back();
    group.back().push_back(source);
  }
  std::vector<std::vector<std::string>> all;
  for (auto& [includes, group] : groups) std::move(group.begin(), group.end(), std::back_inserter(all));
  return all;
}

}  // namespace

bool only_notes_kernels() { return notes >= 0; }

void note_kernels(bool noted) { is_noting = noted; }

void compile_ahead() {
  const std::vector<std::vector<std::string>> groups = groups_of(find_sources());
  const std::map<std::string, std::string> headers = header_texts();
  std::vector<std::vector<emulator::Compiled>> results(groups.size());
  for_each_in_threads(groups.size(), static_cast<int>(std::thread::hardware_concurrency()),
                      [&](size_t i, size_t) { results[i] = emulator::compile_together(groups[i], headers); });
  for (size_t i = 0; i < groups.size(); ++i)
    for (size_t k = 0; k < groups[i].size(); ++k) {
      if (!results[i][k].ok) continue;  // the test that asks for it is told what the compiler says of it
      const auto* bytes = reinterpret_cast<const std::byte*>(results[i][k].object.data());
      objects()[groups[i][k]] = {bytes, bytes + results[i][k].object.size()};
    }
}

Result<std::vector<std::byte>> code_of_kernel(std::string_view source) {
  if (only_notes_kernels()) {
    if (is_noting) note(std::string(source));
    return std::vector<std::byte>(1);
  }
  if (const auto found = objects().find(source); found != objects().end()) return found->second;
  return compile_for_emulator(source);
}

}  // namespace lathe::cuda
