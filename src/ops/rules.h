// SPDX-License-Identifier: Apache-2.0
// Pieces that several shape rules and evaluations share.
#pragma once

#include "ops/op.h"

namespace lathe {

// axis in [-rank, rank) made non-negative, or an attribute error naming `what`.
Result<int64_t> normalize_axis(int64_t axis, int64_t rank, std::string_view what = "axis");
Result<Ints> normalize_axes(std::span<const int64_t> axes, int64_t rank,
                            std::string_view what = "axes");  // sorted, no repeats

// NumPy broadcasting of symbolic shapes. Dims that cannot be proven equal or 1 give max(a, b) * min(a, b, 1), which is
// right for every legal pair; the run-time check catches illegal ones.
Result<Shape> broadcast(const Shape& a, const Shape& b);
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

// Reads any floating tensor as double / any integer or bool tensor as int64 (u64 bits kept), and back with rounding to
// nearest even and, for integers, wrap-around.
std::vector<double> to_doubles(const Tensor& tensor);
void from_doubles(std::span<const double> values, Tensor& tensor);

Result<> require_floating(const InferContext& context, size_t input);
Result<> require_integer(const InferContext& context, size_t input);
Result<> require_same_dtype(const InferContext& context, size_t a, size_t b);
Result<> require_rank(const InferContext& context, size_t input, int at_least, int at_most);

// Spatial rule of convolution and pooling: the output extent of one axis and the padding in front.
struct Window {
  Expr output;
  Expr pad_begin;
  Expr pad_end;
};
Window window_rule(const Expr& input, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad_begin,
                   int64_t pad_end, PaddingMode mode);

}  // namespace lathe
