// SPDX-License-Identifier: Apache-2.0
#include "device/null/null_device.h"

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "base/divide.h"
#include "device/family.h"

namespace lathe::null {
namespace {

constexpr size_t kAlignment = 256;

struct NullQueue final : Queue {
  Result<> begin() override { return {}; }
  void end() override {}
};

class NullKernel final : public Kernel {
 public:
  explicit NullKernel(Counts& counts) : counts_(counts) {}
  Result<size_t> prepare(const Operands&, int) const override { return 0; }
  Result<> enqueue(const Operands&, std::byte*, Queue&) const override {
    ++counts_.launches;
    return {};
  }

 private:
  Counts& counts_;  // of the device, which outlives its kernels
};

class Family final : public DeviceFamily {
 public:
  std::string_view name() const override { return "null"; }
  Result<std::optional<std::string>> resolve(std::string_view name) const override {
    if (name != "null") return std::nullopt;
    return std::string(name);
  }
  Result<std::shared_ptr<Device>> open(int) const override { return std::make_shared<NullDevice>(); }
  Result<> find_device() const override {
    return fail(ErrorCode::config_invalid, "builds are for the device that computes nothing only where they name it");
  }
};

}  // namespace

Target NullDevice::describe() const {
  Target target;
  target.name = this->target();
  return target;
}

Result<> NullDevice::check_target(std::string_view target) const {
  if (target == this->target()) return {};
  return fail(ErrorCode::plan_target, "the plan is for '{}', and this is the null device: build it with --target=null",
              target);
}

Result<DeviceMemory> NullDevice::allocate(size_t bytes) {
  if (bytes == 0) return DeviceMemory();
  if (bytes > SIZE_MAX - kAlignment) return fail(ErrorCode::out_of_memory, "cannot allocate {} bytes", bytes);
  const size_t rounded = round_up(bytes, kAlignment);
  auto* data = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  if (!data) return fail(ErrorCode::out_of_memory, "cannot allocate {} bytes", bytes);
  std::memset(data, 0, rounded);
  ++counts_.allocations;
  counts_.allocated_bytes += static_cast<int64_t>(bytes);
  return DeviceMemory(data, rounded, nullptr, [](void*, std::byte* memory, size_t) { std::free(memory); });
}

Result<std::unique_ptr<Queue>> NullDevice::make_queue() { return std::make_unique<NullQueue>(); }

Result<> NullDevice::copy(const RowsCopy& rows, Queue&) {
  rows.run();
  ++counts_.device_copies;
  return {};
}

Result<> NullDevice::move(void* to, const void* from, size_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
  ++counts_.copies;
  counts_.copied_bytes += static_cast<int64_t>(bytes);
  return {};
}

Result<> NullDevice::wait(Queue&) {
  ++counts_.waits;
  return {};
}

Result<std::unique_ptr<Kernel>> NullDevice::make_kernel(const StepRecord&) {
  return std::make_unique<NullKernel>(counts_);
}

Result<std::shared_ptr<const std::byte>> NullDevice::make_resident(std::span<const std::byte> bytes,
                                                                   std::shared_ptr<const void> owner) {
  return std::shared_ptr<const std::byte>(std::move(owner), bytes.data());
}

Result<std::vector<double>> NullDevice::time(Queue& queue, const std::function<Result<>(Queue&)>& work, int repeats) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    const Clock::time_point start = Clock::now();
    LATHE_TRY(work(queue));
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  return times;
}

const DeviceFamily& family();  // families.def
const DeviceFamily& family() {
  static const Family family;
  return family;
}

}  // namespace lathe::null
