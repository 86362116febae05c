// SPDX-License-Identifier: Apache-2.0
#include "api/network/block_quantization.h"

namespace lathe::api {

Result<DynamicQuantization> block_quantization(const ir::Value& x, const nv::Dims& shape, nv::DataType to,
                                               nv::DataType scale) {
  if (to != nv::DataType::kINT8 && to != nv::DataType::kFP8 && to != nv::DataType::kFP4)
    return fail(ErrorCode::type_mismatch, "it quantises to kINT8, kFP8 or kFP4");
  if (scale != nv::DataType::kFLOAT && scale != nv::DataType::kHALF && scale != nv::DataType::kBF16 &&
      scale != nv::DataType::kFP8 && scale != nv::DataType::kE8M0)
    return fail(ErrorCode::type_mismatch, "scales are kFLOAT, kHALF, kBF16, kFP8 or kE8M0");
  if (shape.nbDims != x.rank())
    return fail(ErrorCode::invalid_argument, "the block shape has {} dimensions, but '{}' is {}", shape.nbDims,
                x.name(), to_string(x.shape()));
  DynamicQuantization how;
  LATHE_ASSIGN(how.to, to_dtype(to));
  LATHE_ASSIGN(how.scale_type, to_dtype(scale));
  for (int32_t d = 0; d < shape.nbDims; ++d) {
    const std::optional<int64_t> extent = x.shape()[static_cast<size_t>(d)].as_constant();
    const int64_t block = shape.d[d];
    if (block < 1 && block != -1)
      return fail(ErrorCode::invalid_argument, "a block has extent {}; give 1 or more, or -1 for the whole extent",
                  block);
    if (block > 1 && (!extent || *extent % block != 0))
      return fail(ErrorCode::shape_mismatch, "blocks of {} do not make up dimension {} of '{}', which is {}", block, d,
                  x.name(), to_string(x.shape()));
    how.blocks.push_back(block == -1 || (extent && *extent == block && block > 1) ? 0 : block);
  }
  return how;
}

}  // namespace lathe::api
