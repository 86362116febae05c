// SPDX-License-Identifier: Apache-2.0
#include "tuning/padded_content.h"

#include "ops/rules.h"

namespace lathe {

Result<Tensor> padded(const Tensor& content, const Dims& begin, float value, const Dims& dims) {
  LATHE_ASSIGN(Tensor result, Tensor::allocate(DType::f32, dims));
  const Dims strides = row_major_strides(content.dims());
  for (int64_t i = 0, n = result.volume(); i < n; ++i) {
    int64_t from = 0, rest = i;
    bool is_inside = true;
    for (size_t d = dims.size(); d-- > 0; rest /= dims[d]) {
      const int64_t at = rest % dims[d] - begin[d];
      is_inside &= at >= 0 && at < content.dims()[d];
      from += at * strides[d];
    }
    result.mutable_as<float>()[i] = is_inside ? static_cast<float>(content.at_double(from)) : value;
  }
  return result;
}

}  // namespace lathe
