// SPDX-License-Identifier: Apache-2.0
// A kernel's threads, and their barrier. Where LATHE_PARTS_IN_TURN is defined, a block runs several kernels in turn
// (joined_launch.cpp), each by as many of its first threads, in whole warps, as the kernel has by itself.
#pragma once

#include "lib/types.cuh"

#ifndef LATHE_EMULATED
#ifdef LATHE_PARTS_IN_TURN
__shared__ int lathe_part_threads;
// All threads of the block store the same number, and wait for each other behind each part.
LATHE_DEVICE void begin_part(int threads) { lathe_part_threads = threads; }
LATHE_DEVICE void barrier_of_parts() { __syncthreads(); }
LATHE_DEVICE int block_threads() { return lathe_part_threads; }
LATHE_DEVICE void barrier() { asm volatile("bar.sync 1, %0;" ::"r"(block_threads()) : "memory"); }
#else
LATHE_DEVICE int block_threads() { return static_cast<int>(blockDim.x); }
LATHE_DEVICE void barrier() { __syncthreads(); }
#endif
#endif  // LATHE_EMULATED
