// SPDX-License-Identifier: Apache-2.0
// The CPU as a device: host memory, queues that lease a thread pool, kernels that the library holds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/cpu/workers.h"
#include "device/device.h"
#include "device/family.h"

namespace lathe::cpu {

struct CpuDeviceOptions {
  std::shared_ptr<Workers> workers;
  // Finds and makes a kernel by the record's name; the caller that links the kernels supplies it.
  Result<std::unique_ptr<Kernel>> (*make_kernel)(const StepRecord& record) = nullptr;
  Target target;                  // with as many cores as `workers`
  std::vector<std::string> runs;  // targets whose plans run here: it, and lower levels of the same architecture
  std::string timing_key;         // CPU model, instruction set, kernels' version
};

// A turn of a CpuQueue holds the pool, or the calling thread alone while another queue has it.
class CpuQueue final : public Queue {
 public:
  explicit CpuQueue(std::shared_ptr<Workers> workers) : workers_(std::move(workers)) {}
  Result<> begin() override {
    lease_ = workers_->lease();
    return {};
  }
  void end() override { lease_ = {}; }
  ThreadPool& pool() const { return lease_.pool(); }

 private:
  std::shared_ptr<Workers> workers_;
  Workers::Lease lease_;
};

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(CpuDeviceOptions options) : options_(std::move(options)) {}

  std::string_view name() const override { return "cpu"; }
  std::string target() const override { return options_.target.name; }
  Target describe() const override { return options_.target; }
  std::string timing_key() const override { return options_.timing_key; }
  Result<> check_target(std::string_view target) const override;
  bool is_host() const override { return true; }
  int threads() const override { return options_.workers->size(); }

  Result<DeviceMemory> allocate(size_t bytes) override;  // zeroed, on 2 MiB pages where very large
  Result<std::unique_ptr<Queue>> make_queue() override;
  Result<std::unique_ptr<Queue>> make_stream_queue(void*) override { return make_queue(); }
  Result<> upload(void* to, const void* from, size_t bytes, Queue& queue) override;
  Result<> download(void* to, const void* from, size_t bytes, Queue& queue) override;
  Result<> copy(const RowsCopy& rows, Queue&) override {
    rows.run();
    return {};
  }
  Result<> wait(Queue&) override { return {}; }
  bool is_accessible(const void* address) const override { return !is_device_memory(address); }

  Result<std::unique_ptr<Kernel>> make_kernel(const StepRecord& record) override {
    return options_.make_kernel(record);
  }
  Result<std::shared_ptr<const std::byte>> make_resident(std::span<const std::byte> bytes,
                                                         std::shared_ptr<const void> owner) override;
  Result<std::unique_ptr<CapturedGraph>> capture(const std::function<Result<>(Queue&)>&) override { return nullptr; }
  Result<std::vector<double>> time(Queue& queue, const std::function<Result<>(Queue&)>& work, int repeats) override;

 private:
  CpuDeviceOptions options_;
};

}  // namespace lathe::cpu
