// SPDX-License-Identifier: Apache-2.0
#include "api/network/layer_lowering.h"

#include <algorithm>

namespace lathe::api {
namespace {

Result<Tensor> tensor_of(const nv::Weights& weights, Dims dims, std::shared_ptr<const void> owner) {
  LATHE_ASSIGN(const DType dtype, to_dtype(weights.type));
  const std::optional<int64_t> volume = checked_volume(dims);
  if (!volume || *volume != weights.count)
    return fail(ErrorCode::invalid_argument, "weights hold {} values, but {} are needed for dims {}", weights.count,
                volume.value_or(-1), lathe::to_string(to_shape(dims)));
  if (weights.count == 0) return Tensor::allocate(dtype, std::move(dims));
  return Tensor::view(dtype, std::move(dims), weights.values, std::move(owner)).with_clear_end();
}

}  // namespace

Result<DType> to_index_type(nv::DataType type) {
  if (type == nv::DataType::kINT32 || type == nv::DataType::kINT64) return to_dtype(type);
  return fail(ErrorCode::invalid_argument, "indices must be kINT32 or kINT64, not type {}", static_cast<int>(type));
}

Result<> check_dims(const nv::Dims& dims) {
  if (dims.nbDims >= -1 && dims.nbDims <= nv::Dims::MAX_DIMS) return {};
  return fail(ErrorCode::invalid_argument, "dims have rank {}; 0 to {} is allowed", dims.nbDims,
              nv::Dims::MAX_DIMS + 0);
}

Result<> check_weights(const nv::Weights& weights) {
  LATHE_TRY(to_dtype(weights.type));
  if (weights.count < 0) return fail(ErrorCode::invalid_argument, "weights hold {} values", weights.count);
  if (weights.count == 0 || weights.values) return {};
  return fail(ErrorCode::invalid_argument, "weights hold {} values, but their pointer is null", weights.count);
}

ir::Value* LayerLowering::weights(const nv::Weights& weights, Dims dims, std::shared_ptr<const void> owner) {
  return constant(tensor_of(weights, std::move(dims), std::move(owner)));
}

bool LayerLowering::made(const ir::Value* value) const {
  return std::find(added_.begin(), added_.end(), value->producer()) != added_.end();
}

void LayerLowering::undo() {
  while (!added_.empty()) {
    graph_.erase(added_.back());
    added_.pop_back();
  }
}

}  // namespace lathe::api
