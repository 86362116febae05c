// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <numeric>

#include "kernels/cpu/copy/copy.h"
#include "kernels/cpu/kernel_runner.h"
#include "ops/rules.h"

namespace lathe::cpu {
namespace {

// Distinct ones, as far as the type has room.
Tensor numbers(DType type, const Dims& dims) {
  Tensor tensor = *Tensor::allocate(type, dims);
  std::vector<int64_t> values(static_cast<size_t>(tensor.volume()));
  std::iota(values.begin(), values.end(), 1);
  from_ints(values, tensor);
  return tensor;
}

void check_layout_changes(DType type) {
  const auto kernel = make_kernel("copy", CopyParams{});
  const std::vector<std::vector<int>> orders = {{0, 1, 2, 3}, {0, 2, 3, 1}, {3, 2, 1, 0}, {1, 0, 3, 2}};
  for (const Dims& dims : std::vector<Dims>{
           {1, 3, 20, 20}, {2, 16, 7, 5}, {1, 33, 9, 17}, {3, 5, 1, 40}, {1, 1, 1, 1}, {2, 0, 3, 3}, {1, 130, 20, 30}})
    for (const auto& from : orders)
      for (const auto& to : orders)
        for (const int threads : {1, 3}) {
          const Tensor content = numbers(type, dims);
          TestTensor in(dims, from, 3, type), out(dims, to, 2, type);
          run_kernel(*kernel, {in.assign(content).arg}, {out.arg}, threads);
          EXPECT_EQ(differing_bits(out.checked_content(), content), "");
        }
}

TEST(Copy, ChangesLayouts1) { check_layout_changes(DType::i8); }
TEST(Copy, ChangesLayouts2) { check_layout_changes(DType::i16); }
TEST(Copy, ChangesLayouts4) { check_layout_changes(DType::i32); }
TEST(Copy, ChangesLayouts8) { check_layout_changes(DType::i64); }

TEST(Copy, BroadcastsAndReverses) {
  const auto kernel = make_kernel("copy", CopyParams{});
  for (const int threads : {1, 3}) {
    TestTensor in({3, 1, 5}), out({2, 3, 400, 5});
    run_kernel(*kernel, {in.assign(numbers(DType::f32, {3, 1, 5})).arg}, {out.arg}, threads);
    out.for_each([&](const Dims& index, float x) { ASSERT_EQ(x, in.at(index)); });

    TestTensor line({1000}, {}, 0, DType::i16), reversed({1000}, {}, 0, DType::i16);
    TensorArg view = line.assign(numbers(DType::i16, {1000})).arg;
    view.strides[0] = -1;
    view.data = view.as<int16_t>() + 999;
    run_kernel(*kernel, {view}, {reversed.arg}, threads);
    for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(reversed.arg.as<int16_t>()[i], 1000 - i);
  }
}

TEST(Copy, Fills) {
  TestTensor bytes({3, 1000}, {1, 0}, 4, DType::u8);
  run_kernel(*make_kernel("copy", CopyParams{.mode = CopyMode::fill, .bits = 0x1a5}), {}, {bytes.arg}, 3);
  const Tensor content = bytes.checked_content();
  for (int64_t i = 0; i < content.volume(); ++i) ASSERT_EQ(content.at(i), 0xa5);
}

TEST(Copy, RefusesWhatItCannotRun) {
  const KernelFactory factory = find_kernel("copy");
  for (const std::vector<int64_t>& params : std::vector<std::vector<int64_t>>{
           {}, {0}, {7, 0, 0, 1}, {-1, 0, 0, 1}, {3, 0, 0, 0}, {3, 0, 0, 1 << 15}, {0, 0, 0, 1, 0}})
    EXPECT_FALSE(factory(Record{params, nullptr}));
  const std::vector<int64_t> plain = encode_params(CopyParams{});
  EXPECT_TRUE(factory(Record{plain, nullptr}));
  const Program program;
  EXPECT_FALSE(factory(Record{plain, &program}));
  const TestTensor a({2, 3}), b({2, 4}), h({2, 3}, {}, 0, DType::f16);
  EXPECT_FALSE(make_kernel("copy", CopyParams{})->check(std::vector{a.arg}, std::vector{b.arg}));
  EXPECT_FALSE(make_kernel("copy", CopyParams{})->check(std::vector{h.arg}, std::vector{a.arg}));
  EXPECT_FALSE(make_kernel("copy", CopyParams{})->check(std::vector{a.arg, a.arg}, std::vector{a.arg}));
}

}  // namespace
}  // namespace lathe::cpu
