// SPDX-License-Identifier: Apache-2.0
// Device code that is loaded on a GPU.
#pragma once

#include <map>
#include <span>
#include <string>

#include "base/hash.h"
#include "device/cuda/context.h"
#include "device/cuda/shared_table.h"

namespace lathe::cuda {

// A kernel of a module.
struct KernelFunction {
  CUfunction handle = nullptr;
  int max_threads = 0;          // of a block, by the registers that it uses
  int static_shared_bytes = 0;  // of a block
  int architecture = 0;         // that its PTX was for: 80, of PTX for sm_80 that runs on sm_90
  int parameters = -1;          // -1: the driver cannot tell (before CUDA 12.4)
  int maps = 0;                 // the first of them, which are tensor maps
};

class Module {
 public:
  // `code` is a cubin, or PTX text with a zero at its end.
  static Result<std::shared_ptr<Module>> load(std::shared_ptr<PrimaryContext> context, std::span<const std::byte> code);
  ~Module();

  // Both are thread-safe.
  Result<KernelFunction> function(const std::string& name);
  // Makes a kernel of function() able to run with so much dynamic shared memory, and clusters of so many blocks.
  Result<> allow(const std::string& name, uint32_t shared_bytes, uint32_t cluster);

 private:
  Module(std::shared_ptr<PrimaryContext> context, CUmodule handle) : context_(std::move(context)), handle_(handle) {}
  Result<KernelFunction> find(const std::string& name);
  Result<> set(CUfunction function, CUfunction_attribute attribute, uint32_t value, const std::string& name);

  std::shared_ptr<PrimaryContext> context_;
  CUmodule handle_;
  std::mutex mutex_;
  struct Entry {
    KernelFunction function;
    uint32_t shared_bytes = 0, cluster = 0;  // the most that it was set up for
  };
  std::map<std::string, Entry> functions_;
};

// The modules of one GPU: equal code is loaded once.
using ModuleTable = SharedTable<Digest, Module>;

}  // namespace lathe::cuda
