// SPDX-License-Identifier: Apache-2.0
// A device for which plans are built, as code generation and cost models see it. Where the device is there it describes
// itself (Device::describe); where it is not, a table of architectures does. No other place holds a number of a device.
#pragma once

#include <cstdint>
#include <string>

#include "base/dtype.h"

namespace lathe {

struct Target {
  std::string name;     // what plans for it carry: "cuda-sm_90", "cpu-x86_64-avx512"
  int cores = 1;        // multiprocessors of a GPU; threads that a CPU's queues work with
  int least_cores = 1;  // of the smallest device on which the plan must run: `cores` where it is measured

  // What kernels may use on every device of this name.
  struct Limits {
    int64_t shared_bytes = 48 << 10;  // shared memory of a block
    int64_t block_threads = 1024;
    int64_t core_threads = 2048;           // that are resident on a core
    int64_t core_registers = 65536;        // 32 bits each, that they share
    int64_t core_shared_bytes = 48 << 10;  // that blocks on a core share
    int cluster = 1;                       // blocks of a cluster (Launch::cluster); 1 = there are none
    bool warpgroups = false;               // four warps may multiply together (wgmma)
    bool float8 = false;                   // matrix units multiply 8-bit floats
    bool bfloat16 = true;                  // and floats of 16 bits other than f16
  } limits;

  // Multiplications with an addition that a core does in a clock.
  struct Products {
    double f32 = 4, f64 = 2;
    double matrix = 0;  // of f16 by matrix units that a warp commands (mma), of bf16 by those of a CPU; 0 = none
    double warpgroup_matrix = 0;  // that four warps command together
  } products;

  double clock_mhz = 2000;         // clocks in a microsecond (MHz) that it keeps up when all cores are busy
  double memory_rate = 10e3;       // bytes in a microsecond, of the memory that holds tensors
  double cache_bytes = 1 << 20;    // of the last cache before it
  double cache_clock_bytes = 32;   // that a core reads from that cache in a clock
  double shared_clock_bytes = 64;  // and from shared memory, or from its first cache
  double launch_us = 1;            // to start a kernel, or to fork to all threads and join them

  // Bytes in a microsecond that all cores together read from caches.
  double cache_rate() const { return cache_clock_bytes * cores * clock_mhz; }
  double shared_rate() const { return shared_clock_bytes * cores * clock_mhz; }
  // Threads, as many as keep the device busy: half of what is resident.
  int64_t busy_threads() const { return cores * limits.core_threads / 2; }
  // What matrix units of warps do for elements of a type; f32 is rounded to TF32.
  double matrix_products(DType dtype) const {
    return products.matrix * (size_of(dtype) == 1 ? 2 : dtype == DType::f32 ? 0.5 : 1);
  }
};

}  // namespace lathe
