// SPDX-License-Identifier: Apache-2.0
// Kernels that take tensors of any element type, compared with the plain evaluation.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/cpu/kernel_runner.h"
#include "ops/op.h"
#include "ops/rules.h"

namespace lathe::cpu {

inline constexpr DType kAllTypes[] = {DType::f32, DType::f64, DType::f16,    DType::bf16, DType::i8,
                                      DType::i16, DType::i32, DType::i64,    DType::u8,   DType::u16,
                                      DType::u32, DType::u64, DType::boolean};

inline Tensor hard_tensor(DType type, const Dims& dims, std::mt19937& random) {
  return random_tensor(type, dims, random, {Content::hard});
}

inline void expect_same(const Tensor& got, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(differing_bits(got, expected), "") << what;
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
  std::vector<TestTensor> strided, results;
  std::vector<TensorArg> args, outputs;
  strided.reserve(inputs.size());
  results.reserve(operands.results);
  for (const size_t i : operands.read) args.push_back(strided.emplace_back(TestTensor::copy_of(inputs[i], random)).arg);
  for (const Tensor& result : *expected)
    outputs.push_back(
        results.emplace_back(TestTensor::copy_of(*Tensor::allocate(result.dtype(), result.dims()), random)).arg);
  run_kernel(*make_kernel(kernel, params), args, outputs, pick_between(random, 0, 1) ? 1 : 3);
  for (size_t i = 0; i < results.size() && !::testing::Test::HasFatalFailure(); ++i)
    expect_same(results[i].checked_content(), (*expected)[i], what);
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
  std::vector<TestTensor> strided;
  std::vector<TensorArg> args;
  strided.reserve(inputs.size());
  for (const Tensor& input : inputs) args.push_back(strided.emplace_back(TestTensor::copy_of(input, random)).arg);
  TestTensor result = TestTensor::copy_of(output, random);
  const auto made = make_kernel(kernel, params);
  const std::vector<TensorArg> outputs{result.arg};
  const Result<> fits = made->check(args, outputs);
  EXPECT_TRUE(fits) << fits.error().message;
  TestWorkspace workspace(made->workspace_bytes(args, outputs, 1));
  const Result<> run = made->try_run({args, outputs, workspace.get(), pool_of(1)});
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
