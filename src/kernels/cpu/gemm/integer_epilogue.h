// SPDX-License-Identifier: Apache-2.0
// What follows the i32 sums of products of 8-bit integers: they become floats, a program runs, and its result may be
// rounded to 8-bit levels. The fusion program says all of it in f32; here its ends are taken off, so that zero points
// are subtracted as integers and what is left is an epilogue like that of products of floats:
//
//   out = level(program((sums - term[row, column] * factor[column] - zero[column]) * scale[column], operands...))
//
// Operands of 8 bits are (level - zero) * scale likewise. Without a program, sums may stay i32. Where weights have zero
// points, these are the factors and a row's sum of A is its term.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "device/params.h"
#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/isa.h"

namespace lathe::cpu::gemm {

inline constexpr int kMaxSmallOperands = 4;  // of 8 bits

// clip(round(x / scale) + zero, low, high), of an integer zero, low and high
struct Rounding {
  float scale = 1, zero = 0, low = 0, high = 0;
};

// Whether values that are clamped to what the levels are worth become these levels, and no others.
bool is_exact(const Rounding& rounding);

struct Bounds {
  float low = 0, high = 0;
};

// Levels between that become a number, and a residual of 8 bits that is added to it, as FoldedScales does without
// dividing.
struct FusedSum {
  int operand = -1;  // the residual; -1 = none that has the same levels
  float step = 0, residual_scale = 0, shift = 0;
};

// What is known of it before shapes are.
struct IntegerProgram {
  int zero_operand = -1;    // of the kernel's extra operands: i32, along the columns; -1 = none
  int term_operand = -1;    // i32; -1 = none
  int factor_operand = -1;  // i32, along the columns; -1 = `factor` for all
  int32_t factor = 1;
  int scale_operand = -1;  // f32, along the columns; -1 = `scale` for all
  float scale = 1;
  struct Levels {
    float zero = 0, scale = 1;
  };
  std::vector<Levels> levels;  // of the operands; those of 8 bits alone
  std::vector<DType> operand_types;
  DType to = DType::f32;
  Rounding rounding;  // of results of 8 bits
  Epilogue middle;    // reads the operands in the same order
  FusedSum sum;

