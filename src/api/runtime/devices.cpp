// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/devices.h"

#include <charconv>
#include <mutex>
#include <set>

#include "device/cuda/cuda_device.h"
#include "kernels/cpu/open_device.h"
#include "plan/reader.h"

namespace lathe::api {
namespace {

// Starting a GPU takes longer than building a small engine, so those that were used are kept, as CUDA's runtime does,
// until the process ends.
struct KeptDevices {
  std::mutex mutex;
  std::set<std::shared_ptr<Device>> devices;
};

KeptDevices& kept_devices() {
  static auto& kept = *new KeptDevices;  // for threads that outlive main()
  return kept;
}

// A device that a fault has ended is let go: it starts anew once no engine holds it.
template <class Open>
Result<std::shared_ptr<Device>> open_and_keep(Open&& open) {
  Result<std::shared_ptr<Device>> device = open();
  if (!device && device.error().code == ErrorCode::device_lost) {
    release_devices();
    device = open();
  }
  KeptDevices& kept = kept_devices();
  const std::lock_guard lock(kept.mutex);
  if (device) kept.devices.insert(*device);
  return device;
}

Result<std::shared_ptr<Device>> open_current() { return open_and_keep(cuda::open_current_device); }

}  // namespace

Result<int> gpu_ordinal(std::string_view target) {
  constexpr std::string_view kNumbered = "cuda:";
  int ordinal = -1;
  const std::string_view digits = target.substr(std::min(target.size(), kNumbered.size()));
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
  if (!target.starts_with(kNumbered) || error != std::errc() || end != digits.data() + digits.size() || ordinal < 0)
    return fail(ErrorCode::config_invalid, "target '{}' names no GPU: say cuda, cuda:0, ...", target);
  return ordinal;
}

Result<std::shared_ptr<Device>> open_gpu(std::string_view target) {
  if (target == "cuda") return open_current();
  LATHE_ASSIGN(const int ordinal, gpu_ordinal(target));
  return open_and_keep([&] { return cuda::open_device(ordinal); });
}

std::shared_ptr<Device> find_gpu_for(std::string_view target) {
  Result<std::shared_ptr<Device>> device = open_current();
  return device && (*device)->target() == target ? *device : nullptr;
}

void release_devices() {
  KeptDevices& kept = kept_devices();
  std::set<std::shared_ptr<Device>> released;  // destroyed without the lock
  const std::lock_guard lock(kept.mutex);
  released.swap(kept.devices);
}

Result<std::shared_ptr<Device>> device_of_plan(std::span<const std::byte> plan, int cpu_threads) {
  LATHE_ASSIGN(const plan::PlanHeader header, plan::read_header(plan));
  LATHE_TRY(plan::check_usable(header, {}));  // before a driver is looked for, which may be missing, too
  if (header.target.starts_with("cpu")) return cpu::shared_device(cpu_threads);
  if (!header.target.starts_with("cuda"))
    return fail(ErrorCode::plan_target, "the plan is for '{}', which this library does not know", header.target);
  return open_current();
}

}  // namespace lathe::api
