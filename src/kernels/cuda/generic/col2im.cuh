// SPDX-License-Identifier: Apache-2.0
// Images from columns: a thread per pixel, which sums what the taps of the block add to it.
#pragma once

#include "generic/element.cuh"

// The lists have an entry for each spatial dimension; block may be in device memory.
template <class Block, class Stride, class Dilation, class PadBegin, class PadEnd, class Columns, class Out>
LATHE_DEVICE void col2im(const Block& block, const Stride& stride, const Dilation& dilation, const PadBegin& pad_begin,
                         const PadEnd& pad_end, const Columns& columns, const Out& out) {
  constexpr int kSpatial = Out::kRank - 2;
  for_each_element(out, [&](const auto& c) {
    long extent[kSpatial], positions[kSpatial], taps = 1;
    LATHE_UNROLL
    for (int i = 0; i < kSpatial; ++i) {
      extent[i] = block(i);
      const long room = out.dim(2 + i) + pad_begin(i) + pad_end(i) - (extent[i] - 1) * dilation(i) - 1;
      positions[i] = room / stride(i) + 1;
      taps *= extent[i];
    }
    Wide<typename Columns::Type> sum{};
    for (long tap = 0; tap < taps; ++tap) {
      bool meets = true;
      long position = 0, scale = 1, rest = tap;
      LATHE_UNROLL
      for (int i = kSpatial - 1; i >= 0; --i) {
        const long from = c[2 + i] + pad_begin(i) - rest % extent[i] * dilation(i);
        rest /= extent[i];
        meets &= from >= 0 && from % stride(i) == 0 && from / stride(i) < positions[i];
        position += from / stride(i) * scale;
        scale *= positions[i];
      }
      if (!meets) continue;
      const long at[3] = {c[0], c[1] * taps + tap, position};
      sum += widen(element(columns, at));
    }
    element(out, c) = narrow<typename Out::Type>(sum);
  });
}
