// SPDX-License-Identifier: Apache-2.0
#include "api/builder/memory_monitor.h"

#include <cstdlib>
#include <fstream>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/memory_tally.h"

namespace lathe::api {
namespace {

// A line of /proc/self/status, such as "VmRSS:   1234 kB"; 0 where there is none.
size_t bytes_of(std::string_view key) {
  std::ifstream status("/proc/self/status");
  std::string word;
  for (size_t kilobytes = 0; status >> word;)
    if (word == key && status >> kilobytes) return kilobytes << 10;
  return 0;
}

}  // namespace

void MemoryMonitor::enter(std::string_view phase) {
  if (!phases_.empty() && phases_.back().name == phase) return;
  phases_.push_back(
      {std::string(phase), bytes_of("VmRSS:"), bytes_of("VmHWM:"), device_tally().live(), device_tally().peak()});
  const auto mebibytes = [](size_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  const Phase& now = phases_.back();
  log_.print(Severity::info,
             "[MemUsage] {}: {:.0f} MiB resident, {:.0f} MiB at most so far; GPU {:.0f} MiB, {:.0f} MiB at most", phase,
             mebibytes(now.resident), mebibytes(now.peak), mebibytes(now.device), mebibytes(now.device_peak));
}

void return_free_memory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

}  // namespace lathe::api
