// SPDX-License-Identifier: Apache-2.0
// What the kernel tests share: strided test tensors, a double-precision epilogue, and launching a kernel as a plan
// would.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "device/cpu/kernel.h"
#include "device/program.h"

namespace lathe::cpu::testing {

inline std::mt19937& generator() {
  static std::mt19937 engine(7);
  return engine;
}
inline int64_t pick(int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(generator());
}
template <class T>
T one_of(std::initializer_list<T> values) {
  return *(values.begin() + pick(0, static_cast<int64_t>(values.size()) - 1));
}

// A tensor that owns its storage. Elements between the strides are NaN, so that reading or writing them shows.
struct TestTensor {
  std::vector<float> storage;
  TensorArg arg;

  TestTensor() = default;
  TestTensor(std::vector<int64_t> dims, std::vector<int64_t> strides) {
    arg.rank = static_cast<int>(dims.size());
    int64_t last = 0;
    for (int d = 0; d < arg.rank; ++d) {
      arg.dims[d] = dims[d];
      arg.strides[d] = strides[d];
      last += std::max<int64_t>(dims[d] - 1, 0) * strides[d];
    }
    storage.assign(last + 1, std::nanf(""));
  }
  // Dense row-major.
  explicit TestTensor(std::vector<int64_t> dims) : TestTensor(dims, dense(dims)) {}

  static std::vector<int64_t> dense(const std::vector<int64_t>& dims) {
    std::vector<int64_t> strides(dims.size());
    int64_t stride = 1;
    for (size_t d = dims.size(); d-- > 0; stride *= dims[d]) strides[d] = stride;
    return strides;
  }
  // N C spatial... with channels last and `pitch` elements from pixel to pixel.
  static TestTensor channels_last(std::vector<int64_t> dims, int64_t pitch) {
    std::vector<int64_t> strides(dims.size());
    int64_t stride = pitch;
    for (size_t d = dims.size(); d-- > 2; stride *= dims[d]) strides[d] = stride;
    strides[0] = stride;
    strides[1] = 1;
    return TestTensor(dims, strides);
  }

  TestTensor& fill_random(float scale = 1) {
    std::uniform_real_distribution<float> uniform(-scale, scale);
    each([&](const int64_t*, int64_t offset) { storage[offset] = uniform(generator()); });
    return *this;
  }
  void each(const std::function<void(const int64_t* index, int64_t offset)>& visit) const {
    int64_t index[kMaxRank] = {};
    const int64_t volume = arg.volume();
    for (int64_t i = 0; i < volume; ++i) {
      int64_t offset = 0;
      for (int d = 0; d < arg.rank; ++d) offset += index[d] * arg.strides[d];
      visit(index, offset);
      for (int d = arg.rank - 1; d >= 0 && ++index[d] == arg.dims[d]; --d) index[d] = 0;
    }
  }
  // Broadcasts dimensions of 1.
  float at(const int64_t* index) const {
    int64_t offset = 0;
    for (int d = 0; d < arg.rank; ++d) offset += arg.dims[d] == 1 ? 0 : index[d] * arg.strides[d];
    return storage[offset];
  }
  TensorArg view() {
    TensorArg copy = arg;
    copy.data = storage.data();
    return copy;
  }
};

// Pools are kept: starting threads for every case would be most of a test's time.
inline ThreadPool& pool_of(int threads) {
  static std::map<int, std::unique_ptr<ThreadPool>> pools;
  auto& pool = pools[threads];
  if (!pool) pool = *ThreadPool::create({.threads = threads, .pin = false, .spin_us = 0});
  return *pool;
}

// Runs the kernel with `threads`, checks that it accepts the shapes and stays inside its workspace.
inline void launch(const Kernel& kernel, std::vector<TensorArg> inputs, TensorArg output, ThreadPool& pool) {
  const std::vector<TensorArg> outputs{output};
  const auto checked = kernel.check(inputs, outputs);
  ASSERT_TRUE(checked) << checked.error().to_string();
  const size_t bytes = kernel.workspace_bytes(inputs, outputs, pool.size());
  constexpr size_t kGuard = 4096;
  std::vector<std::byte> memory(bytes + kGuard + 64, std::byte{0xff});
  auto* workspace = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
  kernel.run({inputs, outputs, workspace, pool});
  for (size_t i = 0; i < kGuard; ++i) ASSERT_EQ(workspace[bytes + i], std::byte{0xff}) << "workspace overrun at " << i;
}

// expected(index) against the kernel's output, to |error| <= absolute + relative * |expected|. Elements that are not
// part of the output must still be NaN.
inline void compare(const TestTensor& output, const std::function<double(const int64_t*)>& expected, double absolute,
                    double relative, const std::string& what) {
  std::vector<bool> written(output.storage.size());
  int failures = 0;
  output.each([&](const int64_t* index, int64_t offset) {
    written[offset] = true;
    const double want = expected(index), got = output.storage[offset];
    if (!(std::abs(got - want) <= absolute + relative * std::abs(want)) && ++failures <= 3)
      ADD_FAILURE() << what << ": at offset " << offset << " got " << got << ", want " << want;
  });
  ASSERT_EQ(failures, 0) << what;
  for (size_t i = 0; i < written.size(); ++i)
    ASSERT_TRUE(written[i] || std::isnan(output.storage[i])) << what << ": wrote outside the output at " << i;
}

// The program on a double sum: the sum is rounded to f32 once.
inline double finish(const Program* program, double sum, const std::vector<TestTensor>& operands,
                     const int64_t* index) {
  if (!program) return sum;
  std::vector<float> inputs{static_cast<float>(sum)};
  for (const TestTensor& operand : operands) inputs.push_back(operand.at(index));
  float result = 0;
  evaluate(*program, inputs, {&result, 1});
  return result;
}

}  // namespace lathe::cpu::testing
