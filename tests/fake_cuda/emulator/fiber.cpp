// SPDX-License-Identifier: Apache-2.0
#include "fiber.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>
#include <cstring>

namespace emulator {
namespace {

constexpr size_t kStackBytes = 256 << 10;
constexpr size_t kGuardBytes = 4096;

}  // namespace

FiberStack::~FiberStack() {
  if (base_) munmap(base_, kStackBytes);
}

bool FiberStack::allocate() {
  if (base_) return true;
  void* memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  base_ = static_cast<std::byte*>(memory);
  return mprotect(base_, kGuardBytes, PROT_NONE) == 0;
}

bool FiberStack::is_guard(const void* address) const {
  const auto* byte = static_cast<const std::byte*>(address);
  return base_ && byte >= base_ && byte < base_ + kGuardBytes;
}

#if defined(__x86_64__)

// Callee-saved registers go onto the stack that is left and come from the stack that is entered.
extern "C" void lathe_emulator_switch(void** from, void* to);
__asm__(R"(
.text
.local lathe_emulator_switch
.type lathe_emulator_switch, @function
lathe_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size lathe_emulator_switch, . - lathe_emulator_switch
)");

void switch_flow(Resume& from, Resume& to) { lathe_emulator_switch(&from, to); }

void FiberStack::prepare(Resume& resume, void (*entry)()) {
  // Six registers, the address to return to, and a null return address for `entry`, aligned as after a call.
  constexpr size_t kWords = 8;
  auto* words = reinterpret_cast<uint64_t*>(base_ + kStackBytes) - kWords;
  std::memset(words, 0, kWords * sizeof(uint64_t));
  words[6] = reinterpret_cast<uint64_t>(entry);
  resume = words;
}

void FiberStack::redirect(void* signal_context, void (*entry)()) {
  auto* top = reinterpret_cast<uint64_t*>(base_ + kStackBytes);
  *--top = 0;  // the address to return to
  greg_t* registers = static_cast<ucontext_t*>(signal_context)->uc_mcontext.gregs;
  registers[REG_RSP] = reinterpret_cast<greg_t>(top);
  registers[REG_RIP] = reinterpret_cast<greg_t>(entry);
}

#else

void switch_flow(Resume& from, Resume& to) { swapcontext(&from, &to); }

void FiberStack::prepare(Resume& resume, void (*entry)()) {
  getcontext(&resume);
  resume.uc_stack.ss_sp = base_;
  resume.uc_stack.ss_size = kStackBytes;
  resume.uc_link = nullptr;
  makecontext(&resume, entry, 0);
}

#if defined(__aarch64__)
void FiberStack::redirect(void* signal_context, void (*entry)()) {
  mcontext_t& registers = static_cast<ucontext_t*>(signal_context)->uc_mcontext;
  registers.sp = reinterpret_cast<uintptr_t>(base_ + kStackBytes);
  registers.pc = reinterpret_cast<uintptr_t>(entry);
  registers.regs[30] = 0;  // the address to return to
}
#else
void FiberStack::redirect(void*, void (*entry)()) { entry(); }
#endif

#endif

}  // namespace emulator
