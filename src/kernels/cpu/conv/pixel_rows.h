// SPDX-License-Identifier: Apache-2.0
// The output pixels of a convolution as rows of a GEMM: where each pixel's taps lie in x, and where it goes.
#pragma once

#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/gemm/row_map.h"

namespace lathe::cpu::conv {

// A launch's geometry, D H W.
struct Geometry {
  ConvShape shape;  // with the padding that its rule says
  int64_t batch = 1;
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1};
  std::array<int64_t, 3> in_stride{};  // elements of x from one to the next
  int64_t batch_stride = 0, channel_stride = 1;

  int64_t rows() const { return batch * out[0] * out[1] * out[2]; }
  bool padded() const;  // some tap of some pixel lies outside of x
  gemm::RowMap<1> first_taps() const;
  // The first taps are evenly spaced and no tap lies outside of x.
  bool contiguous() const { return first_taps().even() && !padded(); }
};
Geometry geometry_of(const ConvShape& shape, const TensorArg& x, const TensorArg& out);

// What every algorithm requires of its tensors.
Result<> check_conv(const ConvParams& params, const Epilogue& epilogue, std::span<const TensorArg> inputs,
                    std::span<const TensorArg> outputs);

// Weights that a kernel packs while running, [O, inputs of a group, kernel...] of any strides: whether they fit, and
// where those of a tap lie.
bool are_weights(const ConvShape& shape, const TensorArg& weights, int64_t group_inputs);
int64_t tap_offset(const ConvShape& shape, const TensorArg& weights, int64_t tap);

// How the k of a panel is cut into taps. direct: kernel positions x segments of at most k_block channels. planar: one
// tap for each channel and kernel row, running along the kernel's columns.
gemm::Needs needs_of(const ConvShape& shape, const ConvConfig& config);
void write_taps(const Geometry& geometry, const ConvConfig& config, gemm::Tap* taps);

// Where output pixels go, and what the epilogue adds to them.
class OutputRows {
 public:
  OutputRows(const Geometry& geometry, const TensorArg& out, const BoundEpilogue& epilogue,
             std::span<const TensorArg> operands);

  // Of pixels [first, first + count), in the tile's rows from `at` on.
  void fill(int64_t first, int count, int at, TileRows& where) const;
  // Rows [begin, end) of the tile are no pixels: results go to `unused`, which has room for one row.
  void skip(float* unused, int begin, int end, TileRows& where) const;

 private:
  void* out_;
  size_t out_size_;  // of an element
  const BoundEpilogue& epilogue_;
  gemm::RowMap<1 + kMaxEpilogueOperands> map_;  // of the result and of the operands that vary by row
  int varying_[kMaxEpilogueOperands] = {};      // those operands
};

class PixelRows final : public gemm::RowSource {
 public:
  // `zeros` holds as many zeros as x has channels, or the kernel columns if that is more.
  PixelRows(const Geometry& geometry, const ConvConfig& config, const gemm::Needs& needs, const gemm::Tap* taps,
            const float* zeros, const float* x, const OutputRows& out);

  // Taps that lie outside of x for all pixels of a tile are summed like others, for products with zeros that are no
  // zeros when they are multiplied.
  void keep_outside() { keeps_outside_ = true; }
  gemm::TileTaps fill(int64_t first, int count, gemm::TileScratch& scratch) const override;

 private:
  // The pixels of one tile: the first tap of each, D H W, and its address, which may lie outside of x.
  struct Pixels {
    int count;
    std::array<int64_t, 3> corner[kMaxTileRows];
    const float* base[kMaxTileRows];
  };
  bool find_pixels(int64_t first, Pixels& pixels) const;
  bool rows_inside(const Pixels& pixels, int64_t d, int64_t h, bool (&inside)[kMaxTileRows]) const;
  void list_direct(const Pixels& pixels, gemm::TileScratch& scratch) const;
  void list_planar(const Pixels& pixels, gemm::TileScratch& scratch) const;

  const Geometry& geometry_;
  bool planar_;
  bool keeps_outside_ = false;
  const bool contiguous_;
  std::array<int64_t, 3> inner_begin_, inner_end_;  // the output pixels whose taps all lie inside of x
  const gemm::Needs needs_;
  const gemm::Tap* taps_;
  const float* zeros_;
  const float* x_;  // of the first tap of the first pixel
  const OutputRows& out_;
  gemm::RowMap<1> x_map_;
};

}  // namespace lathe::cpu::conv
