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
#include <functional>
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

using Words = std::vector<std::string>;

// Without optimisation: of a new kernel's time, compiling is five sixths with -O1, which takes 1.6 times as long as
// without, and the kernel's run a sixth, which takes 1.3 times as long without it.
Words command(const fs::path& headers, const Words& more) {
  Words words = {LATHE_DEVICE_COMPILER,
                 "-std=c++17",
                 "-O0",
                 "-fno-strict-aliasing",
                 "-fPIC",
                 "-fvisibility=hidden",  // and no symbols, for objects lie in plans, of which tests change every byte
                 "-fno-exceptions",
                 "-fno-asynchronous-unwind-tables",
                 "-w",
                 "-DLATHE_EMULATED",
                 "-I" LATHE_EMULATOR_INCLUDE,
                 "-I" + headers.string()};
  // Clang finds a precompiled header's files where the folder has been moved only below what it is told is the root.
  // What headers themselves ask of templates would otherwise be made again for each text that includes them.
  if (std::string_view(LATHE_DEVICE_COMPILER).find("clang") != std::string_view::npos)
    words.insert(words.end(),
                 {"-isysroot", headers, "-Xclang", "-relocatable-pch", "-Xclang", "-fpch-instantiate-templates"});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

constexpr const char* kStart = "start.h";  // includes what a source begins by including

Words compile_start(const fs::path& folder) {
  const std::string start = folder / kStart;
  return command(folder, {"-x", "c++-header", start, "-o", start + ".gch"});
}

Words compile_kernel(const fs::path& folder, const fs::path& headers) {
  return command(headers,
                 {"-include", headers / kStart, "-c", "-x", "c++", folder / "kernel.cu", "-o", folder / "kernel.o"});
}

// Not by way of the compiler: Clang starts itself once more where it links as well, which is a third of its time. The
// emulator is all that is linked: to read the symbols of the C library, which it brings, would take longer than the
// rest of linking. Those are found when the kernel is loaded.
Words link_kernel(const fs::path& folder) {
  const std::string libraries = LATHE_EMULATOR_LIBRARIES;
  return {"ld.bfd",
          "-shared",
          "-s",
          "-z",
          "noseparate-code",
          folder / "kernel.o",
          "-o",
          folder / "kernel.so",
          "-L" + libraries,
          "-rpath",
          libraries,
          "--no-as-needed",
          "-llathe_emulator"};
}

// Its exit status; what it says goes to the file `log`. Looking at it now and then, rather than waiting, shows those
// who watch this process that it is alive.
int run(const Words& command, const fs::path& log) {
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

std::string joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += "\n// " + word;
  return text;
}

// The folder that holds what `key` tells, which `make` puts there unless an earlier call did; "" where it could not.
fs::path kept_folder(const std::string& key, const std::function<bool(const fs::path&)>& make) {
  char name[20];
  std::snprintf(name, sizeof name, "%016lx", static_cast<unsigned long>(hash_of(key)));
  const fs::path kept = fs::path(LATHE_EMULATED_CACHE) / name;
  const auto is_kept = [&] { return fs::exists(kept) && read_file(kept / "key") == key; };
  if (is_kept()) return kept;
  const fs::path folder = working_folder();
  write_file(folder / "key", key);
  const bool made = make(folder);
  std::error_code ignored;
  // Another process may have been faster, and others may read what it kept: only a source of the same hash gives way.
  if (made) {
    if (fs::exists(kept) && !is_kept()) fs::remove_all(kept, ignored);
    fs::rename(folder, kept, ignored);
  }
  fs::remove_all(folder, ignored);
  return made ? kept : fs::path();
}

bool runs(const Words& command, const fs::path& folder, std::string& log) {
  const int status = run(command, folder / "log");
  log = read_file(folder / "log");
  return status == 0;
}

// What `source` includes before anything else. No header minds which of them come before it.
std::string start_of(const std::string& source) {
  std::set<std::string> includes;
  std::istringstream lines(source);
  for (std::string line; std::getline(lines, line) && line.starts_with("#include \"");) includes.insert(line);
  std::string start = "#include \"host_math.h\"\n";
  for (const std::string& line : includes) start += line + "\n";
  return start;
}

// Compiles `source` unless it is there already. Where the shared object lies, or "" and the compiler's words. Sources
// that start alike share their headers, precompiled: reading these is a third of what compiling a kernel takes.
fs::path compile_to_file(const std::string& source, const std::map<std::string, std::string>& headers,
                         std::string& log) {
  std::set<std::string> used;
  collect_includes(source, headers, used);
  const std::string start = start_of(source);
  std::string key = start;
  for (const char* header : {"emulator.h", "host_math.h"}) key += read_file(fs::path(LATHE_EMULATOR_INCLUDE) / header);
  for (const std::string& name : used) key += "\n// " + name + "\n" + headers.at(name);
  key += joined(compile_start(""));
  const auto make_start = [&](const fs::path& folder) {
    for (const std::string& name : used) write_file(folder / name, headers.at(name));
    write_file(folder / kStart, start);
    return runs(compile_start(folder), folder, log);
  };
  const auto make_kernel = [&](const fs::path& folder) {
    const fs::path shared = kept_folder(key, make_start);
    write_file(folder / "kernel.cu", source);
    return !shared.empty() && runs(compile_kernel(folder, shared), folder, log) &&
           runs(link_kernel(folder), folder, log);
  };
  const fs::path kept =
      kept_folder(source + key + joined(compile_kernel("", "")) + joined(link_kernel("")), make_kernel);
  return kept.empty() ? kept : kept / "kernel.so";
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
