// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/architecture.h"

#include <algorithm>
#include <charconv>

namespace lathe::cuda {
namespace {

constexpr Architecture kArchitectures[] = {
#define LATHE_CUDA_ARCHITECTURE(number, code, family, shared, threads, cluster, warpgroups, float8, least, sms, mhz, \
                                gb_s, mb, f32, f64, mma)                                                             \
  {number,                                                                                                           \
   code,                                                                                                             \
   family,                                                                                                           \
   {int64_t{shared} << 10, 1024, threads, 65536, int64_t{shared} << 10, cluster, warpgroups, (float8) != 0,          \
    (number) >= 80},                                                                                                 \
   least,                                                                                                            \
   sms,                                                                                                              \
   mhz,                                                                                                              \
   (gb_s)*1e3,                                                                                                       \
   (mb)*1e6,                                                                                                         \
   {f32, f64, mma, (warpgroups) ? 2 * (mma) : 0}},
#include "device/cuda/architectures.def"
#undef LATHE_CUDA_ARCHITECTURE
};

constexpr std::string_view kPrefix = "cuda-sm_", kOpen = "+";

constexpr int64_t kReserved = 1 << 10;  // of a block's shared memory, for the driver
constexpr Architecture kAmperePlus = [] {
  Architecture architecture = *std::ranges::find(kArchitectures, 80, &Architecture::number);
  architecture.code = "compute_80";
  architecture.family = "Ampere and later";
  architecture.limits.shared_bytes = architecture.limits.core_shared_bytes = (48 << 10) - kReserved;
  for (const Architecture& other : kArchitectures) {
    if (other.number < architecture.number) continue;
    architecture.limits.core_threads = std::min(architecture.limits.core_threads, other.limits.core_threads);
    architecture.least_multiprocessors = std::min(architecture.least_multiprocessors, other.least_multiprocessors);
  }
  return architecture;
}();

// The share of its highest clock that a device keeps up under load; measured on one H200: 1700 of 1980 MHz.
constexpr double kSustained = 1700.0 / 1980;

std::string known() {
  std::string text;
  for (const Architecture& architecture : kArchitectures)
    text += fmt::format("{}sm_{}", text.empty() ? "" : " ", architecture.number);
  return text;
}

}  // namespace

Result<const Architecture*> find_architecture(int number) {
  for (const Architecture& architecture : kArchitectures)
    if (architecture.number == number) return &architecture;
  return fail(ErrorCode::cuda_architecture_unsupported,
              "GPU architecture sm_{} is {}; this version of Lathe knows {}: {}", number,
              number < kArchitectures[0].number ? "too old" : "not known", known(),
              number < kArchitectures[0].number ? "use a newer GPU, or the CPU" : "install a newer version of Lathe");
}

const Architecture& ampere_plus() { return kAmperePlus; }

bool runs_code_of(const Architecture& built, const Architecture& device) {
  return built.is_open() ? device.number >= built.number : device.number == built.number;
}

Result<const Architecture*> parse_target(std::string_view target) {
  int number = 0;
  if (target == target_name(kAmperePlus)) return &kAmperePlus;
  if (target.starts_with(kPrefix)) {
    const char* end = target.data() + target.size();
    const auto [rest, problem] = std::from_chars(target.data() + kPrefix.size(), end, number);
    if (problem == std::errc() && rest == end) return find_architecture(number);
  }
  return fail(ErrorCode::invalid_argument, "'{}' is no CUDA target: they read {}80, {}90...", target, kPrefix, kPrefix);
}

std::string target_name(const Architecture& architecture) {
  return fmt::format("{}{}{}", kPrefix, architecture.number, architecture.is_open() ? kOpen : "");
}

Target describe(const Architecture& architecture) {
  Target target;
  target.name = target_name(architecture);
  target.cores = architecture.multiprocessors;
  target.least_cores = architecture.least_multiprocessors;
  target.limits = architecture.limits;
  target.products = architecture.products;
  target.clock_mhz = kSustained * architecture.clock_mhz;
  target.memory_rate = architecture.memory_rate;
  target.cache_bytes = architecture.cache_bytes;
  target.cache_clock_bytes = 64;
  target.shared_clock_bytes = 128;
  target.launch_us = 2;
  return target;
}

Target describe_as_ampere_plus(Target device) {
  device.name = target_name(kAmperePlus);
  device.limits = kAmperePlus.limits;
  device.least_cores = std::min(device.least_cores, kAmperePlus.least_multiprocessors);
  device.products.warpgroup_matrix = 0;
  return device;
}

// What a driver does not tell (0) is taken from the table.
Target describe(const Architecture& architecture, const DeviceProperties& properties) {
  Target target = describe(architecture);
  const auto measure = [](double value, double& number) {
    if (value > 0) number = value;
  };
  if (properties.multiprocessors > 0) target.cores = target.least_cores = properties.multiprocessors;
  measure(kSustained * properties.clock_khz / 1e3, target.clock_mhz);
  // Two transfers in each clock of the memory: kHz * bits / 8 * 2 is bytes in a millisecond.
  measure(properties.memory_clock_khz / 1e3 * properties.memory_bus_bits / 4, target.memory_rate);
  measure(properties.l2_bytes, target.cache_bytes);
  return target;
}

}  // namespace lathe::cuda
