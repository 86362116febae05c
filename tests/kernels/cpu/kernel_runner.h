// SPDX-License-Identifier: Apache-2.0
// Runs one kernel as the runtime would: make, check, workspace, run.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fixtures/test_tensor.h"
#include "kernels/cpu/kernel_table.h"

namespace lathe::cpu {

inline Program program_of(const std::string& text) {
  Result<Program> program = parse_program(text);
  EXPECT_TRUE(program) << text << (program ? "" : program.error().message);
  return program ? *program : Program{1, {}, {0}};
}

// 64-byte aligned and exactly as large as asked, with a guard behind it.
struct TestWorkspace {
  explicit TestWorkspace(size_t bytes) : memory(bytes + 64 + kGuard, std::byte{0xff}), size(bytes) {}
  std::byte* get() {
    return reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) & ~uintptr_t{63});
  }
  bool guard_untouched() {
    return std::all_of(get() + size, memory.data() + memory.size(), [](std::byte b) { return b == std::byte{0xff}; });
  }
  static constexpr size_t kGuard = 4096;
  std::vector<std::byte> memory;
  size_t size;
};

// A record's params: a kernel's own struct, or any numbers that a file may hold instead.
struct EncodedParams {
  EncodedParams() = default;
  EncodedParams(std::initializer_list<int64_t> numbers) : list(numbers) {}
  EncodedParams(std::vector<int64_t> numbers) : list(std::move(numbers)) {}  // NOLINT(google-explicit-constructor)
  template <Params P>
  EncodedParams(const P& params) : list(encode_params(params)) {}  // NOLINT(google-explicit-constructor)
  std::vector<int64_t> list;
};

inline std::unique_ptr<Kernel> make_kernel(const char* name, const EncodedParams& params,
                                           const Program* program = nullptr) {
  const KernelFactory factory = find_kernel(name);
  EXPECT_NE(factory, nullptr) << name;
  if (!factory) return nullptr;
  auto kernel = factory(Record{params.list, program});
  EXPECT_TRUE(kernel) << (kernel ? "" : kernel.error().message);
  return kernel ? std::move(*kernel) : nullptr;
}

// Pools are kept: starting threads for every case would be most of a test's time.
inline ThreadPool& pool_of(int threads) {
  static std::map<int, std::unique_ptr<ThreadPool>> pools;
  std::unique_ptr<ThreadPool>& pool = pools[threads];
  if (!pool) pool = *ThreadPool::create({.threads = threads, .pin = false, .spin_us = 20});
  return *pool;
}

inline void run_kernel(const Kernel& kernel, const std::vector<TensorArg>& inputs,
                       const std::vector<TensorArg>& outputs, int threads) {
  const Result<> fits = kernel.check(inputs, outputs);
  ASSERT_TRUE(fits) << fits.error().message;
  ThreadPool& pool = pool_of(threads);
  TestWorkspace workspace(kernel.workspace_bytes(inputs, outputs, pool.size()));
  kernel.run({inputs, outputs, workspace.get(), pool});
  EXPECT_TRUE(workspace.guard_untouched());
}

}  // namespace lathe::cpu
