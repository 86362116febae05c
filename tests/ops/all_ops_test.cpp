// SPDX-License-Identifier: Apache-2.0
// Every op meets every element type, zero-size and 0-d tensors: it must give a result that fits its shape rule, or an
// error that is the caller's (never an internal one), and not crash.
#include <gtest/gtest.h>

#include <cstring>

#include "ops/op.h"

namespace lathe {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,  DType::i16,    DType::i32,
                            DType::i64, DType::u8,  DType::u16, DType::u32,  DType::u64, DType::boolean};

// Small numbers 0, 1, 2 in turn (booleans 0, 1).
Tensor make(DType dtype, Dims dims) {
  Tensor tensor = *Tensor::allocate(dtype, std::move(dims));
  dispatch(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < tensor.volume(); ++i) {
      if constexpr (std::is_class_v<T>)
        tensor.mutable_as<T>()[i] = T(static_cast<float>(i % 3));
      else
        tensor.mutable_as<T>()[i] = static_cast<T>(std::is_same_v<T, bool> ? i % 2 : i % 3);
    }
  });
  return tensor;
}

const Dims kShapes[] = {{}, {0}, {3}, {2, 3}, {0, 3}, {2, 0}, {1, 2, 3}, {2, 0, 3}, {1, 2, 3, 3}, {1, 2, 0, 3}};

// What stands behind the first input.
std::vector<Tensor> followers(DType dtype, const Dims& first) {
  std::vector<Tensor> out = {make(dtype, first), make(dtype, {first.size() > 1 ? first[1] : 1}), make(dtype, {}),
                             make(DType::i64, first), make(DType::f32, first)};
  for (const Dims& dims : {Dims{}, Dims{0}, Dims{1}, Dims{2}, Dims{3}, Dims{1, 1}})
    out.push_back(make(DType::i64, dims));
  return out;
}

// Attributes worth trying: the defaults, and each enumeration's other values.
class EachEnum final : public FieldVisitor {
 public:
  explicit EachEnum(int value) : value_(value) {}
  void field(std::string_view, bool&) override {}
  void field(std::string_view, int64_t&) override {}
  void field(std::string_view, double&) override {}
  void field(std::string_view, std::string&) override {}
  void field(std::string_view name, Ints& value) override {
    if (name == "window") value = {2};
  }
  void field(std::string_view, DType&) override {}
  void field(std::string_view, Tensor& value) override { value = make(DType::f32, {1}); }
  void enumeration(std::string_view, int& value, const EnumInfo& info) override {
    const auto count = static_cast<int>(info.values.size());
    most = std::max(most, count);
    value = value_ % count;
  }
  int most = 1;

 private:
  int value_;
};

void expect_sound(const OpInfo& info, const Attributes& attributes, const std::vector<Tensor>& inputs) {
  const auto outputs = static_cast<size_t>(info.min_outputs);
  const Result<std::vector<Tensor>> result = run_op(attributes, inputs, outputs);
  if (!result) {
    EXPECT_NE(kind_of(result.error().code), ErrorKind::bug) << info.name << ": " << result.error().message;
    EXPECT_FALSE(result.error().message.empty()) << info.name;
    return;
  }
  ASSERT_EQ(result->size(), outputs);
  for (const Tensor& output : *result) ASSERT_TRUE(output.defined()) << info.name;
}

void try_inputs(const OpInfo& info, const Attributes& attributes, DType dtype) {
  for (const Dims& dims : kShapes) {
    const Tensor first = make(dtype, dims);
    if (info.max_inputs == 0) return expect_sound(info, attributes, {});
    if (info.min_inputs <= 1) expect_sound(info, attributes, {first});
    if (info.max_inputs == 1) continue;
    for (const Tensor& follower : followers(dtype, dims))
      for (int count = std::max(2, info.min_inputs); count <= std::min(info.max_inputs, 5); ++count) {
        std::vector<Tensor> inputs(static_cast<size_t>(count), follower);
        inputs[0] = first;
        expect_sound(info, attributes, inputs);
        if (count == 2) expect_sound(info, attributes, {follower, first});
      }
  }
}

class AllOps : public testing::TestWithParam<OpKind> {};

TEST_P(AllOps, EveryTypeAndZeroSizes) {
  const OpInfo& info = op_info(GetParam());
  const std::unique_ptr<Attributes> attributes = make_attributes(info.kind);
  int values = 1;
  for (int value = 0; value < values; ++value) {
    EachEnum visitor(value);
    attributes->visit(visitor);
    values = visitor.most;
    SCOPED_TRACE(to_text(*attributes));
    for (DType dtype : kTypes) try_inputs(info, *attributes, dtype);
  }
}

std::vector<OpKind> kinds() {
  std::vector<OpKind> out;
  for (const OpInfo& info : all_ops()) out.push_back(info.kind);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Table, AllOps, testing::ValuesIn(kinds()),
                         [](const auto& info) { return std::string(op_info(info.param).name); });

}  // namespace
}  // namespace lathe
