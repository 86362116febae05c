// SPDX-License-Identifier: Apache-2.0
// Tensors of any element type for kernels that take them all: random content, random strides, and a copy that the plain
// evaluation reads.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "fixtures/guarded_memory.h"
#include "kernels/cpu/kernel_runner.h"
#include "ops/op.h"
#include "ops/rules.h"

namespace lathe::cpu {

inline constexpr DType kAllTypes[] = {DType::f32, DType::f64, DType::f16,    DType::bf16, DType::i8,
                                      DType::i16, DType::i32, DType::i64,    DType::u8,   DType::u16,
                                      DType::u32, DType::u64, DType::boolean};

inline int64_t pick_between(std::mt19937& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

// Small numbers, and what is hard: ends of ranges, zeros, infinities, NaN.
inline double random_element(DType type, std::mt19937& random) {
  const int64_t kind = pick_between(random, 0, 9);
  if (!is_floating(type)) {
    if (kind == 0) return is_integer(type) ? std::ldexp(1.0, static_cast<int>(size_of(type)) * 8 - 1) - 1 : 1;
    return static_cast<double>(pick_between(random, class_of(type) == DTypeClass::signed_int ? -9 : 0, 9));
  }
  constexpr double kSpecial[] = {0.0, -0.0, HUGE_VAL, -HUGE_VAL, std::numeric_limits<double>::quiet_NaN(), 1e5, 0.5};
  if (kind == 0) return kSpecial[pick_between(random, 0, 6)];
  return std::normal_distribution<double>(0, 3)(random);
}

inline Tensor random_tensor(DType type, const Dims& dims, std::mt19937& random) {
  Tensor tensor = *Tensor::allocate(type, dims);
  std::vector<double> values(static_cast<size_t>(tensor.volume()));
  for (double& value : values) value = random_element(type, random);
  from_doubles(values, tensor);
  return tensor;
}

// The content of a dense tensor in memory of another order, with gaps.
class StridedTensor {
 public:
  StridedTensor(Tensor content, std::mt19937& random) : content_(std::move(content)) {
    const Dims& dims = content_.dims();
    std::vector<size_t> order(dims.size());
    for (size_t d = 0; d < dims.size(); ++d) order[d] = d;
    if (pick_between(random, 0, 2) == 0) std::shuffle(order.begin(), order.end(), random);
    const int64_t pitch = pick_between(random, 0, 2);
    arg_.dtype = content_.dtype();
    arg_.rank = static_cast<int>(dims.size());
    int64_t stride = 1;
    for (size_t i = dims.size(); i-- > 0;) {
      arg_.dims[order[i]] = dims[order[i]];
      arg_.strides[order[i]] = stride;
      stride *= dims[order[i]] + (i + 1 == dims.size() ? pitch : 0);
    }
    memory_.assign(static_cast<size_t>(std::max<int64_t>(stride, 1)) * size(), std::byte{0x5a});
    arg_.data = memory_.data();
    for_each([&](std::byte* strided, std::byte* dense) { std::memcpy(strided, dense, size()); });
  }
  StridedTensor(StridedTensor&& other) noexcept
      : content_(std::move(other.content_)), memory_(std::move(other.memory_)), arg_(other.arg_) {}

  const TensorArg& arg() const { return arg_; }
  const Tensor& content() const { return content_; }
  // What the memory holds now, and whether nothing beside it was written.
  Tensor read_back() {
    Tensor result = *Tensor::allocate(content_.dtype(), content_.dims());
    std::vector<std::byte> rest(memory_.begin(), memory_.end());
    auto* base = static_cast<std::byte*>(content_.mutable_data());
    for_each([&](std::byte* strided, std::byte* dense) {
      std::memcpy(static_cast<std::byte*>(result.mutable_data()) + (dense - base), strided, size());
      std::fill_n(rest.data() + (strided - memory_.data()), size(), std::byte{0x5a});
    });
    EXPECT_TRUE(std::all_of(rest.begin(), rest.end(), [](std::byte b) { return b == std::byte{0x5a}; }));
    return result;
  }

 private:
  size_t size() const { return size_of(arg_.dtype); }
  template <class F>
  void for_each(F&& f) {
    auto* dense = static_cast<std::byte*>(content_.mutable_data());
    std::vector<int64_t> index(content_.dims().size());
    for (int64_t i = 0; i < content_.volume(); ++i, dense += size()) {
      int64_t offset = 0, rest = i;
      for (int d = arg_.rank; d-- > 0; rest /= arg_.dims[d]) offset += rest % arg_.dims[d] * arg_.strides[d];
      f(memory_.data() + offset * static_cast<int64_t>(size()), dense);
    }
  }

  Tensor content_;
  GuardedVector<std::byte> memory_;
  TensorArg arg_;
};

// The same bits; every NaN is the same.
inline void expect_same(const Tensor& got, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(got.dims(), expected.dims()) << what;
  const size_t size = size_of(expected.dtype());
  for (int64_t i = 0; i < expected.volume(); ++i) {
    const auto* a = static_cast<const std::byte*>(got.data()) + static_cast<size_t>(i) * size;
    const auto* b = static_cast<const std::byte*>(expected.data()) + static_cast<size_t>(i) * size;
    if (std::memcmp(a, b, size) == 0) continue;
    const double have = got.at_double(i), want = expected.at_double(i);
    ASSERT_TRUE(is_floating(expected.dtype()) && std::isnan(have) && std::isnan(want))
        << what << ": element " << i << " is " << have << ", expected " << want;
  }
}

// Integers are the same. Floats may be rounded at other places: sums in another order, products within sums.
inline void expect_close(const Tensor& got, const Tensor& expected, const std::string& what) {
  if (!is_floating(expected.dtype())) return expect_same(got, expected, what);
  ASSERT_EQ(got.dims(), expected.dims()) << what;
  const double tolerance = expected.dtype() == DType::f64 ? 1e-12 : expected.dtype() == DType::f32 ? 1e-6 : 1e-2;
  const std::vector<double> a = to_doubles(got), b = to_doubles(expected);
  for (size_t i = 0; i < a.size(); ++i) {
    if ((std::isnan(a[i]) && std::isnan(b[i])) || a[i] == b[i]) continue;
    ASSERT_LE(std::fabs(a[i] - b[i]), tolerance * std::max(1.0, std::fabs(b[i]))) << what << " at " << i;
  }
}

// How a kernel's operands differ from its op's.
struct KernelOperands {
  size_t results = 1;
  std::vector<size_t> read;  // the op's inputs that the kernel reads; empty = all
};

// Runs the kernel on strided copies of the inputs and compares with the op's plain evaluation.
inline void compare_with_evaluation(const char* kernel, const EncodedParams& params, const Attributes& attributes,
                                    const std::vector<Tensor>& inputs, std::mt19937& random,
                                    KernelOperands operands = {}) {
  const std::string what = to_text(attributes);
  const Result<std::vector<Tensor>> expected = run_op(attributes, inputs, operands.results);
  ASSERT_TRUE(expected) << what << ": " << expected.error().message;
  if (operands.read.empty())
    for (size_t i = 0; i < inputs.size(); ++i) operands.read.push_back(i);
  std::vector<StridedTensor> strided, results;
  std::vector<TensorArg> args, outputs;
  strided.reserve(inputs.size());
  results.reserve(operands.results);
  for (const size_t i : operands.read) args.push_back(strided.emplace_back(inputs[i], random).arg());
  for (const Tensor& result : *expected)
    outputs.push_back(results.emplace_back(*Tensor::allocate(result.dtype(), result.dims()), random).arg());
  run_kernel(*make_kernel(kernel, params), args, outputs, pick_between(random, 0, 1) ? 1 : 3);
  for (size_t i = 0; i < results.size() && !::testing::Test::HasFatalFailure(); ++i)
    expect_same(results[i].read_back(), (*expected)[i], what);
}

// The message of the error that the op's plain evaluation gives.
inline std::string error_of_evaluation(const Attributes& attributes, const std::vector<Tensor>& inputs) {
  const Result<std::vector<Tensor>> result = run_op(attributes, inputs, 1);
  EXPECT_FALSE(result) << to_text(attributes);
  return result ? "none" : result.error().message;
}

// The message of the error that the kernel's run gives on strided copies of the inputs; empty when it gives none.
inline std::string error_of_run(const char* kernel, const EncodedParams& params, const std::vector<Tensor>& inputs,
                                const Tensor& output, std::mt19937& random) {
  std::vector<StridedTensor> strided;
  std::vector<TensorArg> args;
  strided.reserve(inputs.size());
  for (const Tensor& input : inputs) args.push_back(strided.emplace_back(input, random).arg());
  StridedTensor result(output, random);
  const auto made = make_kernel(kernel, params);
  const std::vector<TensorArg> outputs{result.arg()};
  const Result<> fits = made->check(args, outputs);
  EXPECT_TRUE(fits) << fits.error().message;
  TestWorkspace workspace(made->workspace_bytes(args, outputs, 1));
  const Result<> run = made->try_run({args, outputs, workspace.get(), test_pool(1)});
  return run ? "" : run.error().message;
}

// Integers in [low, high], in a type that holds them.
inline Tensor random_integers(DType type, const Dims& dims, int64_t low, int64_t high, std::mt19937& random) {
  Tensor tensor = *Tensor::allocate(type, dims);
  std::vector<int64_t> values(static_cast<size_t>(tensor.volume()));
  for (int64_t& value : values)
    value = pick_between(random, class_of(type) == DTypeClass::unsigned_int ? std::max<int64_t>(low, 0) : low, high);
  from_ints(values, tensor);
  return tensor;
}

inline Dims random_dims(int64_t rank, int64_t low, int64_t high, std::mt19937& random) {
  Dims dims;
  for (; rank > 0; --rank) dims.push_back(pick_between(random, low, high));
  return dims;
}

}  // namespace lathe::cpu
