// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/family.h"

#include <charconv>
#include <mutex>
#include <set>

#include "base/never_destroyed.h"
#include "device/cuda/adapt_code.h"
#include "device/cuda/architecture.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/driver.h"
#include "device/cuda/memory.h"
#include "device/family.h"

namespace lathe::cuda {
namespace {

constexpr std::string_view kName = "cuda", kNumbered = "cuda:", kNamed = "cuda-", kShort = "sm_";

// Starting a GPU takes longer than building a small engine, so those that were used are kept, as CUDA's runtime does,
// until the process ends.
struct KeptDevices {
  std::mutex mutex;
  std::set<std::shared_ptr<Device>> devices;
};

KeptDevices& kept_devices() {
  static NeverDestroyed<KeptDevices> kept;  // for threads
  return *kept;
}

void release_devices() {
  KeptDevices& kept = kept_devices();
  std::set<std::shared_ptr<Device>> released;  // destroyed without the lock
  const std::lock_guard lock(kept.mutex);
  released.swap(kept.devices);
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

// "cuda:1" is that GPU.
Result<int> ordinal_of(std::string_view target) {
  int ordinal = -1;
  const std::string_view digits = target.substr(std::min(target.size(), kNumbered.size()));
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
  if (!target.starts_with(kNumbered) || error != std::errc() || end != digits.data() + digits.size() || ordinal < 0)
    return fail(ErrorCode::config_invalid, "target '{}' names no GPU: say cuda, cuda:0, ...", target);
  return ordinal;
}

class Family final : public DeviceFamily {
 public:
  std::string_view name() const override { return kName; }

  Result<std::optional<std::string>> resolve(std::string_view name) const override {
    std::string full = name.starts_with(kShort) ? fmt::format("{}{}", kNamed, name) : std::string(name);
    if (full.starts_with(kNumbered)) {
      LATHE_TRY(ordinal_of(full));
    } else if (full.starts_with(kNamed)) {
      LATHE_TRY(parse_target(full));
    } else if (full != kName) {
      return std::nullopt;
    }
    return full;
  }

  Result<std::shared_ptr<Device>> open(int) const override { return open_and_keep(open_current_device); }
  Result<const CodeImage*> adaptable_image(const CodeModule& module, std::string_view target) const override {
    return cuda::adaptable_image(module, target);
  }
  Result<> find_device() const override {
    LATHE_ASSIGN(const Driver* const found, driver());
    int count = 0;
    const CUresult result = found->cuDeviceGetCount(&count);
    if (result != CUDA_SUCCESS) return fail(driver_error(result, "counting GPUs"));
    if (count == 0) return fail(ErrorCode::cuda_unavailable, "the CUDA driver finds no GPU");
    return {};
  }
  bool is_device_memory(const void* address) const override {
    const Driver* const used = driver_in_use();
    return used && cuda::is_device_memory(*used, address);
  }
  void release() const override {
    release_devices();
    release_compilers();
  }
};

}  // namespace

Result<std::shared_ptr<Device>> open_named(std::string_view name) {
  if (name == kName) return open_and_keep(open_current_device);
  LATHE_ASSIGN(const int ordinal, ordinal_of(name));
  return open_and_keep([&] { return open_device(ordinal); });
}

const DeviceFamily& family() {
  static const Family family;
  return family;
}

}  // namespace lathe::cuda
