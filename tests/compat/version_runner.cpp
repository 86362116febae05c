// SPDX-License-Identifier: Apache-2.0
// Runs a plan with a library that is opened by its path (run_plan.h):
//   version_runner library plan input-folder output-folder [option...]
// --allow: code for the host; --lean=path: by the runtime that loadRuntime() makes of it; --memory=no, --files=no: not
// from files in memory, nor temporary ones; --directory=path of the latter; --no-memfd: the kernel has no files in
// memory; --no-code: nor may what was written be executed;
// --later: calls a function that the interface has from its second level on, and prints "missing 1" where it is
// reported;
// --order=letters: in which order Runtime, Loaded runtime, Engine, Context and Inspector die.
// Prints how many runtimes of ours are mapped: before, while the engine is there, and at the end. Exits with 3 where
// there is no engine, after the runtime has loaded what the option --then=plan names.
#include <dlfcn.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <map>
#include <set>

#include "api/run_plan.h"

namespace {

namespace nv = nvinfer1;

// With `code`, memory that was written cannot be made executable either, as under some policies of systems.
bool forbid_files_in_memory(bool code) {
  const unsigned mprotect = code ? SYS_mprotect : UINT_MAX;
  sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, mprotect, 0, 3),
                         BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
                         BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program = {std::size(rules), rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Files with code of our libraries in this process, whether they have a name or not.
size_t mapped() {
  std::ifstream maps("/proc/self/maps");
  std::set<std::string> files;
  for (std::string line; std::getline(maps, line);)
    for (const char* name : {"liblathe.so", "lathe_lean", "liblathe_dispatch"})
      if (line.find("r-xp") != std::string::npos && line.find(name) != std::string::npos)
        files.insert(line.substr(line.find_first_of('/')));
  return files.size();
}

// Counts the reports that it gets.
class Recorder final : public nv::IErrorRecorder {
 public:
  int32_t getNbErrors() const noexcept override { return count; }
  nv::ErrorCode getErrorCode(int32_t) const noexcept override { return last; }
  ErrorDesc getErrorDesc(int32_t) const noexcept override { return ""; }
  bool hasOverflowed() const noexcept override { return false; }
  void clear() noexcept override { count = 0; }
  bool reportError(nv::ErrorCode code, ErrorDesc text) noexcept override {
    std::fprintf(stderr, "recorded: %s\n", text);
    last = code;
    ++count;
    return true;
  }
  RefCount incRefCount() noexcept override { return ++references; }
  RefCount decRefCount() noexcept override { return --references; }
  int32_t count = 0;
  RefCount references = 0;
  nv::ErrorCode last = nv::ErrorCode::kSUCCESS;
};

struct Objects {
  std::unique_ptr<nv::IRuntime> runtime, loaded;
  std::unique_ptr<nv::ICudaEngine> engine;
  std::unique_ptr<nv::IExecutionContext> context;
  std::unique_ptr<nv::IEngineInspector> inspector;

  void end(char which) {
    switch (which) {
      case 'R':
        return runtime.reset();
      case 'L':
        return loaded.reset();
      case 'E':
        return engine.reset();
      case 'C':
        return context.reset();
      default:
        return inspector.reset();
    }
  }
};

std::unique_ptr<nv::ICudaEngine> load(nv::IRuntime& runtime, const std::string& path) {
  const std::vector<char> plan = run_plan::read_file(path);
  return std::unique_ptr<nv::ICudaEngine>(runtime.deserializeCudaEngine(plan.data(), plan.size()));
}

void set_up(nv::IRuntime& runtime, std::map<std::string, std::string>& options) {
  if (options.contains("--allow")) runtime.setEngineHostCodeAllowed(true);
  nv::TempfileControlFlags flags = runtime.getTempfileControlFlags();
  if (options["--memory"] == "no") flags &= ~(1u << static_cast<int>(nv::TempfileControlFlag::kALLOW_IN_MEMORY_FILES));
  if (options["--files"] == "no") flags &= ~(1u << static_cast<int>(nv::TempfileControlFlag::kALLOW_TEMPORARY_FILES));
  runtime.setTempfileControlFlags(flags);
  if (!options["--directory"].empty()) runtime.setTemporaryDirectory(options["--directory"].c_str());
}

void print_what_is_missing(nv::ICudaEngine& engine, Recorder& recorder) {
  const std::unique_ptr<nv::IRuntimeConfig> config(engine.createRuntimeConfig());
  (void)config->getCudaGraphStrategy();
  std::printf("missing %d\n", recorder.count);
  recorder.clear();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  std::map<std::string, std::string> options;
  for (int i = 5; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t end = std::min(word.find('='), word.size());
    options[word.substr(0, end)] = word.substr(std::min(end + 1, word.size()));
  }
  const bool no_code = options.contains("--no-code");
  if ((no_code || options.contains("--no-memfd")) && !forbid_files_in_memory(no_code)) return 4;
  void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) return std::fprintf(stderr, "%s\n", dlerror()), 2;
  auto* const create = reinterpret_cast<void* (*)(void*, int32_t)>(dlsym(library, "createInferRuntime_INTERNAL"));
  if (!create) return 2;
  run_plan::Logger logger;
  Recorder recorder;
  Objects objects;
  objects.runtime.reset(static_cast<nv::IRuntime*>(create(&logger, NV_TENSORRT_VERSION)));
  if (!objects.runtime) return 2;
  objects.runtime->setErrorRecorder(&recorder);
  set_up(*objects.runtime, options);
  const size_t before = mapped();
  if (!options["--lean"].empty()) {
    objects.loaded.reset(objects.runtime->loadRuntime(options["--lean"].c_str()));
    if (!objects.loaded) return 3;
  }
  nv::IRuntime& loader = objects.loaded ? *objects.loaded : *objects.runtime;
  objects.engine = load(loader, argv[2]);
  const size_t during = mapped();
  if (!objects.engine) {
    std::fprintf(stderr, "%d reports\n", recorder.count);
    if (!options["--then"].empty() && !load(loader, options["--then"])) return 1;
    objects = {};
    return std::printf("mapped %zu %zu %zu\n", before, during, mapped()), 3;
  }
  if (!run_plan::run(*objects.engine, argv[3], argv[4])) return 1;
  objects.context.reset(objects.engine->createExecutionContext());
  objects.inspector.reset(objects.engine->createEngineInspector());
  if (!objects.context || !objects.inspector || &objects.context->getEngine() != objects.engine.get() ||
      !objects.inspector->setExecutionContext(objects.context.get()))
    return 1;
  if (options.contains("--later")) print_what_is_missing(*objects.engine, recorder);
  const std::string order = options["--order"].empty() ? "CIELR" : options["--order"];
  for (const char which : order) objects.end(which);
  std::printf("mapped %zu %zu %zu\n", before, during, mapped());
  return recorder.references == 0 && recorder.count == 0 ? 0 : 1;
}
