// SPDX-License-Identifier: Apache-2.0
// Winograd's minimal filtering for 3x3 convolutions of stride 1: F(m x m, 3 x 3) makes a tile of m x m outputs from
// (m + 2)^2 products instead of 9 m^2. The products of all tiles are (m + 2)^2 matrix multiplications.
//
// Rounding: F(2) about twice, F(4) about ten times the error of direct summation.
#pragma once

#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/isa.h"

namespace lathe::cpu::conv {

// Outputs along one side of a tile.
constexpr int winograd_outputs(Algorithm algorithm) { return algorithm == Algorithm::winograd4 ? 4 : 2; }
bool winograd_fits(const ConvShape& shape);

// As they are multiplied, weights are (m + 2)^2 / 9 times as large: 4 times for F(4). The kernel takes them as the
// network has them (TakesConstants), so that neither plans nor builds hold more.
Result<std::unique_ptr<Kernel>> make_winograd(const ConvShape& shape, const ConvConfig& config, Epilogue epilogue);

// One tile's input, transformed: product e of channel c goes to out[e * product_stride + c].
struct WinogradInput {
  const float* x;  // of the tile's first pixel, which may lie outside
  int64_t row_stride, pixel_stride;
  int64_t row, column, rows, columns;  // of the tile's first pixel; of the image
  int64_t channels;
  float* out;
  int64_t product_stride;
};
// One tile's products, transformed back: output pixel p of column c goes to out[p * out_stride + c].
struct WinogradOutput {
  const float* products;
  int64_t product_stride;
  int columns;  // a multiple of 16
  float* out;
  int64_t out_stride;
};

}  // namespace lathe::cpu::conv

namespace lathe::cpu {
LATHE_ISA_DECLARE(void winograd_input(int outputs, const conv::WinogradInput& input))
LATHE_ISA_DECLARE(void winograd_output(int outputs, const conv::WinogradOutput& output))
}  // namespace lathe::cpu
