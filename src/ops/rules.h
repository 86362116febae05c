// SPDX-License-Identifier: Apache-2.0
// Pieces that several shape rules and evaluations share.
#pragma once

#include "ops/op.h"

namespace lathe {

// axis in [-rank, rank) made non-negative, or an attribute error naming `what`.
Result<int64_t> normalize_axis(int64_t axis, int64_t rank, std::string_view what = "axis");
Result<Ints> normalize_axes(std::span<const int64_t> axes, int64_t rank,
                            std::string_view what = "axes");  // sorted; a repeat is an error

// Output axis i of a transpose is input axis result[i]: all given, none negative. Checked by its shape rule.
Ints permutation_of(const TransposeAttrs& attrs, size_t rank);

// NumPy broadcasting of symbolic shapes. That two dims are equal or one of them 1 is assumed of the context, which
// proves it or keeps it as a constraint; where it is not known which of them is 1, the result is broadcast_dim(a, b).
Result<Shape> broadcast(InferContext& context, const Shape& a, const Shape& b);
// The same rule one way only: whether `from` may be broadcast to `to`, false when it is proven that it cannot.
bool assume_expands(InferContext& context, const Shape& from, const Shape& to);
Dims broadcast_dims(std::span<const int64_t> a, std::span<const int64_t> b);  // for operands known to fit

// Strides for walking an operand of `dims` over a result of `result` dims: 0 where it broadcasts.
Dims broadcast_strides(std::span<const int64_t> dims, std::span<const int64_t> result);

// Walks a dense row-major index space, keeping one running offset per operand.
class Walk {
 public:
  Walk(Dims dims, std::vector<Dims> strides)
      : dims_(std::move(dims)), strides_(std::move(strides)), index_(dims_.size()), offsets_(strides_.size()) {}
  int64_t offset(size_t operand) const { return offsets_[operand]; }
  std::span<const int64_t> index() const { return index_; }
  void next() {
    for (size_t d = dims_.size(); d-- > 0;) {
      for (size_t k = 0; k < strides_.size(); ++k) offsets_[k] += strides_[k][d];
      if (++index_[d] < dims_[d]) return;
      for (size_t k = 0; k < strides_.size(); ++k) offsets_[k] -= strides_[k][d] * dims_[d];
      index_[d] = 0;
    }
  }

 private:
  Dims dims_;
  std::vector<Dims> strides_;
  Dims index_;
  std::vector<int64_t> offsets_;
};

// Dims seen from one axis: element (o, i, r) stands at (o * extent + i) * inner + r.
struct AxisSplit {
  int64_t outer = 1, extent = 1, inner = 1;
};
AxisSplit split_at(std::span<const int64_t> dims, int64_t axis);  // a negative axis counts from the end

// A broadcast index space cut into runs of consecutive result elements, in order: during a run of `count` elements
// operand k starts at offset(k) and advances by step(k), which is 0 or 1. Neighbouring dims are merged where possible.
class Runs {
 public:
  Runs(const Dims& result, std::span<const Dims> operands);
  int64_t total() const { return total_; }  // runs in all
  int64_t count() const { return count_; }
  int64_t offset(size_t operand) const { return walk_.offset(operand); }
  int64_t step(size_t operand) const { return steps_[operand]; }
  void next() { walk_.next(); }

 private:
  int64_t total_ = 0;
  int64_t count_ = 0;
  std::vector<int64_t> steps_;
  Walk walk_{{}, {}};
};

// Elements [begin, begin + size) of any tensor as double, and back with one rounding to nearest even;
// integers as round_to says.
void read_doubles(const Tensor& tensor, int64_t begin, std::span<double> values);
void write_doubles(std::span<const double> values, int64_t begin, Tensor& tensor);
// The same; storage types (base/encoding.h) without saturation where asked.
void encode_doubles(std::span<const double> values, int64_t begin, Tensor& tensor, bool saturate);
// The same as int64 (u64 keeps its bits; bool is 0 or 1), and back with wrap-around (bool: is not 0).
void read_ints(const Tensor& tensor, int64_t begin, std::span<int64_t> values);
void write_ints(std::span<const int64_t> values, int64_t begin, Tensor& tensor);
int64_t wrap_to(DType dtype, int64_t value);  // one element's way through an integer type
// u64 contents as int64 that compare alike, and back: flips the top bit. Does nothing for other types.
void order_bits(DType dtype, std::span<int64_t> values);
// Whole tensors.
std::vector<double> to_doubles(const Tensor& tensor);
void from_doubles(std::span<const double> values, Tensor& tensor);
std::vector<int64_t> to_ints(const Tensor& tensor);
void from_ints(std::span<const int64_t> values, Tensor& tensor);

// double to any element type: floating types round once, bool is "not 0". Integers truncate; out of range they give
// what NumPy gives on x86: types of at most 32 bits (but u32) wrap the int32 that is INT32_MIN when out of range; i64
// gives INT64_MIN; u32 and u64 wrap what fits an int64 and give 0 otherwise.
template <class T>
T round_to(double value);

// The element type of sums of products: 8-bit integers are summed in i32, 8-bit floats in f32, other types in their
// own.
inline DType sum_dtype(DType operands) {
  if (is_factor_float8(operands)) return DType::f32;
  return size_of(operands) == 1 && is_integer(operands) ? DType::i32 : operands;
}

// Symbolic contents are shape values, which are i32 or i64 and never overflow. Other types have constant contents only.
inline bool may_hold_symbols(DType dtype) { return dtype == DType::i64 || dtype == DType::i32; }

Result<> require_floating(const InferContext& context, size_t input);
Result<> require_integer(const InferContext& context, size_t input);
Result<> require_numeric(const InferContext& context, size_t input);  // anything but bool
Result<> require_same_dtype(const InferContext& context, size_t a, size_t b);
// Of what is multiplied and summed: the same type, or two of 8-bit integers.
Result<> require_factors(const InferContext& context, size_t a, size_t b);
// What attributes say that kernels may round factors of f32 to.
Result<> require_rounding(DType factors);
Result<> require_rank(const InferContext& context, size_t input, int at_least, int at_most);

// Spatial rule of convolution and pooling: the output extent of one axis and the padding in front.
struct Window {
  Expr output;
  Expr pad_begin;
  Expr pad_end;
};
Window window_rule(const Expr& input, const Expr& kernel, int64_t stride, int64_t dilation, int64_t pad_begin,
                   int64_t pad_end, PaddingMode mode);

}  // namespace lathe
