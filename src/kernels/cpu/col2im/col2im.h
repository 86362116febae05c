// SPDX-License-Identifier: Apache-2.0
// Kernel `col2im`: images from columns; each pixel is the sum of what the taps of a sliding block add to it.
//   program  none
//   params   Col2ImParams
//   inputs   first: columns [n, c * taps, positions] of any type, any strides; last: the block's shape, integers, one
//            for each spatial dimension. One that the columns do not fit is an error of the run. Between them may be
//            the image's shape, which is not read: the output has it.
//   outputs  0: of the columns' type, [n, c, image...], any strides
// 16- and 32-bit floats are summed in f32, f64 in f64 and rounded once; integers wrap.
#pragma once

#include <cstdint>
#include <vector>

#include "device/params.h"
#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/isa.h"

namespace lathe::cpu {

// An entry for each spatial dimension.
struct Col2ImParams {
  std::vector<int64_t> stride, dilation, pads_begin, pads_end;
  static constexpr int64_t kMost = int64_t{1} << 31;
  static constexpr auto members() {
    using P = Col2ImParams;
    return std::tuple(&P::stride, &P::dilation, &P::pads_begin, &P::pads_end);
  }
};

namespace col2im {

// One spatial dimension. Every stride-th pixel is of one phase: pixel p + stride * i is total i of phase p, and totals
// of a phase are contiguous. With stride 2, pixels 0 1 2 3 4 lie as 0 2 4, 1 3.
struct Axis {
  int64_t extent = 0, block = 0, positions = 0, stride = 1, dilation = 1, pad = 0;
  int64_t length = 0, full = 0;  // totals of a phase; phases of as many, others have one less
  int64_t jump = 0, turn = 0;    // dilation = jump * stride + turn
};

// Contiguous elements that are added to totals[to] and those behind it.
struct Run {
  const void* from;
  int64_t to, count;
};

}  // namespace col2im

// totals[i] = the sum of all that runs add to it, and of what it was where it is continued. Lanes of 64 bits or f32.
LATHE_ISA_DECLARE(void sum_runs(elementwise::Lane lane, void* totals, int64_t count, const col2im::Run* runs,
                                int64_t run_count, bool continued))
// The totals as a row of pixels.
LATHE_ISA_DECLARE(void merge_phases(elementwise::Lane lane, const void* totals, const col2im::Axis& axis, void* row))

}  // namespace lathe::cpu
