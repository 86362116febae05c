// SPDX-License-Identifier: Apache-2.0
// The program's side of NVTX 3, as its headers describe it (nvtx3/nvtxDetail/nvtxTypes.h): the profiler is handed
// tables of functions of ours, and puts its own in those that it wants to be told by.
#include "base/trace_ranges.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>

namespace lathe {
namespace {

using Function = void (*)();

// Numbers of NvtxCallbackModule, NvtxCallbackIdCore2 and NvtxExportTableID.
constexpr int kModules = 7, kCore2 = 5;
constexpr unsigned kFunctions[kModules] = {0, 16, 9, 15, 7, 16, 7};  // of each module; the first is none
constexpr unsigned kMost = 16;
constexpr unsigned kDomainPush = 4, kDomainPop = 5, kDomainCreate = 12;
constexpr uint32_t kCallbacks = 1, kVersionInfo = 3, kVersion = 3;

struct Tables {
  Function functions[kModules][kMost] = {};
  Function* pointers[kModules][kMost + 1] = {};  // to them, and a null at the end

  constexpr Tables() {
    for (int m = 0; m < kModules; ++m)
      for (unsigned i = 1; i < kFunctions[m]; ++i) pointers[m][i] = &functions[m][i];
  }
};
constinit Tables tables;

int give_table(int module, Function*** table, unsigned* count) {
  if (module <= 0 || module >= kModules) return 0;
  if (table) *table = tables.pointers[module];
  if (count) *count = kFunctions[module];
  return 1;
}

void ignore_version(uint32_t) {}

struct Callbacks {
  size_t size = sizeof(Callbacks);
  int (*give)(int, Function***, unsigned*) = give_table;
};
struct VersionInfo {
  size_t size = sizeof(VersionInfo);
  uint32_t version = kVersion, reserved = 0;
  void (*tell)(uint32_t) = ignore_version;
};

const void* give_export(uint32_t id) {
  static constexpr Callbacks callbacks;
  static constexpr VersionInfo version;
  return id == kCallbacks ? static_cast<const void*>(&callbacks) : id == kVersionInfo ? &version : nullptr;
}

// nvtxEventAttributes_t with a text.
struct Event {
  uint16_t version = kVersion, size = sizeof(Event);
  uint32_t category = 0;
  int32_t color_type = 0;
  uint32_t color = 0;
  int32_t payload_type = 0, reserved = 0;
  uint64_t payload = 0;
  int32_t message_type = 1;  // characters
  const char* message = nullptr;
};
static_assert(sizeof(Event) == 48 && offsetof(Event, message) == 40);

template <class F>
F slot(unsigned id) {
  return reinterpret_cast<F>(tables.functions[kCore2][id]);
}

struct Listener {
  void* domain = nullptr;
  bool listens = false;

  Listener() {
    using Initialize = int (*)(const void* (*)(uint32_t));
    const char* path = std::getenv("NVTX_INJECTION64_PATH");
    void* library = path && *path ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : nullptr;
    if (!library) return;
    const auto initialize = reinterpret_cast<Initialize>(dlsym(library, "InitializeInjectionNvtx2"));
    if (!initialize || initialize(give_export) == 0) {
      dlclose(library);
      for (auto& functions : tables.functions) std::fill(std::begin(functions), std::end(functions), nullptr);
      return;
    }
    listens = slot<Function>(kDomainPush) && slot<Function>(kDomainPop);
    if (const auto create = slot<void* (*)(const char*)>(kDomainCreate); listens && create) domain = create("TensorRT");
  }
};

const Listener& listener() {
  static const Listener found;
  return found;
}

}  // namespace

bool has_trace_listener() { return listener().listens; }

TraceRange::TraceRange(const char* name) : is_open_(name && has_trace_listener()) {
  if (!is_open_) return;
  Event event;
  event.message = name;
  slot<int (*)(void*, const Event*)>(kDomainPush)(listener().domain, &event);
}

TraceRange::~TraceRange() {
  if (is_open_) slot<int (*)(void*)>(kDomainPop)(listener().domain);
}

}  // namespace lathe
