// SPDX-License-Identifier: Apache-2.0
// What tests say to the stand-in for the CUDA driver, and ask of it. Plain C, so that it may be found by dlsym too.
//
// Its devices work in the host's memory, each call is done when it returns, and events tell a time that goes on by 5
// microseconds with each copy and launch. Code modules are
//  - text: "FAKE_CUBIN sm_90\nkernel NAME PARAMETERS [threads=N] [shared=N] [maps=N] [ptx=N]\n..." and a zero: kernels
//    without code, whose launches are listed, and for which fake_cuda_set_kernel() may give a function of the host;
//  - shared libraries of the host, as the emulator's compiler makes them: they run;
//  - cubins and PTX, which load and do nothing.
#pragma once

#include <cstddef>

extern "C" {
// Back to the beginning: one device, sm_90 with 16 GiB; nothing fails. Only while no context is retained.
void fake_cuda_reset();
void fake_cuda_set_driver_version(int version);
void fake_cuda_set_device_count(int count);
void fake_cuda_set_device(int ordinal, const char* name, int major, int minor, size_t memory_bytes);
void fake_cuda_set_device_pools(int ordinal, int supported);
void fake_cuda_set_device_attribute(int ordinal, int attribute, int value);  // a CUdevice_attribute

// The nth call from now of `function` (its symbol; null: of any function) gives `code`; calls that give something back
// do so all the same. A sticky failure ends the context of the call's device: all later calls there give it too.
void fake_cuda_fail(const char* function, size_t nth, int code, int sticky);
size_t fake_cuda_calls();                  // since the reset
const char* fake_cuda_call(size_t index);  // symbol of that call
int fake_cuda_inside();                    // whether this thread is in a call: what it does is the stand-in's
size_t fake_cuda_failures();               // that were asked for and have happened

// Live objects of a kind: memory stream event graph executable module link context.
size_t fake_cuda_live(const char* kind);
size_t fake_cuda_allocated_bytes(int ordinal);
void fake_cuda_use_memory(int ordinal, size_t bytes);  // by another process
void* fake_cuda_current_context();                     // of this thread
int fake_cuda_is_current(int ordinal);                 // whether that is the device's

// Of the L2 cache, which devices from compute capability 8.0 on can set 30 MiB of aside: what is, and the bytes of each
// window that a stream was given, in order.
size_t fake_cuda_cache_aside();
size_t fake_cuda_cache_windows();
size_t fake_cuda_cache_window(size_t index);

// Makes an address of the host known to the driver: type as CUmemorytype; managed != 0 for managed memory.
void fake_cuda_register(const void* address, size_t bytes, unsigned type, int managed, int ordinal);

// What runs in place of the kernel of that name in text modules.
typedef void (*fake_cuda_kernel)(void** parameters, const unsigned grid[3], void* user);
void fake_cuda_set_kernel(const char* name, fake_cuda_kernel run, void* user);

// Work of a stand-in library on a stream: done now, or captured. `run` gets `user` each time, `release` at the end.
// Operations of equal `kind` update each other in graphs. Gives a CUresult.
int fake_cuda_submit(void* stream, const void* kind, void (*run)(void*), void* user, void (*release)(void*));
int fake_cuda_holds(const void* address, size_t bytes);  // whether memory of a device does

struct fake_cuda_launch {
  const char* name;
  unsigned grid[3];
  unsigned block;
  unsigned shared_bytes;
  unsigned cluster;
  int overlaps;
  int together;
  unsigned parameters;
  unsigned long long values[96];
};
size_t fake_cuda_launches();  // that have run, in order
const fake_cuda_launch* fake_cuda_launched(size_t index);
// Calls with streams that have been destroyed, which crash NVIDIA's driver.
size_t fake_cuda_unknown_streams();
// Whether streams, events and graphs let the second of those launches begin only when the first has ended.
int fake_cuda_ordered(size_t first, size_t second);
}
