// SPDX-License-Identifier: Apache-2.0
// Weights of 4 or 8 bits, integers or floats, with a scale, and perhaps a zero point, for each block of them: the
// second factor of a product whose kernel dequantises what it reads.
#pragma once

#include "base/encoding.h"
#include "tuning/problem.h"

namespace lathe {

// One matrix of them, of several that lie one behind the other.
// Weight (k, n) is (code - zero) * scale. Codes count from 0: those of signed levels are half the range larger. Codes
// of floats are their bits; those have no zeros.
class PackedWeights {
 public:
  // `operand` is_scaled_by_blocks() and outlives it; `transposed`: its rows are columns of the factor.
  PackedWeights(const Operand& operand, bool transposed, int64_t matrix = 0);

  int64_t k() const { return k_; }
  int64_t n() const { return n_; }
  int bits() const { return bits_; }
  DType dtype() const { return levels_->dtype(); }
  float weight(int64_t k, int64_t n) const {
    if (is_weight_float(dtype())) return static_cast<float>(decode(dtype(), code(k, n))) * scale(k, n);
    return (static_cast<float>(code(k, n)) - zero(k, n)) * scale(k, n);
  }
  // Neighbours along K that share scale and zero point: K, or a multiple of 16 beneath.
  int64_t block() const { return block_; }
  // Whether a zero is not half of the codes, which those of signed levels are unless they have a zero point.
  bool has_other_zeros() const;

  uint8_t code(int64_t k, int64_t n) const {
    const int64_t at = first_ + (transposed_ ? n * k_ + k : k * n_ + n);
    const auto* bytes = static_cast<const uint8_t*>(levels_->data());
    const int code = bits_ == 8 ? bytes[at] : bytes[at / 2] >> at % 2 * 4 & 15;
    return static_cast<uint8_t>(is_signed_ ? code ^ 1 << (bits_ - 1) : code);
  }
  float scale(int64_t k, int64_t n) const { return scales_.at(k, n); }
  float zero(int64_t k, int64_t n) const {
    const float middle = is_signed_ ? half() : 0;
    return zeros_.content ? zeros_.at(k, n) + middle : middle;
  }
  float half() const { return static_cast<float>(1 << (bits_ - 1)); }  // of the codes

 private:
  // One element for each block.
  struct Blocks {
    const Tensor* content = nullptr;
    int64_t k_block = 1, n_block = 1, k_stride = 0, n_stride = 0, first = 0;
    float at(int64_t k, int64_t n) const {
      return static_cast<float>(content->at_double(first + k / k_block * k_stride + n / n_block * n_stride));
    }
  };
  Blocks blocks_of(const Operand& operand, int64_t matrix) const;

  const Tensor* levels_;
  bool transposed_, is_signed_;
  int bits_;
  int64_t k_, n_, first_, block_;
  Blocks scales_, zeros_;
};

// All of them, in their order.
std::vector<PackedWeights> packed_matrices(const Operand& operand, bool transposed);

}  // namespace lathe
