// SPDX-License-Identifier: Apache-2.0
// Runs one kernel as the runtime would: make, check, workspace, run.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "fixtures/guarded_memory.h"
#include "kernels/cpu/kernel_table.h"

namespace lathe::cpu {

inline Program program_of(const std::string& text) {
  Result<Program> program = parse_program(text);
  EXPECT_TRUE(program) << text << (program ? "" : program.error().message);
  return program ? *program : Program{1, {}, {0}};
}

// An f32 tensor with memory of its own; `order` lists the dimensions from outermost to innermost in memory, and `pitch`
// is added to the extent of the innermost one. Gaps hold 777.
struct TestTensor {
  TestTensor(std::vector<int64_t> dims, std::vector<int> order = {}, int64_t pitch = 0) {
    arg.rank = static_cast<int>(dims.size());
    if (order.empty())
      for (int d = 0; d < arg.rank; ++d) order.push_back(d);
    int64_t stride = 1;
    for (int i = arg.rank - 1; i >= 0; --i) {
      const int d = order[static_cast<size_t>(i)];
      arg.dims[d] = dims[static_cast<size_t>(d)];
      arg.strides[d] = stride;
      stride *= arg.dims[d] + (i == arg.rank - 1 ? pitch : 0);
    }
    memory.assign(static_cast<size_t>(std::max<int64_t>(stride, 1)), 777.0f);
    arg.data = memory.data();
  }
  TestTensor(const TestTensor&) = delete;
  TestTensor(TestTensor&& other) noexcept : memory(std::move(other.memory)), arg(other.arg) {}

  TestTensor& fill(std::mt19937& random, float scale = 1, float shift = 0) {
    std::normal_distribution<float> normal(shift, scale);
    for_each([&](const std::vector<int64_t>&, float& x) { x = normal(random); });
    return *this;
  }
  float& at(const std::vector<int64_t>& index) {
    int64_t offset = 0;
    for (int d = 0; d < arg.rank; ++d) offset += index[static_cast<size_t>(d)] * arg.strides[d];
    return memory[static_cast<size_t>(offset)];
  }
  // The element that `index`, of a shape this is broadcast to, reads.
  float broadcast_at(const std::vector<int64_t>& index) {
    std::vector<int64_t> own(index.end() - arg.rank, index.end());
    for (int d = 0; d < arg.rank; ++d)
      if (arg.dims[d] == 1) own[static_cast<size_t>(d)] = 0;
    return at(own);
  }
  template <class F>
  void for_each(F&& f) {
    std::vector<int64_t> index(static_cast<size_t>(arg.rank), 0);
    if (arg.volume() == 0) return;
    while (true) {
      f(index, at(index));
      int d = arg.rank - 1;
      while (d >= 0 && ++index[static_cast<size_t>(d)] == arg.dims[d]) index[static_cast<size_t>(d--)] = 0;
      if (d < 0) return;
    }
  }
  // Whether nothing but the tensor's own elements was written.
  bool gaps_untouched() {
    std::vector<float> copy(memory.begin(), memory.end());
    for_each([&](const std::vector<int64_t>&, float& x) { copy[static_cast<size_t>(&x - memory.data())] = 777.0f; });
    return std::all_of(copy.begin(), copy.end(), [](float x) { return x == 777.0f; });
  }

  GuardedVector<float> memory;
  TensorArg arg;
};

// 64-byte aligned and exactly as large as asked, with a guard behind it.
struct TestWorkspace {
  explicit TestWorkspace(size_t bytes) : memory(bytes + 128, std::byte{0x5a}), size(bytes) {}
  std::byte* get() {
    return reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) & ~uintptr_t{63});
  }
  bool guard_untouched() {
    return std::all_of(get() + size, memory.data() + memory.size(), [](std::byte b) { return b == std::byte{0x5a}; });
  }
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

inline ThreadPool& test_pool(int threads) {
  static const auto one = std::move(*ThreadPool::create({1, false, 20}));
  static const auto three = std::move(*ThreadPool::create({3, false, 20}));
  return threads == 1 ? *one : *three;
}

// `threads` is 1 or 3.
inline void run_kernel(const Kernel& kernel, const std::vector<TensorArg>& inputs,
                       const std::vector<TensorArg>& outputs, int threads) {
  const Result<> fits = kernel.check(inputs, outputs);
  ASSERT_TRUE(fits) << fits.error().message;
  ThreadPool& pool = test_pool(threads);
  TestWorkspace workspace(kernel.workspace_bytes(inputs, outputs, pool.size()));
  kernel.run({inputs, outputs, workspace.get(), pool});
  EXPECT_TRUE(workspace.guard_untouched());
}

}  // namespace lathe::cpu
