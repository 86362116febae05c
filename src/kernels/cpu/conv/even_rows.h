// SPDX-License-Identifier: Apache-2.0
// The output pixels of a convolution as evenly spaced rows, whatever its kernel, stride and padding: matrix registers
// load rows in equal distances alone. x is copied with the zeros that taps read around it. A step of the output's
// columns is `stride` pixels of the copy; where other dimensions have strides, planes and lines that one tap reads lie
// together. Rows are all steps of the copy's lines: those behind the output's last column, for one, are no pixels.
#pragma once

#include "kernels/cpu/conv/pixel_rows.h"

namespace lathe::cpu::conv {

class EvenImage {
 public:
  explicit EvenImage(const Geometry& geometry);

  int64_t rows() const { return rows_; }
  int64_t floats() const { return phases_[0] * phases_[1] * phase_floats(); }
  // What needs_of() says, but that all taps share the rows' list, and that rows which are no pixels go to scratch.
  gemm::Needs needs(const ConvConfig& config) const;
  void write_taps(const ConvConfig& config, gemm::Tap* taps) const;
  void copy(const float* x, float* to, ThreadPool& pool) const;

 private:
  friend class EvenRows;
  const Geometry& geometry() const { return geometry_; }
  int64_t pixel() const { return geometry_.shape.in_channels; }
  int64_t step() const { return geometry_.shape.stride[2] * pixel(); }
  int64_t line() const { return size_[2] * step(); }
  int64_t phase_floats() const { return lines_ * line(); }
  // A kernel's row is one tap where its pixels follow each other.
  bool joins_taps() const { return geometry_.shape.groups == 1 && geometry_.shape.dilation[2] == 1; }

  const Geometry& geometry_;
  std::array<int64_t, 2> phases_{};  // of planes and lines: with the same rest when they are divided by the stride
  std::array<int64_t, 3> size_{};    // of a phase: planes, lines, steps
  int64_t rows_ = 0, lines_ = 0;
};

class EvenRows final : public gemm::RowSource {
 public:
  EvenRows(const EvenImage& image, const float* copy, const gemm::Tap* taps, const OutputRows& out)
      : image_(image), copy_(copy), taps_(taps), out_(out) {}
  gemm::TileTaps fill(int64_t first, int count, gemm::TileScratch& scratch) const override;

 private:
  const EvenImage& image_;
  const float* copy_;
  const gemm::Tap* taps_;
  const OutputRows& out_;
};

}  // namespace lathe::cpu::conv
