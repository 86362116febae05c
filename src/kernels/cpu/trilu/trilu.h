// SPDX-License-Identifier: Apache-2.0
// Kernel `trilu`: the upper or lower triangle of matrices; what is beyond the diagonal is 0.
//   program  none
//   params   TriluParams
//   inputs   0: x of any type and at least two dimensions, any strides; 1: k, the diagonal, one integer; it may be left
//            out, and is 0 then
//   outputs  0: of x's type and shape, any strides
#pragma once

#include "device/params.h"

namespace lathe::cpu {

struct TriluParams {
  bool upper = true;
  static constexpr auto members() { return std::tuple(&TriluParams::upper); }
};

}  // namespace lathe::cpu
