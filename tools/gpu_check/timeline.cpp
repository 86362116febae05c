// SPDX-License-Identifier: Apache-2.0
// A library that the CUDA driver loads into a process (CUDA_INJECTION64_PATH) to record, through CUPTI's activity API,
// when each kernel began and ended, those of graphs included. At exit it writes a line for each to the file named by
// LATHE_TIMELINE: start and end in nanoseconds, number of blocks, threads of a block, name. Kernels overlap as they do
// without it. timeline.py builds it and makes tables of what it writes.
#include <cuda.h>
#include <cupti.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

namespace {

struct Kernel {
  std::uint64_t start, end;
  int blocks, threads;
  std::string name;
};

std::mutex mutex;
std::vector<Kernel> kernels;

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *size = 8 << 20;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, *size));
  *most = 0;
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  const std::scoped_lock lock(mutex);
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
    const auto& k = *reinterpret_cast<const CUpti_ActivityKernel10*>(record);
    kernels.push_back({k.start, k.end, k.gridX * k.gridY * k.gridZ, k.blockX * k.blockY * k.blockZ, k.name});
  }
  std::free(buffer);
}

void write_all() {
  cuptiActivityFlushAll(1);
  const std::scoped_lock lock(mutex);
  std::FILE* file = std::fopen(std::getenv("LATHE_TIMELINE"), "w");
  if (!file) return;
  for (const Kernel& k : kernels)
    std::fprintf(file, "%llu\t%llu\t%d\t%d\t%s\n", static_cast<unsigned long long>(k.start),
                 static_cast<unsigned long long>(k.end), k.blocks, k.threads, k.name.c_str());
  std::fclose(file);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  if (!std::getenv("LATHE_TIMELINE")) return 1;
  if (cuptiActivityRegisterCallbacks(give_buffer, take_buffer) != CUPTI_SUCCESS) return 0;
  if (cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS) return 0;
  std::atexit(write_all);
  return 1;
}
