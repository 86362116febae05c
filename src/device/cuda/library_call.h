// SPDX-License-Identifier: Apache-2.0
// A launch that calls a library: the values of its arguments, evaluated, go to the function that its entry names.
#pragma once

#include <memory>
#include <span>

#include "device/cuda/stream.h"

namespace lathe::cuda {

// Thread-safe. Values stand in the order of the launch's arguments: addresses and numbers as each function's header
// says.
class LibraryCall {
 public:
  virtual ~LibraryCall() = default;
  // Refuses numbers that enqueue() could not handle; gives the bytes that it needs at its workspace argument. Addresses
  // are not valid yet.
  virtual Result<size_t> prepare(std::span<const int64_t> values) const = 0;
  // Values that prepare() has seen, with addresses. May be captured. The device's context is current.
  virtual Result<> enqueue(std::span<const int64_t> values, Stream& stream) const = 0;
};

}  // namespace lathe::cuda
