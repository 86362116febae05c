// SPDX-License-Identifier: Apache-2.0
// Kernel `elementwise`: one function of the elements of one to three tensors, of any element types: integers, booleans
// and what else the fusion program, which computes in f32, does not hold.
//   program  none
//   params   ElementwiseParams
//   inputs   as many as the function has, of any strides, each of which broadcasts to the output; select: condition
//            (bool), and two of the output's type; quantize, dequantize: the zero point may be left out
//   outputs  one, of any strides; it may lie over an input of the same strides
// Results are those of the ops of the same names: integers wrap, division by zero gives 0.
//
// Elements pass through blocks of few types, the lanes, so that each function is compiled for these alone.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "device/params.h"
#include "kernels/cpu/isa.h"

namespace lathe::cpu::elementwise {

enum class Function : int64_t {
#define LATHE_SCALAR(name, number) name = number,
#include "base/scalars.def"
  cast = 200,
  quantize = 201,
  dequantize = 202,
  clip_integers = 203,
};
struct ElementwiseParams {
  Function function = Function::cast;
  // clip_integers: the bounds, integers in the order of the input's type (u64 as its bits); quantize: the lowest and
  // the highest level; is_inf: whether negative and positive infinities count; an activation: alpha and beta, as the
  // bits of doubles; else 0.
  int64_t x = 0, y = 0;
  static constexpr auto members() {
    using P = ElementwiseParams;
    return std::tuple(&P::function, &P::x, &P::y);
  }
};
// How many inputs the function has, a zero point included; 0 = the kernel has no such function.
size_t inputs_of(Function function);

// What a block holds: integers and booleans as i64, u64 where the sign matters, floats as f32 or f64.
enum class Lane { i64, u64, f32, f64 };
inline constexpr int kBlock = 256;
inline constexpr int kLaneBytes = 8;  // at most

struct FunctionCall {
  Function function;
  Lane from, to;  // of the inputs and of the result
  DType type;     // of the first input: quotients of floats are rounded to it
  int bits;       // of an integer of that type: shifts by as many give 0
  int64_t x, y;   // ElementwiseParams
};

// `block`, or the elements themselves where they are contiguous and of the lane's type.
using Load = const void*(DType type, const void* source, int64_t stride, int64_t count, Lane lane, void* block);
using Store = void(Lane lane, const void* block, int64_t count, DType type, void* target, int64_t stride);
// Inputs that the function does not have are not read; null is a zero point of 0.
using Compute = void(const FunctionCall& call, const void* const* inputs, int64_t count, void* result);
// target = condition ? yes : no, elements of so many bytes; strides of target, condition, yes, no.
using Select = void(size_t size, const void* const* inputs, void* target, const int64_t* strides, int64_t count);

}  // namespace lathe::cpu::elementwise

namespace lathe::cpu {
LATHE_ISA_DECLARE(elementwise::Load load_elements)
LATHE_ISA_DECLARE(elementwise::Store store_elements)
LATHE_ISA_DECLARE(elementwise::Compute compute_elements)
LATHE_ISA_DECLARE(elementwise::Select select_elements)
}  // namespace lathe::cpu