  bool is_along_columns(int operand) const {
    return operand == zero_operand || operand == factor_operand || operand == scale_operand;
  }
};

struct IntegerTypes {
  DType to = DType::f32;  // of the result
  std::vector<DType> operands = {};
  static constexpr auto members() { return std::tuple(&IntegerTypes::to, &IntegerTypes::operands); }
};

// Fails for a program that cannot be cut this way: with a result of 8 bits that does not end by rounding to levels, or
// sums that get a zero point later. nullptr = identity.
Result<IntegerProgram> compile_integer_epilogue(const Program* program, const IntegerTypes& types);

// Dimensions before `first_shared` have products, and what goes with their columns, of their own.
Result<> check_integer_epilogue(const IntegerProgram& program, std::span<const TensorArg> operands,
                                const TensorArg& output, int column_dim, int first_shared = 0);

// A direct epilogue that rounds, with all scales divided by that of its levels. Then a level is
//
//   round(sum * scale[column] + offset[column] + residual * residual_scale)
//
// without its zero point, where `sum` lacks its own. With levels between, `scale` and `offset` give those, and
//
//   round(clip(round(sum * scale[column] + offset[column]), low, high) * step + residual * residual_scale + shift)
//
// All products and sums stay within the range of i32. Levels between and a residual of levels are added that way where
// it was tried that each two of them give the level that the chain does (fuse_sum()). Elsewhere they are added as the
// chain says it, and the sum is divided: sums of levels of two scales may lie in the middle between two of a third
// again and again (those of 6 and 8 every fourth time), where any other order of roundings gives another level.
struct FoldedScales {
  const float* offset = nullptr;  // null = an epilogue of another kind
  float residual_scale = 0, shift = 0;
  float low = 0, high = 0, step = 0;
  bool divides = false;  // the sum, by `quotient`,
  Rounding quotient;     // and the residual is (level - residual_zero) * residual_scale
  float residual_zero = 0;
  int32_t zero = 0;             // is added to levels. 128 more where they are i8, which makes them u8 ...
  int32_t least = 0, most = 0;  // ... of this range ...
  int32_t flip = 0;             // ... until this is xor-ed to four of them
};

// For one launch.
struct IntegerEpilogue {
  const IntegerProgram* program = nullptr;
  BoundEpilogue middle;
  int32_t flip = 0;  // xor-ed to four elements of A: 0x80808080 where they are i8, which makes them u8, 128 larger
  // Of each column, with room for a whole tile behind the last one. Who sums begins with -zero.
  const int32_t* zero = nullptr;
  const int32_t* start = nullptr;  // -zero for products of A that is not flipped; null = all are zero
  const float* scale = nullptr;
  int32_t row_factor = 0;  // times the sum of a row of A, is added to the row's sums
  // Whose values, times these factors of columns, are taken off when all is summed: operand; -1 = none.
  int term = -1;
  const int32_t* factors = nullptr;
  bool raw = false;          // sums stay integers
  bool rounds = false;       // to 8-bit levels
  bool dequantizes = false;  // some operand that varies by row has 8 bits
  // The program is clip(levels(x + bias) + residual, low, high) at most, of which levels are rounded and made floats
  // again: as networks are written where a product is quantised and dequantised before something is added.
  bool direct = false;
  bool has_between = false;  // such levels
  struct {
    Rounding rounding;
    Bounds bounds;
    float step = 0;  // what a level is worth
  } between;
  // Else: whether the program is a chain of sums with such operands, of levels that are rounded, and of clips.
  bool chained = false;
  int residual = -1;  // operands; -1 = none
  Bounds bounds;      // of values, by the program where it is direct and by the range of the levels
  FoldedScales folded;
};

// Bytes of scratch, a multiple of 64, for `columns` columns and so many operands; and the epilogue, which reads from
// it. `flipped` are the sums of each column's weights times 128 where A is i8, else null.
size_t integer_scratch_bytes(int64_t columns, size_t operands);
IntegerEpilogue bind_integer_epilogue(const IntegerProgram& program, std::span<const TensorArg> operands,
                                      const TensorArg& output, int column_dim, const int32_t* flipped,
                                      std::byte* scratch);

// Finds the program's sum, if it has one, and factors by which it has the same levels without a division.
void fuse_sum(IntegerProgram& program);

struct TileTable;

// A smaller number of levels, times any factor that rounding errors are, is converted to i32.
inline constexpr float kConvertible = 0x1.fp30f;

// What is divided by the scale of levels; see FoldedScales. `bias` may be null, `most` is what others add to a level.
struct FoldedColumns {
  float* scale;
  const float* bias;
  float* offset;
  int64_t columns;
  float factor, shift, most;
};

}  // namespace lathe::cpu::gemm

namespace lathe::cpu {
LATHE_ISA_DECLARE(const gemm::TileTable& integer_tile_table(bool multiplies_bytes))

// Runs the epilogue on sums[rows][stride], without their zeros, columns [column, column + columns) of the output, and
// stores the result. `sums` has whole vectors, and is scratch afterwards.
using FinishIntegers = void(const gemm::IntegerEpilogue& integers, const TileRows& where, int32_t* sums, int64_t stride,
                            int rows, int64_t column, int columns);
LATHE_ISA_DECLARE(FinishIntegers finish_integers)

// Whether both give the same levels, between `least` and `most`, for all levels between and all residuals.
LATHE_ISA_DECLARE(bool gives_levels_of(const gemm::FoldedScales& fused, const gemm::FoldedScales& divided,
                                       bool is_signed))

// Writes offsets and divides scales; false, and scales stay, where levels may be no i32.
LATHE_ISA_DECLARE(bool fold_columns(const gemm::FoldedColumns& folded))
}  // namespace lathe::cpu
