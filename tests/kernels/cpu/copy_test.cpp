// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "kernels/cpu/copy/copy.h"
#include "kernels/cpu/kernel_runner.h"

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
  const auto kernel = make_kernel("copy", CopyParams{});
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
  const auto kernel = make_kernel("copy", CopyParams{});
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

TEST(Copy, Fills) {
  Elements<uint8_t> bytes({3, 1000}, {1, 0}, 4);
  run_kernel(*make_kernel("copy", CopyParams{.mode = CopyMode::fill, .bits = 0x1a5}), {}, {bytes.arg()}, 3);
  bytes.shape.for_each([&](const std::vector<int64_t>& i, float&) { ASSERT_EQ(bytes.at(i), 0xa5); });
  EXPECT_NE(bytes.memory[3], 0xa5);
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
  Elements<uint32_t> a({2, 3}), b({2, 4});
  Elements<uint16_t> h({2, 3});
  EXPECT_FALSE(make_kernel("copy", CopyParams{})->check(std::vector{a.arg()}, std::vector{b.arg()}));
  EXPECT_FALSE(make_kernel("copy", CopyParams{})->check(std::vector{h.arg()}, std::vector{a.arg()}));
  EXPECT_FALSE(make_kernel("copy", CopyParams{})->check(std::vector{a.arg(), a.arg()}, std::vector{a.arg()}));
}

}  // namespace
}  // namespace lathe::cpu
