// SPDX-License-Identifier: Apache-2.0
// What tensors attention takes, and where they are among the inputs.
#pragma once

#include <span>

#include "base/result.h"
#include "device/kernel.h"
#include "kernels/cpu/attention/attention.h"

namespace lathe::cpu::attention {

inline constexpr int kQ = 0, kK = 1, kV = 2, kMask = 3;  // behind which the sinks are, and behind these the distances

inline size_t sinks_input(const AttentionParams& params) { return params.masked ? kMask + 1 : kMask; }
inline size_t distances_input(const AttentionParams& params) {
  return sinks_input(params) + (params.has_sinks ? 1 : 0);
}
inline size_t own_inputs(const AttentionParams& params) {
  return distances_input(params) + (params.has_distances ? 1 : 0);
}

Result<> check_tensors(const AttentionParams& params, std::span<const TensorArg> inputs,
                       std::span<const TensorArg> outputs);

}  // namespace lathe::cpu::attention
