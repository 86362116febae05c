// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/target.h"

#include <cstdio>
#include <cstring>

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

}  // namespace

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
