// SPDX-License-Identifier: Apache-2.0
// A device that accepts every plan for it, computes nothing and counts what it is asked for: what the host does can be
// tested and timed by itself. Its memory is the host's, zeroed. Thread-safe.
#pragma once

#include <atomic>

#include "device/device.h"

namespace lathe::null {

struct Counts {
  std::atomic<int64_t> allocations = 0, allocated_bytes = 0, launches = 0, copies = 0, copied_bytes = 0, waits = 0,
                       device_copies = 0;
};

class NullDevice : public Device {
 public:
  std::string_view name() const override { return "null"; }
  std::string target() const override { return "null"; }
  Target describe() const override;
  std::string timing_key() const override { return "null"; }
  Result<> check_target(std::string_view target) const override;
  bool is_host() const override { return false; }

  Result<DeviceMemory> allocate(size_t bytes) override;
  Result<std::unique_ptr<Queue>> make_queue() override;
  Result<std::unique_ptr<Queue>> make_stream_queue(void*) override { return make_queue(); }
  Result<> upload(void* to, const void* from, size_t bytes, Queue&) override { return move(to, from, bytes); }
  Result<> download(void* to, const void* from, size_t bytes, Queue&) override { return move(to, from, bytes); }
  Result<> copy(const RowsCopy& rows, Queue&) override;
  Result<> wait(Queue& queue) override;
  bool is_accessible(const void*) const override { return true; }
  Result<std::unique_ptr<Kernel>> make_kernel(const StepRecord& record) override;
  Result<std::shared_ptr<const std::byte>> make_resident(std::span<const std::byte> bytes,
                                                         std::shared_ptr<const void> owner) override;
  Result<std::unique_ptr<CapturedGraph>> capture(const std::function<Result<>(Queue&)>&) override { return nullptr; }
  Result<std::vector<double>> time(Queue& queue, const std::function<Result<>(Queue&)>& work, int repeats) override;

  const Counts& counts() const { return counts_; }

 private:
  Result<> move(void* to, const void* from, size_t bytes);
  Counts counts_;
};

}  // namespace lathe::null
