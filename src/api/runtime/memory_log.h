// SPDX-License-Identifier: Apache-2.0
// Lines of the log about memory, in the words that tools for TensorRT look for.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/log.h"
#include "device/device.h"

namespace lathe::api {

// What the library's allocators hold, when it was made and now. Other threads' share is in it.
class ManagedMemory {
 public:
  explicit ManagedMemory(Log& log);
  // "[MemUsageChange] TensorRT-managed allocation in <doing>: ..."
  void log_change(std::string_view doing) const;
  // "[MemUsageStats] Peak memory usage ...": the most since it was made.
  void log_peak() const;

 private:
  Log& log_;
  size_t host_, device_;
};

// What the process holds on the host, in bytes; 0 where the system does not tell.
size_t resident_bytes();

// What the system says that processes may still take of the host's memory; nullopt = it does not say.
std::optional<size_t> available_bytes();
// One warning where `available` is less than what is needed.
void warn_of_host_memory(size_t needed, std::optional<size_t> available, Log& log);

// "[MemUsageChange] Init CUDA: ...", of a GPU that has just been opened; nothing of others. `resident_before`: what
// resident_bytes() told before.
void log_start(const Device& device, size_t resident_before, Log& log);

// One warning in a process, when it loads an engine for a GPU, where the driver is told to load device code before it
// is used.
void warn_of_eager_loading(const Device& device, Log& log);

// What a context of the plan takes at most, under the profile that needs most: lines that begin with "Total Host
// Persistent Memory", "Total Device Persistent Memory", "Max Scratch Memory", "Total Activation Memory" and "Total
// Weights Memory". `device`: asked what its kernels need where its memory is the host's.
void log_needs(std::span<const std::byte> plan, const std::shared_ptr<Device>& device, Log& log);

}  // namespace lathe::api
