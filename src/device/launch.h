// SPDX-License-Identifier: Apache-2.0
// One launch, as a plan says it: what to run, and every number as an expression of the input shapes. It runs device
// code of the plan, or calls a function of a library that the device has found.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "shape/expr.h"

namespace lathe {

// Every parameter of a kernel is 8 bytes: an address or an int64.
struct LaunchArg {
  enum Kind : uint8_t {
    input,      // address of the step's input `index`
    output,     // address of the step's output `index`
    workspace,  // `value` bytes into the step's workspace
    number,     // `value`
  } kind = number;
  uint32_t index = 0;
  Expr value;
};

// Libraries of kernels whose functions launches may call.
inline constexpr const char* kCublasLtName = "cublaslt";
inline constexpr const char* kCudnnName = "cudnn";

struct Launch {
  std::string library;                                  // "" = device code; else `entry` is a function of it
  uint32_t code = 0;                                    // which of the plan's code modules; 0 for a library
  std::string entry;                                    // the kernel's name in it
  std::array<Expr, 3> grid{Expr(1), Expr(1), Expr(1)};  // blocks; nothing runs when one is 0
  uint32_t block = 1;                                   // threads
  uint32_t shared_bytes = 0;                            // dynamic shared memory
  uint32_t cluster = 1;                                 // blocks of a cluster, along x
  bool overlaps = false;  // may start before the launch before it ends: the kernel waits itself (programmatic launch)
  std::vector<LaunchArg> args;
};

// Limits that runtimes may rely on; plans that exceed them are refused.
inline constexpr size_t kMaxLaunchArgs = 96;
inline constexpr size_t kMaxLaunches = 8;  // of one step

}  // namespace lathe
