// SPDX-License-Identifier: Apache-2.0
// What a CPU kernel is to the runtime. A plan step names a kernel and carries its Record; the engine makes one Kernel
// object per step at load, shared by all contexts and threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/dtype.h"
#include "base/result.h"
#include "device/cpu/thread_pool.h"
#include "device/program.h"

namespace lathe::cpu {

inline constexpr int kMaxRank = 8;

// A tensor in memory. dims are the logical ones (N C H W for images, whatever the layout); strides are in elements and
// carry the layout: channels-last has strides {H*W*P, 1, W*P, P} with pixel pitch P >= C. A stride of 0 broadcasts.
struct TensorArg {
  void* data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;
  int64_t dims[kMaxRank] = {};
  int64_t strides[kMaxRank] = {};

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  int64_t volume() const {
    int64_t product = 1;
    for (int i = 0; i < rank; ++i) product *= dims[i];
    return product;
  }
};

// The immutable part of a step, as the plan holds it. It comes from a file: make() checks every value it relies on.
struct Record {
  std::span<const int64_t> params;   // the kernel's own parameters, in the order its header states
  const Program* program = nullptr;  // epilogue or pointwise program, already validated; null = none
};

struct Launch {
  std::span<const TensorArg> inputs;  // constants (packed weights too) are inputs like any other
  std::span<const TensorArg> outputs;
  std::byte* workspace = nullptr;  // 64-byte aligned, of the size that workspace_bytes() asked for
  ThreadPool& pool;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  // Refuses shapes, strides or types that run() could not handle; called when shapes are set, before any run().
  virtual Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const = 0;
  // Scratch bytes for these shapes (data pointers are not valid yet).
  virtual size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                                 int threads) const {
    return 0;
  }
  // Thread-safe and const; may not allocate, fail or throw.
  virtual void run(const Launch& launch) const = 0;
};

}  // namespace lathe::cpu
