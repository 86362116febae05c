// SPDX-License-Identifier: Apache-2.0
// Tensors of 8-bit integers, and programs that follow sums of their products.
#pragma once

#include <cmath>
#include <optional>

#include "kernels/cpu/gemm/integer_epilogue.h"
#include "kernels/cpu/reference.h"

namespace lathe::cpu::testing {

// A tensor of 8-bit integers or floats, channels last for images: dense, or with room for more channels between pixels.
struct Levels {
  std::vector<std::byte> storage;
  TensorArg arg;

  Levels(DType type, std::vector<int64_t> dims, bool channels_last, double scale = 1, int64_t room = 0) {
    arg = (channels_last ? TestTensor::channels_last(dims, dims[1] + room) : TestTensor(dims)).arg;
    arg.dtype = type;
    const int64_t elements = arg.volume() / dims[1] * (dims[1] + room);
    storage.resize(static_cast<size_t>(elements) * size_of(type));
    arg.data = storage.data();
    for (int64_t i = 0; i < elements; ++i)
      if (type == DType::f32)
        arg.as<float>()[i] = static_cast<float>(scale * static_cast<double>(pick(-1000, 1000)) / 1000);
      else if (type == DType::i32)
        arg.as<int32_t>()[i] = static_cast<int32_t>(pick(-100000, 100000));
      else
        storage[static_cast<size_t>(i)] = static_cast<std::byte>(pick(0, 255));
  }
  int64_t offset(std::span<const int64_t> index) const {
    int64_t at = 0;
    for (int d = 0; d < arg.rank; ++d) at += arg.dims[d] == 1 ? 0 : index[static_cast<size_t>(d)] * arg.strides[d];
    return at;
  }
  double at(std::initializer_list<int64_t> index) const { return at(std::span(index.begin(), index.size())); }
  double at(std::span<const int64_t> index) const {
    const int64_t i = offset(index);
    switch (arg.dtype) {
      case DType::f32:
        return static_cast<double>(arg.as<float>()[i]);
      case DType::i32:
        return arg.as<int32_t>()[i];
      case DType::i8:
        return arg.as<int8_t>()[i];
      default:
        return arg.as<uint8_t>()[i];
    }
  }
};

// A program after sums, its operands' types, the result's, and what it means for one element.
struct Form {
  std::string program;
  std::vector<DType> operands;  // the first ones run along the columns
  size_t along_columns;
  DType to;
  // The first operand behind those along the columns is taken off the sums, times this, or, where it is 0, times
  // operand 1: a number for each row, or for each element.
  std::optional<int64_t> term_factor = std::nullopt;
};

inline const std::vector<Form>& forms() {
  static const std::vector<Form> all = {
      {"in=2; r2=affine r0 0.001 -0; r3=add r2 r1; out r3", {DType::f32}, 1, DType::f32},
      {"in=3; r3=sub r0 r1; r4=mul r3 r2; out r4", {DType::i32, DType::f32}, 2, DType::f32},
      {"in=4; r4=sub r0 r1; r5=mul r4 r2; r6=add r5 r3; r7=relu r6; r8=constant 0.37; r9=div r7 r8; r10=round r9; "
       "r11=affine r10 1 7; r12=clip r11 0 255; out r12",
       {DType::i32, DType::f32, DType::f32},
       3,
       DType::u8},
      {"in=2; r2=affine r0 0.001 -0; r3=affine r1 1 -11; r4=affine r3 0.05 -0; r5=add r2 r4; r6=affine r5 8 -0; "
       "r7=round r6; r8=clip r7 -128 127; out r8",
       {DType::u8},
       0,
       DType::i8},
      {"in=4; r4=mul r0 r1; r5=add r4 r2; r6=silu r5; r7=affine r3 0.05 -0; r8=add r6 r7; r9=mul r8 r5; out r9",
       {DType::f32, DType::f32, DType::i8},
       2,
       DType::f32},
      {"in=3; r3=mul r0 r1; r4=constant 0.3; r5=div r3 r4; r6=round r5; r7=clip r6 -9 90; r8=affine r7 0.3 -0; "
       "r9=add r8 r2; r10=relu r9; r11=div r10 r4; r12=round r11; r13=clip r12 0 255; out r13",
       {DType::f32, DType::f32},
       1,
       DType::u8},
      {"in=5; r5=sub r0 r1; r6=mul r5 r2; r7=add r6 r3; r8=constant 0.3; r9=div r7 r8; r10=round r9; r11=clip r10 -9 "
       "90; "
       "r12=affine r11 0.3 -0; r13=affine r4 1 -11; r14=affine r13 0.05 -0; r15=add r12 r14; r16=relu r15; "
       "r17=constant 0.37; r18=div r16 r17; r19=round r18; r20=affine r19 1 -90; r21=clip r20 -128 127; out r21",
       {DType::i32, DType::f32, DType::f32, DType::u8},
       3,
       DType::i8},
      {"in=3; r3=affine r0 0.01 -0; r4=add r3 r1; r5=add r4 r2; r6=affine r5 4 -0; r7=round r6; r8=affine r7 1 100; "
       "r9=clip r8 20 210; out r9",
       {DType::f32, DType::f32},
       1,
       DType::u8},
      {"in=1; r1=affine r0 300 -0; r2=constant 0.3; r3=div r1 r2; r4=round r3; r5=affine r4 1 -20; r6=clip r5 -128 "
       "127; "
       "out r6",
       {},
       0,
       DType::i8},
      {"in=5; r5=sub r0 r1; r6=mul r5 r2; r7=constant 0.3; r8=div r6 r7; r9=round r8; r10=clip r9 -90 120; "
       "r11=affine r10 0.3 -0; r12=add r11 r3; r13=constant 0.31; r14=div r12 r13; r15=round r14; r16=clip r15 -100 "
       "127; "
       "r17=affine r16 0.31 -0; r18=affine r4 1 -11; r19=affine r18 0.05 -0; r20=add r17 r19; r21=constant 0.37; "
       "r22=div r20 r21; r23=round r22; r24=affine r23 1 7; r25=clip r24 0 255; out r25",
       {DType::i32, DType::f32, DType::f32, DType::u8},
       3,
       DType::u8},
      {"in=4; r4=mul r0 r1; r5=add r4 r2; r6=affine r5 2 0.5; r7=add r6 r3; r8=relu r7; out r8",
       {DType::f32, DType::f32, DType::i8},
       2,
       DType::f32},
      {"in=6; r6=mul r4 r2; r7=add r6 r1; r8=sub r0 r7; r9=mul r8 r3; r10=constant 0.3; r11=div r9 r10; r12=round r11; "
       "r13=clip r12 -90 120; r14=affine r13 0.3 -0; r15=affine r5 1 -11; r16=affine r15 0.05 -0; r17=add r14 r16; "
       "r18=constant 0.37; r19=div r17 r18; r20=round r19; r21=affine r20 1 7; r22=clip r21 0 255; out r22",
       {DType::i32, DType::i32, DType::f32, DType::i32, DType::u8},
       3,
       DType::u8,
       0},
      {"in=2; r2=affine r1 -7 -0; r3=sub r0 r2; r4=affine r3 0.001 -0; r5=constant 0.3; r6=div r4 r5; r7=round r6; "
       "r8=clip r7 -128 127; out r8",
       {DType::i32},
       0,
       DType::i8,
       -7},
      {"in=2; r2=sub r0 r1; r3=affine r2 0.001 -0; r4=relu r3; out r4", {DType::i32}, 0, DType::f32, 1},
      {"in=1; out r0", {}, 0, DType::i32},
  };
  return all;
}

inline std::vector<Levels> operands_of(const Form& form, const std::vector<int64_t>& out, size_t column_dim,
                                       bool image) {
  std::vector<Levels> operands;
  for (size_t i = 0; i < form.operands.size(); ++i) {
    std::vector<int64_t> dims(out.size(), 1);
    dims[column_dim] = out[column_dim];
    if (i >= form.along_columns) dims = out;
    const bool is_term = form.term_factor && i == form.along_columns;
    if (is_term && pick(0, 1)) dims[column_dim] = 1;
    const bool like_output = i < form.along_columns || is_term || pick(0, 2) > 0;
    operands.emplace_back(form.operands[i], dims, image && like_output, i < form.along_columns && i > 0 ? 0.002 : 3);
    const bool is_factor = form.term_factor == 0 && i == 1;
    for (int64_t c = 0; is_factor && c < out[column_dim]; ++c) operands.back().arg.as<int32_t>()[c] %= 256;
  }
  return operands;
}

// Whether what the program rounds is half way between two integers, but for the rounding errors of what comes before.
inline bool rounds_near_tie(Program program, std::span<const float> inputs) {
  return std::ranges::any_of(program.code, [&](const Instruction& each) {
    if (each.op != Opcode::round) return false;
    float value = 0;
    program.outputs = {each.operands[0]};
    evaluate(program, inputs, {&value, 1});
    return std::abs(value - std::floor(value) - 0.5F) <= 3e-6F * (1 + std::abs(value));
  });
}

// The exact sum through the form's program, with the zero point taken off as an integer. Levels may differ by one where
// a quotient is half way between two.
inline void expect_element(const Form& form, const Program& program, const Levels& out,
                           const std::vector<Levels>& operands, const std::vector<int64_t>& index, int64_t sum) {
  std::vector<float> inputs{0};
  for (const Levels& operand : operands) inputs.push_back(static_cast<float>(operand.at(index)));
  if (form.along_columns > 0 && operands[0].arg.dtype == DType::i32) {
    sum -= static_cast<int64_t>(operands[0].at(index));
    inputs[1] = 0;
  }
  if (form.term_factor) {
    const double factor = *form.term_factor == 0 ? operands[1].at(index) : static_cast<double>(*form.term_factor);
    sum -= static_cast<int64_t>(operands[form.along_columns].at(index) * factor);
    inputs[1 + form.along_columns] = 0;
  }
  inputs[0] = static_cast<float>(sum);
  float want = 0;
  evaluate(program, inputs, {&want, 1});
  const double got = out.at(index),
               wanted = form.to == DType::i32 ? static_cast<double>(sum) : static_cast<double>(want);
  if (form.to == DType::f32 || form.to == DType::i32) {
    ASSERT_NEAR(got, wanted, form.to == DType::i32 ? 0 : 1e-5 * (1 + std::abs(wanted))) << form.program;
    return;
  }
  if (got == wanted) return;
  ASSERT_TRUE(std::abs(got - wanted) <= 1 && rounds_near_tie(program, inputs))
      << form.program << ": got " << got << ", want " << wanted << " of a sum of " << sum << " and "
      << fmt::format("{}", fmt::join(inputs, " "));
}

inline std::vector<int8_t> random_weights(int64_t count) {
  std::vector<int8_t> weights(static_cast<size_t>(count));
  for (int8_t& weight : weights)
    weight = static_cast<int8_t>(pick(0, 5) ? pick(-128, 127) : one_of<int64_t>({-128, 127}));
  return weights;
}

inline TensorArg flat(std::vector<int32_t>& packed) {
  return {packed.data(), DType::i32, 1, {static_cast<int64_t>(packed.size())}, {1}};
}

}  // namespace lathe::cpu::testing
