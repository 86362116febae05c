// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/target.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "base/result.h"

namespace lathe::cpu {
namespace {

// What /proc/cpuinfo says of the first CPU; empty where it is told otherwise.
std::string cpuinfo(std::initializer_list<const char*> keys) {
  std::FILE* file = std::fopen("/proc/cpuinfo", "re");
  if (!file) return "";
  char line[256];
  std::string values;
  while (std::fgets(line, sizeof line, file) && line[0] != '\n')
    for (const char* key : keys)
      if (std::strncmp(line, key, std::strlen(key)) == 0)
        if (const char* colon = std::strstr(line, ": ")) values += colon + 2;
  std::fclose(file);
  for (char& c : values)
    if (c == '\n') c = ' ';
  return values;
}

constexpr Processor kProcessors[] = {
#define LATHE_CPU(target, level, products, lanes, units, mhz, threads, kib, l2, l1, core_gb_s, gb_s)             \
  {target,          IsaLevel::level, NarrowProducts::products, lanes, units, mhz, threads, (kib)*1024.0, l2, l1, \
   (core_gb_s)*1e3, (gb_s)*1e3},
#include "kernels/cpu/processors.def"
#undef LATHE_CPU
};

constexpr double kMatrixProducts = 512;  // of bf16, 16 x 16 x 32 in 16 clocks

#if defined(__x86_64__)
constexpr std::string_view kArchitecture = "cpu-x86_64-";
#else
constexpr std::string_view kArchitecture = "cpu-arm64-";
#endif

bool has(NarrowProducts products) {
  switch (products) {
    case NarrowProducts::none:
      return true;
    case NarrowProducts::vnni:
      return multiplies_bytes();
    case NarrowProducts::bf16:
      return multiplies_bf16();
    case NarrowProducts::amx:
      return has_matrix_registers();
  }
  return false;
}

bool runs_plans_for(const Processor& processor) {
  return processor.target.starts_with(kArchitecture) && processor.level <= isa_level() && has(processor.products);
}

// What the system says in a file; 0 where there is none.
double number_in(const std::string& path) {
  double value = 0;
  std::ifstream(path) >> value;
  return value;
}

}  // namespace

const Processor* find_processor(std::string_view name) {
  const auto is_meant = [name](const Processor& processor) {
    return processor.target == name || processor.target.substr(0, processor.target.rfind('-')) == name;
  };
  const auto* found = std::ranges::find_if(kProcessors, is_meant);
  return found == std::end(kProcessors) ? nullptr : found;
}

const Processor& own_processor() {
  const auto is_own = [](const Processor& processor) {
    return is_here(processor) && processor.products == NarrowProducts::none;
  };
  return *std::ranges::find_if(kProcessors, is_own);  // each level of an architecture has a row
}

bool is_here(const Processor& processor) { return runs_plans_for(processor) && processor.level == isa_level(); }

bool multiplies_bytes(const Processor& processor) {
  return is_here(processor) ? multiplies_bytes() : processor.products >= NarrowProducts::vnni;
}
bool multiplies_bf16(const Processor& processor) {
  return is_here(processor) ? multiplies_bf16() : processor.products >= NarrowProducts::bf16;
}
bool has_matrix_registers(const Processor& processor) {
  return is_here(processor) ? has_matrix_registers() : processor.products >= NarrowProducts::amx;
}

Target describe(const Processor& processor, int threads) {
  Target target;
  target.name = processor.target;
  target.cores = target.least_cores = threads > 0 ? threads : processor.threads;
  target.products.f32 = processor.lanes * processor.units;
  target.products.f64 = target.products.f32 / 2;
  target.products.matrix = has_matrix_registers(processor) ? kMatrixProducts : 0;
  target.clock_mhz = processor.clock_mhz;
  target.memory_rate = std::min(processor.core_memory_rate * target.cores, processor.memory_rate);
  target.cache_bytes = processor.cache_bytes;
  target.cache_clock_bytes = processor.cache_clock_bytes;
  target.shared_clock_bytes = processor.shared_clock_bytes;
  return target;
}

Target describe_machine(int threads, const std::string& cpu) {
  Target target = describe(own_processor(), threads);
  const double khz = number_in(cpu + "/cpufreq/base_frequency");  // Linux's intel_pstate
  const double mhz = number_in(cpu + "/acpi_cppc/nominal_freq");  // firmware of other processors
  if (khz > 0 || mhz > 0) target.clock_mhz = khz > 0 ? khz / 1e3 : mhz;
  // The kernel writes "2048K"; the suffix stays unread.
  const double kib = number_in(cpu + "/cache/index2/size");
  if (kib > 0) target.cache_bytes = kib * 1024;
  return target;
}

std::string product_name() {
  const std::string name = cpuinfo({"model name"});
  return name.empty() ? "unknown CPU" : name.substr(0, name.size() - 1);
}

std::string timing_device() {
  return fmt::format("{}| {} | kernels built {}",
                     cpuinfo({"model name", "cpu family", "model\t", "stepping", "cache size"}), name_of(isa_level()),
                     LATHE_KERNEL_HASH);
}

std::string target_name() { return std::string(own_processor().target); }

std::vector<std::string> runnable_targets() {
  std::vector<std::string> targets;
  for (const Processor& processor : kProcessors)
    if (runs_plans_for(processor)) targets.emplace_back(processor.target);
  return targets;
}

}  // namespace lathe::cpu
