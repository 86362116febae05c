// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/target.h"

#include <cstdio>
#include <cstring>
#include <fstream>

#include "base/result.h"
#include "kernels/cpu/isa.h"

namespace lathe::cpu {
namespace {

std::string cpu_model() {
  std::string model = "unknown CPU";
  std::FILE* file = std::fopen("/proc/cpuinfo", "re");
  if (!file) return model;
  char line[256];
  std::string parts;
  while (std::fgets(line, sizeof line, file) && line[0] != '\n')
    for (const char* key : {"model name", "cpu family", "model\t", "stepping", "cache size"})
      if (std::strncmp(line, key, std::strlen(key)) == 0)
        if (const char* colon = std::strchr(line, ':')) parts += colon + 1;
  std::fclose(file);
  for (char& c : parts)
    if (c == '\n') c = ' ';
  return parts.empty() ? model : parts;
}

std::string target_of(IsaLevel level) {
#if defined(__x86_64__)
  return fmt::format("cpu-x86_64-{}", name_of(level));
#else
  return fmt::format("cpu-aarch64-{}", name_of(level));
#endif
}

// What the system says in a file; 0 where there is none.
double number_in(const char* path) {
  double value = 0;
  std::ifstream(path) >> value;
  return value;
}

// Of the levels: two units that multiply and add whole vectors, or one that multiplies and one that adds.
Target::Products products_of(IsaLevel level) {
  Target::Products products;
  products.f32 = level == IsaLevel::avx512 ? 32 : level == IsaLevel::avx2 ? 16 : 4;
  products.f64 = products.f32 / 2;
  return products;
}

}  // namespace

Target describe_core() {
  Target target;
  target.name = target_name();
  target.products = products_of(isa_level());
  const double khz = number_in("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
  if (khz > 0) target.clock_mhz = khz / 1e3;
  // The kernel writes "2048K"; the suffix stays unread.
  const double kib = number_in("/sys/devices/system/cpu/cpu0/cache/index2/size");
  if (kib > 0) target.cache_bytes = kib * 1024;
  return target;
}

std::string timing_device() {
  return fmt::format("{}| {} | kernels built {}", cpu_model(), name_of(isa_level()), LATHE_KERNEL_HASH);
}

std::string target_name() { return target_of(isa_level()); }

std::vector<std::string> runnable_targets() {
  std::vector<std::string> targets;
  for (const IsaLevel level : {IsaLevel::baseline, IsaLevel::avx2, IsaLevel::avx512})
    if (level <= isa_level()) targets.push_back(target_of(level));
  return targets;
}

}  // namespace lathe::cpu
