// SPDX-License-Identifier: Apache-2.0
// Memory and order of work where an engine runs: the host's, or a GPU's through the CUDA driver, which is opened while
// running, so that the program also starts where there is none.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "NvInfer.h"

class Device {
 public:
  virtual ~Device() = default;
  // Zeros, for as long as the device lives; nullptr when there is no room.
  virtual void* allocate(size_t bytes) = 0;
  // In the order of the stream. Those of the host wait for the work before them.
  virtual bool upload(void* to, const void* from, size_t bytes) = 0;
  virtual bool download(void* to, const void* from, size_t bytes) = 0;
  virtual cudaStream_t stream() const = 0;
  // Does the work that `enqueue` gives to the stream, which is the same in each call with that number: as one CUDA
  // graph, captured at the first one, where there are such.
  virtual bool repeat(size_t number, const std::function<bool()>& enqueue) = 0;
};

std::unique_ptr<Device> make_host();
// nullptr, and a line on the standard error stream, where there is no GPU.
std::unique_ptr<Device> make_gpu();
