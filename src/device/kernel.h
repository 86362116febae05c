// SPDX-License-Identifier: Apache-2.0
// What a step of a plan runs, on any device.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "device/launch.h"
#include "device/program.h"
#include "device/tensor_arg.h"

namespace lathe {

// In-order work of a device: the lease of a thread pool, a CUDA stream. Used by one thread at a time; work is given to
// it between begin() and end() only.
class Queue {
 public:
  virtual ~Queue() = default;
  virtual Result<> begin() = 0;
  virtual void end() = 0;
  // Whether the application captures what is given to it: captured graphs cannot be replayed then.
  virtual bool is_captured() const { return false; }
  // Records an event of the application's behind the work that it was given so far. Where that is done when it has been
  // given, there is nothing to wait for.
  virtual Result<> record_event(void* /*event*/) { return {}; }
  // What is accessed there by work that follows stays in the part of the cache that is set aside, as far as there is
  // room (Device::set_aside_cache); 0 bytes = nothing does.
  virtual Result<> keep_in_cache(const void* /*base*/, size_t /*bytes*/) { return {}; }
};

// begin() and end() of a queue for a scope.
class QueueTurn {
 public:
  static Result<QueueTurn> take(Queue& queue) {
    LATHE_TRY(queue.begin());
    return QueueTurn(&queue);
  }
  QueueTurn(QueueTurn&& other) noexcept : queue_(other.queue_) { other.queue_ = nullptr; }
  QueueTurn& operator=(QueueTurn&&) = delete;
  ~QueueTurn() {
    if (queue_) queue_->end();
  }

 private:
  explicit QueueTurn(Queue* queue) : queue_(queue) {}
  Queue* queue_;
};

struct Operands {
  std::span<const TensorArg> inputs;  // constants (packed weights too) are inputs like any other
  std::span<const TensorArg> outputs;
  std::span<const int64_t> symbols;  // values of the plan's symbols, for the expressions of launches
  // What prepare() works out of the symbols, for enqueue() of the same kernel, which was prepared with this list last;
  // null = enqueue() does it anew.
  std::vector<int64_t>* numbers = nullptr;
};

// The immutable part of a step, as the plan holds it. It comes from a file: make_kernel() checks every value.
struct StepRecord {
  std::string_view kernel;
  std::span<const int64_t> params;                   // the kernel's own struct, as encode_params() lists it
  const Program* program = nullptr;                  // epilogue or pointwise program, already validated; null = none
  std::span<const Launch> launches;                  // device code; empty for kernels that the library itself holds
  const Expr* workspace = nullptr;                   // bytes that the launches need
  std::span<const std::span<const std::byte>> code;  // the plan's code modules
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  // Refuses shapes, strides or types that enqueue() could not handle; gives the workspace's bytes. Called when shapes
  // are set; data pointers are not valid yet. `threads` is the most that the queue will work with (CPU).
  virtual Result<size_t> prepare(const Operands& operands, int threads) const = 0;
  // Thread-safe; allocates nothing and waits for nothing. `workspace` is 256-byte aligned.
  virtual Result<> enqueue(const Operands& operands, std::byte* workspace, Queue& queue) const = 0;
};

}  // namespace lathe
