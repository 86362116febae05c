// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <numeric>

#include "kernels/kernel_runner.h"

namespace lathe::cpu {
namespace {

// A tensor of any element size, filled with distinct values; like TestTensor otherwise.
template <class T>
struct Elements {
  Elements(std::vector<int64_t> dims, std::vector<int> order = {}, int64_t pitch = 0, uint64_t first = 1)
      : shape(std::move(dims), std::move(order), pitch), memory(shape.memory.size()) {
    for (T& x : memory) x = static_cast<T>(first++);
    shape.arg.dtype = sizeof(T) == 1   ? DType::i8
                      : sizeof(T) == 2 ? DType::f16
                      : sizeof(T) == 4 ? DType::f32
                                       : DType::i64;
    shape.arg.data = memory.data();
  }
  const TensorArg& arg() const { return shape.arg; }
  T& at(const std::vector<int64_t>& index) {
    return memory[static_cast<size_t>(&shape.at(index) - shape.memory.data())];
  }
  TestTensor shape;
  GuardedVector<T> memory;
};

template <class T>
void check_layout_changes() {
  const auto kernel = make_kernel("copy", {});
  const std::vector<std::vector<int>> orders = {{0, 1, 2, 3}, {0, 2, 3, 1}, {3, 2, 1, 0}, {1, 0, 3, 2}};
  for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{
           {1, 3, 20, 20}, {2, 16, 7, 5}, {1, 33, 9, 17}, {3, 5, 1, 40}, {1, 1, 1, 1}, {2, 0, 3, 3}, {1, 130, 20, 30}})
    for (const auto& from : orders)
      for (const auto& to : orders)
        for (const int threads : {1, 3}) {
          Elements<T> in(dims, from, 3), out(dims, to, 2, 100);
          Elements<T> before = Elements<T>(dims, to, 2, 100);
          run_kernel(*kernel, {in.arg()}, {out.arg()}, threads);
          size_t wrong = 0, elements = 0;
          std::vector<bool> own(out.memory.size());
          in.shape.for_each([&](const std::vector<int64_t>& index, float&) {
            wrong += out.at(index) != in.at(index);
            own[static_cast<size_t>(&out.at(index) - out.memory.data())] = true;
            ++elements;
          });
          for (size_t i = 0; i < own.size(); ++i) wrong += !own[i] && out.memory[i] != before.memory[i];
          EXPECT_EQ(wrong, 0u) << elements << " elements of " << sizeof(T) << " bytes";
        }
}

TEST(Copy, ChangesLayouts1) { check_layout_changes<uint8_t>(); }
TEST(Copy, ChangesLayouts2) { check_layout_changes<uint16_t>(); }
TEST(Copy, ChangesLayouts4) { check_layout_changes<uint32_t>(); }
TEST(Copy, ChangesLayouts8) { check_layout_changes<uint64_t>(); }

TEST(Copy, BroadcastsAndReverses) {
  const auto kernel = make_kernel("copy", {0});
  for (const int threads : {1, 3}) {
    Elements<uint32_t> in({3, 1, 5}), out({2, 3, 400, 5});
    run_kernel(*kernel, {in.arg()}, {out.arg()}, threads);
    out.shape.for_each([&](const std::vector<int64_t>& i, float&) { ASSERT_EQ(out.at(i), in.at({i[1], 0, i[3]})); });

    Elements<uint16_t> line({1000}), reversed({1000});
    TensorArg view = line.arg();
    view.strides[0] = -1;
    view.data = &line.memory[999];
    run_kernel(*kernel, {view}, {reversed.arg()}, threads);
    for (size_t i = 0; i < 1000; ++i) ASSERT_EQ(reversed.memory[i], line.memory[999 - i]);
  }
}

TEST(Copy, Pads) {
  const std::vector<int64_t> in_dims = {2, 3, 5};
  for (const std::vector<int64_t>& begin :
       std::vector<std::vector<int64_t>>{{0, 0, 0}, {1, 2, 3}, {-1, 1, -2}, {3, -3, 0}, {9, 0, 0}})
    for (const int threads : {1, 3}) {
      Elements<uint32_t> in(in_dims), out({4, 5, 6}, {}, 2, 1000);
      std::vector<int64_t> params = {1, 0x7fc00001};
      params.insert(params.end(), begin.begin(), begin.end());
      run_kernel(*make_kernel("copy", params), {in.arg()}, {out.arg()}, threads);
      out.shape.for_each([&](const std::vector<int64_t>& index, float&) {
        std::vector<int64_t> source = index;
        bool inside = true;
        for (size_t d = 0; d < 3; ++d) {
          source[d] -= begin[d];
          inside = inside && source[d] >= 0 && source[d] < in_dims[d];
        }
        ASSERT_EQ(out.at(index), inside ? in.at(source) : 0x7fc00001u);
      });
    }
}

TEST(Copy, ConcatenatesAndSplits) {
  for (const int64_t axis : {0, 1, 2})
    for (const int threads : {1, 3}) {
      const std::vector<int64_t> sizes = {2, 0, 5, 33};
      std::vector<Elements<uint16_t>> parts;
      std::vector<TensorArg> args;
      std::vector<int64_t> dims = {4, 6, 7};
      for (const int64_t size : sizes) {
        dims[static_cast<size_t>(axis)] = size;
        parts.emplace_back(dims, std::vector<int>{}, 1, 50 * size);
        args.push_back(parts.back().arg());
      }
      dims[static_cast<size_t>(axis)] = 40;
      Elements<uint16_t> whole(dims, {0, 2, 1}, 1, 7);
      run_kernel(*make_kernel("copy", {2, axis}), args, {whole.arg()}, threads);
      const auto expect_equal = [&](std::vector<Elements<uint16_t>>& pieces) {
        int64_t begin = 0;
        for (auto& piece : pieces) {
          piece.shape.for_each([&](const std::vector<int64_t>& index, float&) {
            std::vector<int64_t> at = index;
            at[static_cast<size_t>(axis)] += begin;
            ASSERT_EQ(whole.at(at), piece.at(index));
          });
          begin += piece.arg().dims[axis];
        }
      };
      expect_equal(parts);
      for (uint16_t& x : whole.memory) x = static_cast<uint16_t>(x * 3);
      run_kernel(*make_kernel("copy", {3, axis}), {whole.arg()}, args, threads);
      expect_equal(parts);
    }
}

TEST(Copy, Fills) {
  Elements<uint8_t> bytes({3, 1000}, {1, 0}, 4);
  run_kernel(*make_kernel("copy", {4, 0x1a5}), {}, {bytes.arg()}, 3);
  bytes.shape.for_each([&](const std::vector<int64_t>& i, float&) { ASSERT_EQ(bytes.at(i), 0xa5); });
  EXPECT_NE(bytes.memory[3], 0xa5);
}

TEST(Copy, RefusesWhatItCannotRun) {
  const KernelFactory factory = find_kernel("copy");
  for (const std::vector<int64_t>& params : std::vector<std::vector<int64_t>>{
           {5}, {-1}, {0, 1}, {2}, {2, 8}, {2, -1}, {3, 1, 2}, {4}, {1}, {1, 0, int64_t{1} << 62}})
    EXPECT_FALSE(factory(Record{params, nullptr}));
  const Program program;
  EXPECT_FALSE(factory(Record{{}, &program}));
  Elements<uint32_t> a({2, 3}), b({2, 4}), c({2, 7});
  Elements<uint16_t> h({2, 3});
  EXPECT_FALSE(make_kernel("copy", {})->check(std::vector{a.arg()}, std::vector{b.arg()}));
  EXPECT_FALSE(make_kernel("copy", {})->check(std::vector{h.arg()}, std::vector{a.arg()}));
  EXPECT_FALSE(make_kernel("copy", {})->check(std::vector{a.arg(), a.arg()}, std::vector{a.arg()}));
  EXPECT_TRUE(make_kernel("copy", {2, 1})->check(std::vector{a.arg(), b.arg()}, std::vector{c.arg()}));
  EXPECT_FALSE(make_kernel("copy", {2, 0})->check(std::vector{a.arg(), b.arg()}, std::vector{c.arg()}));
  EXPECT_FALSE(make_kernel("copy", {2, 2})->check(std::vector{a.arg(), b.arg()}, std::vector{c.arg()}));
  EXPECT_FALSE(make_kernel("copy", {3, 1})->check(std::vector{c.arg()}, std::vector{a.arg(), a.arg()}));
  EXPECT_FALSE(make_kernel("copy", {1, 0, 0})->check(std::vector{a.arg()}, std::vector{b.arg()}));
}

}  // namespace
}  // namespace lathe::cpu
