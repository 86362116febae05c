// SPDX-License-Identifier: Apache-2.0
#include "api/network/layers_dynamic_quantize.h"

#include <algorithm>

#include "api/deprecation.h"
#include "api/network/block_quantization.h"
#include "api/network/network_add.h"
#include "api/network/operand_checks.h"

namespace lathe::api {

Result<nv::Dims> DynamicQuantizeLayer::shape() const {
  if (block_.nbDims >= 0) return block_;
  const int32_t rank = in(0)->rank();
  if (axis_ < 0 || axis_ >= rank || size_ < 1)
    return fail(ErrorCode::invalid_argument,
                "blocks of {} elements along axis {} of {} dimensions; give the axis and a size of at least 1, or a "
                "block shape",
                size_, axis_, rank);
  nv::Dims block{rank, {}};
  std::fill_n(block.d, rank, 1);
  block.d[axis_] = size_;
  return block;
}

Result<std::vector<ir::Value*>> DynamicQuantizeLayer::lower(LayerLowering& lowering) {
  LATHE_TRY(check_floats(in(0)));
  if (in(0)->rank() > nv::Dims::MAX_DIMS) return fail(ErrorCode::shape_mismatch, "x has {} dimensions", in(0)->rank());
  if (in(1)) {
    LATHE_TRY(check_floats(in(1)));
    if (volume(in(1)->shape()) != Expr(1))
      return fail(ErrorCode::shape_mismatch, "the scale of scales is one number, but '{}' is {}", in(1)->name(),
                  to_string(in(1)->shape()));
  }
  LATHE_ASSIGN(const nv::Dims block, shape());
  LATHE_ASSIGN(const DynamicQuantization how, block_quantization(*in(0), block, to_, scale_));
  const DynamicallyQuantized made = dynamic_quantize(lowering, in(0), in(1), how);
  return std::vector{made.levels, made.scales};
}

void DynamicQuantizeLayer::setAxis(int32_t axis) noexcept {
  static constinit Deprecation deprecation("IDynamicQuantizeLayer::setAxis", "setBlockShape()");
  deprecation.tell(network_.reporter());
  set_along(axis_, axis);
}

void DynamicQuantizeLayer::setBlockSize(int32_t size) noexcept {
  static constinit Deprecation deprecation("IDynamicQuantizeLayer::setBlockSize", "setBlockShape()");
  deprecation.tell(network_.reporter());
  set_along(size_, size);
}

nv::IDynamicQuantizeLayer* NetworkDefinition::addDynamicQuantize(nv::ITensor& input, int32_t axis, int32_t blockSize,
                                                                 nv::DataType outputType,
                                                                 nv::DataType scaleType) noexcept {
  static constinit Deprecation deprecation("INetworkDefinition::addDynamicQuantize", "addDynamicQuantizeV2()");
  deprecation.tell(reporter());
  return add<DynamicQuantizeLayer>("INetworkDefinition::addDynamicQuantize", {&input}, axis, blockSize, outputType,
                                   scaleType);
}

nv::IDynamicQuantizeLayer* NetworkDefinition::addDynamicQuantizeV2(nv::ITensor& input, const nv::Dims& blockShape,
                                                                   nv::DataType outputType,
                                                                   nv::DataType scaleType) noexcept {
  return add<DynamicQuantizeLayer>("INetworkDefinition::addDynamicQuantizeV2", {&input}, nv::Dims(blockShape),
                                   outputType, scaleType);
}

}  // namespace lathe::api
