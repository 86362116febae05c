// SPDX-License-Identifier: Apache-2.0
// One launch, as a plan says it: what to run, and every number as an expression of the input shapes. It runs device
// code of the plan, or calls a function of a library that the device has found.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "shape/expr.h"

namespace lathe {

// A tensor as a GPU's copy engine reads it (TMA), a block of `box` at once, in rows of 128 bytes. Dimensions are listed
// from the innermost on, which is contiguous.
struct TensorMap {
  uint32_t input = 0;  // of the step: where it begins
  DType dtype = DType::f16;
  bool rounds = false;        // f32 to TF32, to the nearest
  std::vector<Expr> dims;     // what a block has beyond them is zero
  std::vector<Expr> strides;  // in elements, of each dimension but the first
  std::vector<uint32_t> box;
  // Six numbers, of a tensor of images, whose dims are channels, columns, rows and images, and whose box is channels
  // and pixels: those where windows begin, as they follow each other in a row, in an image, and from image to image.
  // They are the first column and row, what the last ones have beyond the image's, and the steps from window to window.
  std::vector<int64_t> windows;
};

// Every parameter of a kernel is 8 bytes, an address or an int64, or a tensor map of 128.
struct LaunchArg {
  enum Kind : uint8_t {
    input,       // address of the step's input `index`
    output,      // address of the step's output `index`
    workspace,   // `value` bytes into the step's workspace
    number,      // `value`
    tensor_map,  // Launch::maps[index]; these come first
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
  std::vector<TensorMap> maps;
};

// Limits that runtimes may rely on; plans that exceed them are refused.
inline constexpr size_t kMaxLaunchArgs = 96;
inline constexpr size_t kMaxLaunches = 8;    // of one step
inline constexpr size_t kMaxTensorMaps = 4;  // of one launch
inline constexpr size_t kMaxMapRank = 5;

}  // namespace lathe
