// SPDX-License-Identifier: Apache-2.0
#include "api/network/layers_index.h"

#include <algorithm>

#include "api/deprecation.h"
#include "api/network/enums.h"
#include "api/network/network_add.h"

namespace lathe::api {

// Entry b of the leading dimensions is gathered by the indices' entry b, along an axis behind them, which comes first
// for that.
Result<ir::Value*> GatherLayer::gather_batches(LayerLowering& lowering) const {
  ir::Value *x = in(0), *indices = in(1);
  const int64_t rank = x->rank(), axis = axis_ < 0 ? axis_ + rank : axis_;
  if (batch_dims_ < 0 || batch_dims_ > indices->rank() || axis < batch_dims_ || axis >= rank)
    return fail(ErrorCode::invalid_argument,
                "{} element-wise dims do not fit indices of rank {} and axis {} of data of rank {}", batch_dims_,
                indices->rank(), axis_, rank);
  Ints to_front, back;
  for (int64_t d = 0; d < rank; ++d)
    if (d != axis) to_front.push_back(d);
  to_front.insert(to_front.begin() + batch_dims_, axis);
  GatherNdAttrs attributes;
  attributes.batch_dims = batch_dims_;
  ir::Value* y = lowering.add(attributes, {lowering.transpose(x, to_front), lowering.unsqueeze(indices, {-1})});
  const int64_t picked = indices->rank() - batch_dims_, between = axis - batch_dims_;
  for (int64_t d = 0; d < y->rank(); ++d) back.push_back(d);
  std::rotate(back.begin() + batch_dims_, back.begin() + batch_dims_ + picked,
              back.begin() + batch_dims_ + picked + between);
  return lowering.transpose(y, back);
}

Result<std::vector<ir::Value*>> GatherLayer::lower(LayerLowering& lowering) {
  ir::Value* y = nullptr;
  if (mode_ == nv::GatherMode::kND) {
    GatherNdAttrs attributes;
    attributes.batch_dims = batch_dims_;
    y = lowering.add(attributes, {in(0), in(1)});
  } else if (batch_dims_ != 0 && mode_ == nv::GatherMode::kDEFAULT) {
    LATHE_ASSIGN(y, gather_batches(lowering));
  } else if (batch_dims_ != 0) {
    return fail(ErrorCode::invalid_argument, "mode kELEMENT has no element-wise dims, but {} are set", batch_dims_);
  } else if (mode_ == nv::GatherMode::kELEMENT) {
    GatherElementsAttrs attributes;
    attributes.axis = axis_;
    y = lowering.add(attributes, {in(0), in(1)});
  } else {
    y = lowering.gather(in(0), in(1), axis_);
  }
  return std::vector{y};
}

Result<std::vector<ir::Value*>> ScatterLayer::lower(LayerLowering& lowering) {
  ir::Value* y = nullptr;
  if (mode_ == nv::ScatterMode::kND) {
    y = lowering.add(ScatterNdAttrs(), {in(0), in(1), in(2)});
  } else {
    ScatterElementsAttrs attributes;
    attributes.axis = axis_;
    y = lowering.add(attributes, {in(0), in(1), in(2)});
  }
  return std::vector{y};
}

Result<std::vector<ir::Value*>> OneHotLayer::lower(LayerLowering& lowering) {
  OneHotAttrs attributes;
  attributes.axis = axis_;
  return std::vector{lowering.add(attributes, {in(0), in(2), in(1)})};  // indices, depth, values
}

Result<std::vector<ir::Value*>> NonZeroLayer::lower(LayerLowering& lowering) {
  LATHE_ASSIGN(const DType type, to_index_type(indices_));
  return std::vector{lowering.cast(lowering.add(NonzeroAttrs(), {in(0)}), type)};
}

bool NonZeroLayer::setIndicesType(nv::DataType type) noexcept {
  return guarded(entry(), "INonZeroLayer::setIndicesType", [&]() -> Result<> {
    LATHE_TRY(to_index_type(type));
    indices_ = type, touch();
    return {};
  });
}

bool ResizeLayer::set_sampling(const ResizeAttrs& attributes) {
  const bool upper = attributes.coordinates == CoordinateMode::pytorch_half_pixel;
  const auto mode = to_nv(attributes.mode);
  const auto coordinates = to_nv(upper ? CoordinateMode::half_pixel : attributes.coordinates);
  const auto rounding = to_nv(attributes.nearest);
  if (!mode || !coordinates || !rounding) return false;
  mode_ = *mode, coordinates_ = *coordinates, rounding_ = *rounding;
  if (upper) selector_ = nv::ResizeSelector::kUPPER;
  cubic_ = static_cast<float>(attributes.cubic_a), exclude_outside_ = attributes.exclude_outside;
  return true;
}

Result<> ResizeLayer::check_static() const {
  if (!has(1)) return {};
  return in_layer({ErrorCode::invalid_state, "input 1 gives the output dimensions, for good", {}});
}

void ResizeLayer::setOutputDimensions(const nv::Dims& dimensions) noexcept {
  guarded(entry(), "IResizeLayer::setOutputDimensions", [&]() -> Result<> {
    LATHE_TRY(check_static());
    LATHE_TRY(to_dims(dimensions));
    dims_ = dimensions, scales_.clear(), touch();
    return {};
  });
}

void ResizeLayer::setScales(const float* scales, int32_t nbScales) noexcept {
  guarded(entry(), "IResizeLayer::setScales", [&]() -> Result<> {
    LATHE_TRY(check_static());
    if (!scales || nbScales < 1 || nbScales > nv::Dims::MAX_DIMS)
      return fail(ErrorCode::invalid_argument, "{} scales given; 1 to {} are allowed", scales ? nbScales : 0,
                  nv::Dims::MAX_DIMS + 0);
    scales_.assign(scales, scales + nbScales), dims_ = invalid_dims(), touch();
    return {};
  });
}

int32_t ResizeLayer::getScales(int32_t size, float* scales) const noexcept {
  if (has(1) || scales_.empty()) return -1;
  const auto count = static_cast<int32_t>(scales_.size());
  if (size == count && scales) std::copy(scales_.begin(), scales_.end(), scales);
  return count;
}

Result<std::vector<ir::Value*>> ResizeLayer::lower(LayerLowering& lowering) {
  ResizeAttrs attributes;
  LATHE_ASSIGN(attributes.mode, to_ours(mode_));
  LATHE_ASSIGN(attributes.coordinates, to_ours(coordinates_));
  LATHE_ASSIGN(attributes.nearest, to_ours(rounding_));
  if (selector_ == nv::ResizeSelector::kUPPER && coordinates_ == nv::ResizeCoordinateTransformation::kHALF_PIXEL)
    attributes.coordinates = CoordinateMode::pytorch_half_pixel;
  attributes.cubic_a = cubic_;
  attributes.exclude_outside = exclude_outside_;
  ir::Value *scales = nullptr, *sizes = nullptr;
  if (has(1)) {
    sizes = lowering.cast(in(1), DType::i64);
  } else if (dims_.nbDims >= 0) {
    LATHE_ASSIGN(const Dims dims, to_dims(dims_));
    sizes = lowering.ints(dims);
  } else if (!scales_.empty()) {
    scales = lowering.constant(Tensor::from<float>({static_cast<int64_t>(scales_.size())}, scales_));
  } else {
    return fail(ErrorCode::graph_invalid, "neither output dimensions nor scales are given");
  }
  return std::vector{lowering.add(attributes, {in(0), nullptr, scales, sizes})};
}

nv::IGatherLayer* NetworkDefinition::addGather(nv::ITensor& data, nv::ITensor& indices, int32_t axis) noexcept {
  return add<GatherLayer>("INetworkDefinition::addGather", {&data, &indices}, axis, nv::GatherMode::kDEFAULT);
}

nv::IGatherLayer* NetworkDefinition::addGatherV2(nv::ITensor& data, nv::ITensor& indices,
                                                 nv::GatherMode mode) noexcept {
  return add<GatherLayer>("INetworkDefinition::addGatherV2", {&data, &indices}, 0, mode);
}

nv::IScatterLayer* NetworkDefinition::addScatter(nv::ITensor& data, nv::ITensor& indices, nv::ITensor& updates,
                                                 nv::ScatterMode mode) noexcept {
  return add<ScatterLayer>("INetworkDefinition::addScatter", {&data, &indices, &updates}, mode);
}

nv::IOneHotLayer* NetworkDefinition::addOneHot(nv::ITensor& indices, nv::ITensor& values, nv::ITensor& depth,
                                               int32_t axis) noexcept {
  return add<OneHotLayer>("INetworkDefinition::addOneHot", {&indices, &values, &depth}, axis);
}

nv::INonZeroLayer* NetworkDefinition::addNonZero(nv::ITensor& input) noexcept {
  static constinit Deprecation deprecation("INetworkDefinition::addNonZero", "addNonZero() with a type of indices");
  deprecation.tell(reporter());
  return addNonZeroV2(input, nv::DataType::kINT32);
}

nv::INonZeroLayer* NetworkDefinition::addNonZeroV2(nv::ITensor& input, nv::DataType indicesType) noexcept {
  return add<NonZeroLayer>("INetworkDefinition::addNonZero", {&input}, indicesType);
}

nv::IResizeLayer* NetworkDefinition::addResize(nv::ITensor& input) noexcept {
  return add<ResizeLayer>("INetworkDefinition::addResize", {&input});
}

}  // namespace lathe::api
