// SPDX-License-Identifier: Apache-2.0
#include "api/convert.h"

#include <algorithm>
#include <cstring>

#include "base/version.h"
#include "plugin/types.h"

namespace lathe::api {

#if NV_TENSORRT_MAJOR >= 11  // plans of both generations are the same, and name the newer one
static_assert(kInterfaceVersion ==
              std::array<uint8_t, 4>{NV_TENSORRT_MAJOR, NV_TENSORRT_MINOR, NV_TENSORRT_PATCH, NV_TENSORRT_BUILD});
#endif

Result<DType> to_dtype(nv::DataType type) { return plugin::to_dtype(type); }

nv::DataType to_nv(DType type) { return plugin::to_nv(type); }

nv::Dims invalid_dims() { return nv::Dims{-1, {}}; }

bool is_valid(const nv::Dims& dims) {
  if (dims.nbDims < 0 || dims.nbDims > nv::Dims::MAX_DIMS) return false;
  for (int32_t i = 0; i < dims.nbDims; ++i)
    if (dims.d[i] < -1) return false;
  return true;
}

Result<Dims> to_dims(const nv::Dims& dims) {
  if (dims.nbDims < 0 || dims.nbDims > nv::Dims::MAX_DIMS)
    return fail(ErrorCode::invalid_argument, "dims have rank {}; 0 to {} is allowed", dims.nbDims,
                nv::Dims::MAX_DIMS + 0);
  return Dims(dims.d, dims.d + dims.nbDims);
}

nv::Dims to_nv(const Dims& dims) {
  nv::Dims result = invalid_dims();
  if (dims.size() > nv::Dims::MAX_DIMS) return result;
  result.nbDims = static_cast<int32_t>(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) result.d[i] = dims[i];
  return result;
}

nv::Dims to_nv(const Shape& shape) {
  Dims dims;
  for (const Expr& dim : shape) dims.push_back(dim.as_constant().value_or(-1));
  return to_nv(dims);
}

Result<std::string> to_string(const char* text, const char* what, size_t limit) {
  if (!text) return fail(ErrorCode::invalid_argument, "{} is null", what);
  const size_t length = strnlen(text, limit);
  if (length == limit)
    return fail(ErrorCode::invalid_argument, "{} is longer than {} bytes; shorten it", what, limit - 1);
  return std::string(text, length);
}

Result<std::vector<int64_t>> axes_of(uint32_t mask, int rank) {
  std::vector<int64_t> axes;
  for (int i = 0; i < 32; ++i) {
    if (!(mask >> i & 1)) continue;
    if (i >= rank)
      return fail(ErrorCode::invalid_argument, "axes {:#x} name dimension {}, but the tensor has rank {}", mask, i,
                  rank);
    axes.push_back(i);
  }
  return axes;
}

}  // namespace lathe::api
