// SPDX-License-Identifier: Apache-2.0
// A stack of its own to run a function on, and the switch between stacks.
#pragma once

#include <cstddef>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace emulator {

// Where a suspended flow of control goes on.
#if defined(__x86_64__)
using Resume = void*;
#else
using Resume = ucontext_t;
#endif

// Saves this flow in `from` and goes on with `to`.
void switch_flow(Resume& from, Resume& to);

class FiberStack {
 public:
  FiberStack() = default;
  FiberStack(const FiberStack&) = delete;
  FiberStack& operator=(const FiberStack&) = delete;
  ~FiberStack();

  bool allocate();  // once; false when there is no memory
  // The start of a flow that calls entry() on this stack. entry must not return.
  void prepare(Resume& resume, void (*entry)());
  // For the handler of a signal: when it returns, the flow that ran on this stack calls entry() in place of going on.
  void redirect(void* signal_context, void (*entry)());
  // Whether `address` is in the page below the stack, which overflows touch.
  bool is_guard(const void* address) const;

 private:
  std::byte* base_ = nullptr;
};

}  // namespace emulator
