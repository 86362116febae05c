// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/cpu_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/divide.h"
#include "base/memory_tally.h"

namespace lathe::cpu {
namespace {

constexpr size_t kHugePage = 2u << 20;
// Below this the processor's second-level TLB reaches the block with small pages, and steady inference is no faster
// with huge ones. Getting them costs up to 2.5 ms each on a virtual machine whose host has taken its free memory back.
constexpr size_t kWorthHugePages = 32u << 20;

}  // namespace

Result<> CpuDevice::check_target(std::string_view target) const {
  if (std::find(options_.runs.begin(), options_.runs.end(), target) != options_.runs.end()) return {};
  return fail(ErrorCode::plan_target, "the plan is for '{}', and this machine is '{}': build it here", target,
              options_.target.name);
}

Result<DeviceMemory> CpuDevice::allocate(size_t bytes) {
  if (bytes == 0) return DeviceMemory();
  const size_t unit = bytes >= kWorthHugePages ? kHugePage : 4096;
  if (bytes > SIZE_MAX - unit) return fail(ErrorCode::out_of_memory, "cannot allocate {} bytes", bytes);
  const size_t rounded = round_up(bytes, unit);
  void* address = ::mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return fail(ErrorCode::out_of_memory, "cannot allocate {} bytes", bytes);
  if (unit == kHugePage) ::madvise(address, rounded, MADV_HUGEPAGE);
  host_tally().add(rounded);
  return DeviceMemory(static_cast<std::byte*>(address), rounded, nullptr, [](void*, std::byte* data, size_t size) {
    ::munmap(data, size);
    host_tally().remove(size);
  });
}

Result<std::unique_ptr<Queue>> CpuDevice::make_queue() { return std::make_unique<CpuQueue>(options_.workers); }

Result<> CpuDevice::upload(void* to, const void* from, size_t bytes, Queue&) {
  if (bytes != 0) std::memcpy(to, from, bytes);
  return {};
}

Result<> CpuDevice::download(void* to, const void* from, size_t bytes, Queue&) {
  if (bytes != 0) std::memcpy(to, from, bytes);
  return {};
}

Result<std::shared_ptr<const std::byte>> CpuDevice::make_resident(std::span<const std::byte> bytes,
                                                                  std::shared_ptr<const void> owner) {
  return std::shared_ptr<const std::byte>(std::move(owner), bytes.data());
}

Result<std::vector<double>> CpuDevice::time(Queue& queue, const std::function<Result<>(Queue&)>& work, int repeats) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    const Clock::time_point start = Clock::now();
    LATHE_TRY(work(queue));
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  return times;
}

}  // namespace lathe::cpu
