// SPDX-License-Identifier: Apache-2.0
// A program that knows the interface by slot numbers alone, as the machine code of a program that was compiled against
// the headers of TensorRT does: it opens a library by its path, builds relu(x), and runs it. A library of
// another generation refuses it. slots_client <libnvinfer.so> <generation>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace {

// Where functions are in the tables of a generation.
struct Slots {
  int32_t version;
  int builder_config, builder_network, builder_build;  // of IBuilder's table
  int set_flag, exclude_lean;                          // IBuilderConfig's; the number of the flag
  int add_input, mark_output, add_activation;          // INetworkDefinition's
  int layer_output;                                    // ILayer's
  int memory_data, memory_size;                        // IHostMemory's
  int deserialize;                                     // IRuntime's
  int create_context;                                  // ICudaEngine's
  int set_address, enqueue;                            // IExecutionContext's
};
constexpr Slots kSlots10{101600, 7, 8, 14, 11, 14, 2, 3, 4, 8, 2, 3, 3, 5, 24, 37};
constexpr Slots kSlots11{110100, 5, 6, 11, 9, 13, 2, 3, 4, 8, 2, 3, 3, 5, 23, 36};

using Function = void (*)();
struct Object {
  Function* table;
  Object* implementation;
};

// Calls slot `slot` of the table behind a public object.
template <class Result, class... Args>
Result call(void* object, int slot, Args... args) {
  Object* implementation = static_cast<Object*>(object)->implementation;
  return reinterpret_cast<Result (*)(void*, Args...)>(implementation->table[slot])(implementation, args...);
}

constexpr int kDeletingDestructor = 1;
void destroy(void* object) {
  reinterpret_cast<void (*)(void*)>(static_cast<Object*>(object)->table[kDeletingDestructor])(object);
}

void log_line(void*, int32_t severity, const char* text) {
  if (severity <= 2) std::printf("log %d: %s\n", severity, text);
}
void no_destructor(void*) {}
int32_t language(const void*) { return 0; }
struct InterfaceInfo {
  const char* kind;
  int32_t major, minor;
};
InterfaceInfo info(const void*) { return {"ILogger", 1, 0}; }

template <class F>
Function erased(F* function) {
  return reinterpret_cast<Function>(function);
}
// A logger of each generation: of the older one log() comes first; of the newer one, what all interfaces have.
Function g_logger_table_10[] = {erased(log_line), erased(no_destructor), erased(no_destructor)};
Function g_logger_table_11[] = {erased(language), erased(info), erased(no_destructor), erased(no_destructor),
                                erased(log_line)};

struct Dims {
  int32_t rank;
  int64_t d[8];
};

[[noreturn]] void fail(const char* what) {
  std::printf("failed: %s\n", what);
  std::exit(1);
}
void* check(void* pointer, const char* what) {
  if (!pointer) fail(what);
  return pointer;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) fail("usage");
  const bool older = std::atoi(argv[2]) == 10;
  const Slots& slots = older ? kSlots10 : kSlots11;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) fail(dlerror());
  struct Logger {
    Function* table;
  } logger{older ? g_logger_table_10 : g_logger_table_11};
  const auto maker = [&](const char* name) {
    return reinterpret_cast<void* (*)(void*, int32_t)>(check(dlsym(library, name), name));
  };
  const auto version = reinterpret_cast<int32_t (*)()>(check(dlsym(library, "getInferLibVersion"), "version"));
  if (version() / 10000 != slots.version / 10000) {
    for (const char* name : {"createInferBuilder_INTERNAL", "createInferRuntime_INTERNAL"})
      if (maker(name)(&logger, slots.version)) fail("a program of another generation is refused");
    std::printf("refused\n");
    return 0;
  }
  if (version() != slots.version) fail("the library's version");

  if (maker("createInferBuilder_INTERNAL")(nullptr, slots.version)) fail("a null logger is refused");

  void* builder = check(maker("createInferBuilder_INTERNAL")(&logger, slots.version), "builder");
  void* network = check(call<void*>(builder, slots.builder_network, uint32_t{older ? 1u : 0u}), "network");
  const Dims dims{1, {4}};
  void* x = check(call<void*>(network, slots.add_input, "x", int32_t{0}, &dims), "input");
  void* relu = check(call<void*>(network, slots.add_activation, x, int32_t{0}), "layer");
  void* y = check(call<void*>(relu, slots.layer_output, int32_t{0}), "output");
  call<void>(y, 2, "y");  // setName()
  call<void>(network, slots.mark_output, y);
  void* config = check(call<void*>(builder, slots.builder_config), "config");
  call<void>(config, slots.set_flag, int32_t{slots.exclude_lean});
  void* plan = check(call<void*>(builder, slots.builder_build, network, config), "plan");

  void* runtime = check(maker("createInferRuntime_INTERNAL")(&logger, slots.version), "runtime");
  void* engine = check(call<void*>(runtime, slots.deserialize, call<void*>(plan, slots.memory_data),
                                   call<size_t>(plan, slots.memory_size)),
                       "engine");
  void* context = check(call<void*>(engine, slots.create_context, int32_t{0}), "context");
  float in[4] = {-1, 2, -3, 4}, out[4] = {};
  if (!call<bool>(context, slots.set_address, "x", static_cast<void*>(in))) fail("address of x");
  if (!call<bool>(context, slots.set_address, "y", static_cast<void*>(out))) fail("address of y");
  if (!call<bool>(context, slots.enqueue, static_cast<void*>(nullptr))) fail("enqueue");
  for (void* object : {context, engine, runtime, plan, config, network, builder}) destroy(object);
  std::printf("y = %g %g %g %g\n", out[0], out[1], out[2], out[3]);
  return 0;
}
