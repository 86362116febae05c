// SPDX-License-Identifier: Apache-2.0
// A tensor as a kernel gets it: memory and the way to walk it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace lathe {

inline constexpr int kMaxRank = 8;

// dims are the logical ones (N C H W for images, whatever the layout); strides are in elements and carry the layout:
// channels-last has strides {H*W*P, 1, W*P, P} with pixel pitch P >= C. A stride of 0 broadcasts.
struct TensorArg {
  void* data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;
  int64_t dims[kMaxRank] = {};
  int64_t strides[kMaxRank] = {};

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  int64_t volume() const {
    int64_t product = 1;
    for (int i = 0; i < rank; ++i) product *= dims[i];
    return product;
  }
};

}  // namespace lathe
