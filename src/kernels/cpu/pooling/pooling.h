// SPDX-License-Identifier: Apache-2.0
// Kernel `pooling`: maximum or average over windows of 1 to 3 spatial dimensions.
//   program  optional epilogue; input 0 is the pooled value, the others are the kernel's inputs 1, 2, ...
//   params   PoolingParams; the result's dims come with the output
//   inputs   0: N C spatial...; the epilogue's operands, broadcast to the output's shape
//   outputs  0: N C spatial...
// All are f32; or u8 or i8, of maxima without an epilogue; or, of averages of a scale, the input is u8 or i8 levels,
// whose channels are contiguous, and the output is f32 or levels that the epilogue makes. Any strides; fast where
// channels are contiguous (channels-last) in both, or rows of the input are. A maximum is NaN where the window holds a
// NaN. A window that lies in the padding alone gives -inf or 0, of integers the least.
#pragma once

#include <cstdint>
#include <vector>

#include "device/params.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/level_sums.h"
#include "kernels/padding_rule.h"

namespace lathe::cpu {

struct PoolingAxis {
  int64_t kernel = 1;  // 0 = the whole extent (global pooling)
  int64_t stride = 1;
  int64_t pad_begin = 0;  // where the padding is given
  int64_t pad_end = 0;    // ...; matters only to the divisor when padding counts
  int64_t dilation = 1;
  static constexpr auto members() {
    return std::tuple(&PoolingAxis::kernel, &PoolingAxis::stride, &PoolingAxis::pad_begin, &PoolingAxis::pad_end,
                      &PoolingAxis::dilation);
  }
};
struct PoolingParams {
  bool maximum = true;  // else the average
  bool count_include_pad = false;
  PaddingRule padding_rule = PaddingRule::given;
  std::vector<PoolingAxis> axes;  // one to three
  ByteScale levels = {};
  static constexpr auto members() {
    using P = PoolingParams;
    return std::tuple(&P::maximum, &P::count_include_pad, &P::padding_rule, &P::axes, &P::levels);
  }
  static constexpr size_t kAddedMembers = 1;
};

// A window of count[0] x count[1] x count[2] pixels; strides in elements.
struct PoolWindow {
  const float* data;
  int64_t count[3];
  int64_t stride[3];
};

// target[c] = maximum or scale * sum over the window of data[... + c], for contiguous channels.
LATHE_ISA_DECLARE(void pool_maximum(const PoolWindow& window, int64_t channels, float* target))
LATHE_ISA_DECLARE(void pool_average(const PoolWindow& window, int64_t channels, float scale, float* target))
// The maximum of bytes, of which `window` has the address.
LATHE_ISA_DECLARE(void pool_maximum_of_bytes(const PoolWindow& window, int64_t channels, bool is_signed,
                                             std::byte* target))

// Windows along a contiguous row, of which output x sees data[x * stride + k * dilation]. Up to kPoolRowSlack floats
// behind the last window are read.
inline constexpr int64_t kPoolRowSlack = 64;
struct PoolRow {
  const float* data;
  int64_t kernel, dilation, stride, outputs;
};
// target[x] = scales[x] * sum over the window, or its maximum where there are no scales.
LATHE_ISA_DECLARE(void pool_along(const PoolRow& row, const float* scales, float* target))

}  // namespace lathe::cpu
