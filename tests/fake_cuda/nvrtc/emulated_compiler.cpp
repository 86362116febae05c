// SPDX-License-Identifier: Apache-2.0
#include "emulated_compiler.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

extern char** environ;

namespace emulator {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

// The headers that `text` includes, with all that these include.
void collect_includes(const std::string& text, const std::map<std::string, std::string>& headers,
                      std::set<std::string>& found) {
  constexpr std::string_view kInclude = "#include \"";
  for (size_t at = text.find(kInclude); at != std::string::npos; at = text.find(kInclude, at)) {
    at += kInclude.size();
    const std::string name = text.substr(at, text.find('"', at) - at);
    const auto header = headers.find(name);
    if (header != headers.end() && found.insert(name).second) collect_includes(header->second, headers, found);
  }
}

uint64_t hash_of(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// Without optimisation: of a new kernel's time, compiling is five sixths with -O1, which takes 1.6 times as long as
// without, and the kernel's run a sixth, which takes 1.3 times as long without it.
std::vector<std::string> command_line(const fs::path& folder) {
  const std::string libraries = LATHE_EMULATOR_LIBRARIES;
  return {LATHE_HOST_COMPILER,
          "-std=c++17",
          "-O0",
          "-fno-strict-aliasing",
          "-fPIC",
          "-fvisibility=hidden",  // and no symbols, for objects lie in plans, of which tests change every byte
          "-shared",
          "-s",
          "-fno-exceptions",
          "-fno-asynchronous-unwind-tables",
          "-w",
          "-DLATHE_EMULATED",
          "-include",
          "host_math.h",
          "-I" + folder.string(),
          "-I" LATHE_EMULATOR_INCLUDE,
          "-x",
          "c++",
          (folder / "kernel.cu").string(),
          "-o",
          (folder / "kernel.so").string(),
          "-L" + libraries,
          "-Wl,-rpath," + libraries,
          "-Wl,--no-undefined,--no-as-needed",
          "-llathe_emulator"};
}

// Its exit status; what it says goes to the file `log`. Looking at it now and then, rather than waiting, shows those
// who watch this process that it is alive.
int run(const std::vector<std::string>& command, const fs::path& log) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int error = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return -1;
  int status = -1;
  pid_t ended;
  while ((ended = waitpid(child, &status, WNOHANG)) == 0) usleep(2000);
  if (ended != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

// Of one length whatever the process: objects hold its name, and the same source is to give objects of the same size.
fs::path working_folder() {
  static std::atomic<unsigned> counter{0};
  char name[32];
  std::snprintf(name, sizeof name, "work-%010d-%010u", getpid(), counter++);
  return fs::path(LATHE_EMULATED_CACHE) / name;
}

}  // namespace

namespace {

// Compiles `source` unless it is there already. Where the shared object lies, or "" and the compiler's words.
fs::path compile_to_file(const std::string& source, const std::map<std::string, std::string>& headers,
                         std::string& log) {
  std::set<std::string> used;
  collect_includes(source, headers, used);
  std::string key = source;
  for (const char* header : {"emulator.h", "host_math.h"}) key += read_file(fs::path(LATHE_EMULATOR_INCLUDE) / header);
  for (const std::string& name : used) key += "\n// " + name + "\n" + headers.at(name);
  for (const std::string& word : command_line("")) key += "\n// " + word;

  char name[20];
  std::snprintf(name, sizeof name, "%016lx", static_cast<unsigned long>(hash_of(key)));
  const fs::path kept = fs::path(LATHE_EMULATED_CACHE) / name;
  const auto is_kept = [&] { return fs::exists(kept) && read_file(kept / "key") == key; };
  if (is_kept()) return kept / "kernel.so";
  const fs::path folder = working_folder();
  write_file(folder / "kernel.cu", source);
  for (const std::string& header : used) write_file(folder / header, headers.at(header));
  write_file(folder / "key", key);
  std::vector<std::string> command = command_line(folder);
  command.push_back("-fuse-ld=" LATHE_HOST_LINKER);  // which of them links changes nothing that is kept
  const int status = run(command, folder / "log");
  log = read_file(folder / "log");
  std::error_code ignored;
  // Another process may have been faster, and others may read what it kept: only a source of the same hash gives way.
  if (status == 0) {
    if (fs::exists(kept) && !is_kept()) fs::remove_all(kept, ignored);
    fs::rename(folder, kept, ignored);
  }
  fs::remove_all(folder, ignored);
  return status == 0 ? kept / "kernel.so" : fs::path();
}

// The kernel in a namespace of its own; its includes go to the front.
void append_renamed(const std::string& source, const std::string& suffix, std::string& includes, std::string& text) {
  text += "#define lathe_kernel lathe_kernel" + suffix + "\n";
  text += "#define lathe_kernel_parameters lathe_kernel" + suffix + "_parameters\n";
  text += "#define lathe_kernel_maps lathe_kernel" + suffix + "_maps\n";
  text += "namespace kernel" + suffix + " {\n";
  std::istringstream lines(source);
  for (std::string line; std::getline(lines, line);) (line.starts_with("#include") ? includes : text) += line + "\n";
  text += "}\n#undef lathe_kernel\n#undef lathe_kernel_parameters\n#undef lathe_kernel_maps\n";
}

}  // namespace

Compiled compile(const std::string& source, const std::map<std::string, std::string>& headers) {
  Compiled result;
  const fs::path file = compile_to_file(source, headers, result.log);
  if (file.empty()) return result;
  const std::string object = read_file(file);
  result.object.assign(object.begin(), object.end());
  result.ok = !result.object.empty();
  return result;
}

std::vector<Compiled> compile_together(const std::vector<std::string>& sources,
                                       const std::map<std::string, std::string>& headers) {
  std::string includes, text;
  for (size_t i = 0; i < sources.size(); ++i) append_renamed(sources[i], "_" + std::to_string(i), includes, text);
  std::string log;
  const fs::path file = compile_to_file(includes + text, headers, log);
  std::vector<Compiled> results(sources.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    results[i].log = log;
    results[i].ok = !file.empty();
    const std::string line = file.string() + " _" + std::to_string(i);
    results[i].object.assign(line.begin(), line.end());
  }
  return results;
}

}  // namespace emulator
