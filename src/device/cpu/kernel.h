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
#include "device/cpu/cpu_device.h"
#include "device/program.h"
#include "device/tensor_arg.h"

namespace lathe::cpu {

// The immutable part of a step, as the plan holds it. It comes from a file: make() checks every value it relies on.
struct Record {
  std::span<const int64_t> params;   // the kernel's own struct, as encode_params() lists it
  const Program* program = nullptr;  // epilogue or pointwise program, already validated; null = none
};

struct Launch {
  std::span<const TensorArg> inputs;  // constants (packed weights too) are inputs like any other
  std::span<const TensorArg> outputs;
  std::byte* workspace = nullptr;  // 64-byte aligned, of the size that workspace_bytes() asked for
  ThreadPool& pool;
};

class Kernel : public lathe::Kernel {
 public:
  // Refuses shapes, strides or types that run() could not handle; called when shapes are set, before any run().
  virtual Result<> check(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs) const = 0;
  // Scratch bytes for these shapes (data pointers are not valid yet).
  virtual size_t workspace_bytes(std::span<const TensorArg> inputs, std::span<const TensorArg> outputs,
                                 int threads) const {
    return 0;
  }
  // Thread-safe and const; may not allocate, fail or throw.
  virtual void run(const Launch& launch) const = 0;
  // The same for kernels whose operands may hold what they cannot work with, such as an index that lies outside.
  virtual Result<> try_run(const Launch& launch) const {
    run(launch);
    return {};
  }

  Result<size_t> prepare(const Operands& operands, int threads) const final {
    LATHE_TRY(check(operands.inputs, operands.outputs));
    return workspace_bytes(operands.inputs, operands.outputs, threads);
  }
  Result<> enqueue(const Operands& operands, std::byte* workspace, Queue& queue) const final {
    return try_run({operands.inputs, operands.outputs, workspace, static_cast<CpuQueue&>(queue).pool()});
  }
};

}  // namespace lathe::cpu
