// SPDX-License-Identifier: Apache-2.0
// What networks, layers and tensors of generation 10 have besides.
#include <algorithm>
#include <array>
#include <cmath>

#include "api/deprecation.h"
#include "api/network/layers_rows.h"
#include "api/network/network.h"
#include "api/network/optimization_profile.h"

namespace lathe::api {

namespace {

bool is_strongly_typed(const NetworkDefinition& network) {
  return network.getFlag(nv::NetworkDefinitionCreationFlag::kSTRONGLY_TYPED);
}

// Whether memory of a weakly typed network's float tensor may have the type.
bool is_of_bound_memory(DType type) {
  return type == DType::f32 || type == DType::f16 || type == DType::bf16 || type == DType::i8;
}

}  // namespace

// In a weakly typed network the type of a tensor that layers read or make already is that of its memory: the layers
// keep theirs, and builds convert the tensor (api/builder/bound_types.h).
void TensorView::setType(nv::DataType type) noexcept {
  static constinit Deprecation deprecation("ITensor::setType", "the type that INetworkDefinition::addInput() is given");
  deprecation.tell(network_.reporter());
  guarded(network_.entry(), "ITensor::setType", [&]() -> Result<> {
    LATHE_ASSIGN(const DType dtype, to_dtype(type));
    LATHE_TRY(resolve());
    const bool is_bound = output_ || (isNetworkInput() && !value_->uses().empty());
    bound_type_.reset();
    if (dtype == value_->dtype()) return {};
    if (is_bound && !is_strongly_typed(network_) && is_floating(value_->dtype()) && is_of_bound_memory(dtype)) {
      bound_type_ = dtype;
      return {};
    }
    if (!isNetworkInput())
      return fail(ErrorCode::invalid_argument,
                  "tensor '{}' is computed by a layer, whose result has another type than {}: addCast() converts it; "
                  "floats of a network that is not strongly typed are converted once markOutput() was called",
                  name_, name_of(dtype));
    Shape shape = value_->shape();
    network_.graph().set_input_type(value_, {dtype, std::move(shape)});
    return apply_input_type();
  });
}

bool TensorView::setDynamicRange(float min, float max) noexcept {
  static constinit Deprecation deprecation("ITensor::setDynamicRange", "INetworkDefinition::addQuantize()");
  deprecation.tell(network_.reporter());
  return guarded(network_.entry(), "ITensor::setDynamicRange", [&]() -> Result<> {
    if (!std::isfinite(min) || !std::isfinite(max) || min > max)
      return fail(ErrorCode::invalid_argument, "tensor '{}': [{}, {}] is no range", name_, min, max);
    range_.emplace(min, max);
    return {};
  });
}

namespace {

Result<> check_weak_typing(const NetworkDefinition& network) {
  if (!is_strongly_typed(network)) return {};
  return fail(ErrorCode::config_invalid, "the network is strongly typed; say types with addCast()");
}

}  // namespace

void Layer::setPrecision(nv::DataType dataType) noexcept {
  static constinit Deprecation deprecation("ILayer::setPrecision", "INetworkDefinition::addCast()");
  deprecation.tell(network_.reporter());
  guarded(entry(), "ILayer::setPrecision", [&]() -> Result<> {
    LATHE_TRY(check_weak_typing(network_));
    LATHE_TRY(to_dtype(dataType));
    precision_ = dataType;
    return {};
  });
}

void Layer::setOutputType(int32_t index, nv::DataType dataType) noexcept {
  static constinit Deprecation deprecation("ILayer::setOutputType", "INetworkDefinition::addCast()");
  deprecation.tell(network_.reporter());
  guarded(entry(), "ILayer::setOutputType", [&]() -> Result<> {
    LATHE_TRY(check_weak_typing(network_));
    LATHE_TRY(output_at(index));
    LATHE_TRY(to_dtype(dataType));
    output_types_[index] = dataType;
    return {};
  });
}

void NormalizationLayer::setComputePrecision(nv::DataType type) noexcept {
  guarded(entry(), "INormalizationLayer::setComputePrecision", [&]() -> Result<> {
    if (type != nv::DataType::kFLOAT && type != nv::DataType::kHALF)
      return fail(ErrorCode::invalid_argument, "type {} is neither kFLOAT nor kHALF", static_cast<int>(type));
    if (type != nv::DataType::kFLOAT) LATHE_TRY(network_.consult(SettingId::INormalizationLayer_setComputePrecision));
    compute_precision_ = type;
    return {};
  });
}

nv::IFillLayer* NetworkDefinition::addFill(const nv::Dims& dimensions, nv::FillOperation op) noexcept {
  static constinit Deprecation deprecation("INetworkDefinition::addFill", "addFill() with a type");
  deprecation.tell(reporter());
  return addFillV2(dimensions, op, nv::DataType::kFLOAT);
}

nv::IDequantizeLayer* NetworkDefinition::addDequantize(nv::ITensor& input, nv::ITensor& scale) noexcept {
  static constinit Deprecation deprecation("INetworkDefinition::addDequantize", "addDequantize() with a type");
  deprecation.tell(reporter());
  return addDequantizeV2(input, scale, nv::DataType::kFLOAT);
}

nv::IQuantizeLayer* NetworkDefinition::addQuantize(nv::ITensor& input, nv::ITensor& scale) noexcept {
  static constinit Deprecation deprecation("INetworkDefinition::addQuantize", "addQuantize() with a type");
  deprecation.tell(reporter());
  return addQuantizeV2(input, scale, nv::DataType::kINT8);
}

bool OptimizationProfile::setShapeValues(const char* inputName, nv::OptProfileSelector select, const int32_t* values,
                                         int32_t nbValues) noexcept {
  static constinit Deprecation deprecation("IOptimizationProfile::setShapeValues", "setShapeValuesV2()");
  deprecation.tell(*reporter_);
  constexpr int32_t kMost = nv::Dims::MAX_DIMS * nv::Dims::MAX_DIMS;
  std::array<int64_t, kMost> wide;
  const bool fits = values && nbValues > 0 && nbValues <= kMost;
  if (fits) std::copy(values, values + nbValues, wide.begin());
  return setShapeValuesV2(inputName, select, fits ? wide.data() : nullptr, nbValues);
}

const int32_t* OptimizationProfile::getShapeValues(const char* inputName,
                                                   nv::OptProfileSelector select) const noexcept {
  static constinit Deprecation deprecation("IOptimizationProfile::getShapeValues", "getShapeValuesV2()");
  deprecation.tell(*reporter_);
  const int64_t* values = getShapeValuesV2(inputName, select);
  if (!values) return nullptr;
  return guarded(looking(), "IOptimizationProfile::getShapeValues", static_cast<const int32_t*>(nullptr),
                 [&]() -> Result<const int32_t*> {
                   std::vector<int32_t>& narrow = narrow_[inputName][static_cast<size_t>(select)];
                   narrow.clear();
                   for (int32_t i = 0; i < getNbShapeValues(inputName); ++i) {
                     const auto value = static_cast<int32_t>(values[i]);
                     if (value != values[i])
                       return fail(ErrorCode::profile_invalid,
                                   "input '{}': {} does not fit into 32 bits; call getShapeValuesV2()", inputName,
                                   values[i]);
                     narrow.push_back(value);
                   }
                   return narrow.data();
                 });
}

}  // namespace lathe::api
