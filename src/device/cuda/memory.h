// SPDX-License-Identifier: Apache-2.0
// Memory of a GPU: blocks, copies, and what addresses are.
#pragma once

#include <memory>

#include "device/cuda/stream.h"
#include "device/device.h"

namespace lathe::cuda {

// Usable by every stream on return; given back to the device after the work that streams have when it is freed.
Result<DeviceMemory> allocate(const std::shared_ptr<PrimaryContext>& context, size_t bytes);

// The same of memory that the application hands out.
struct ContextSource {
  std::shared_ptr<PrimaryContext> context;
  std::shared_ptr<MemorySource> source;
};
Result<DeviceMemory> allocate(const std::shared_ptr<ContextSource>& from, size_t bytes);

// Of the host, for copies that go on after copy() returns.
Result<DeviceMemory> allocate_pinned(const std::shared_ptr<PrimaryContext>& context, size_t bytes);

// upload() has read `from`, and download() has written `to`, on return.
Result<> upload(void* to, const void* from, size_t bytes, Stream& stream);
Result<> download(void* to, const void* from, size_t bytes, Stream& stream);
Result<> copy(const RowsCopy& rows, Stream& stream);

// Whether kernels of the device can use the address: its memory, managed memory, or pinned memory of the host.
bool is_accessible(PrimaryContext& context, const void* address);
// Whether the host can read there: anywhere but in memory of a device.
bool is_readable_by_host(PrimaryContext& context, const void* address);
// Whether it is memory of a device that the host cannot read, in whatever context.
bool is_device_memory(const Driver& driver, const void* address);

}  // namespace lathe::cuda
