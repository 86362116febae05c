// SPDX-License-Identifier: Apache-2.0
#include "api/network/optimization_profile.h"

namespace lathe::api {
namespace {

constexpr int32_t kMaxShapeValues = 64;

Result<size_t> index_of(nv::OptProfileSelector select) {
  const auto index = static_cast<size_t>(select);
  if (index > 2) return fail(ErrorCode::invalid_argument, "profile selector {} does not exist", index);
  return index;
}

bool ascending(int64_t a, int64_t b) { return a <= b; }

// min <= opt <= max wherever both are set.
template <class Values, class Compare>
bool ordered(const std::array<std::optional<Values>, 3>& values, Compare&& fits) {
  for (size_t low = 0; low < 3; ++low)
    for (size_t high = low + 1; high < 3; ++high)
      if (values[low] && values[high] && !fits(*values[low], *values[high])) return false;
  return true;
}

bool dims_fit(const nv::Dims& low, const nv::Dims& high) {
  if (low.nbDims != high.nbDims) return false;
  for (int32_t i = 0; i < low.nbDims; ++i)
    if (!ascending(low.d[i], high.d[i])) return false;
  return true;
}

bool values_fit(const std::vector<int64_t>& low, const std::vector<int64_t>& high) {
  if (low.size() != high.size()) return false;
  for (size_t i = 0; i < low.size(); ++i)
    if (!ascending(low[i], high[i])) return false;
  return true;
}

}  // namespace

// Null where nothing was set; fails for a null name.
Result<const InputRange*> OptimizationProfile::find(const char* name) const {
  if (!name) return fail(ErrorCode::invalid_argument, "the input's name is null");
  const auto it = inputs_.find(std::string_view(name));
  return it == inputs_.end() ? nullptr : &it->second;
}

bool OptimizationProfile::setDimensions(const char* inputName, nv::OptProfileSelector select,
                                        const nv::Dims& dims) noexcept {
  return guarded({*reporter_, use_}, "IOptimizationProfile::setDimensions", [&]() -> Result<> {
    LATHE_ASSIGN(std::string name, to_string(inputName, "input name"));
    LATHE_ASSIGN(const size_t index, index_of(select));
    LATHE_ASSIGN(const Dims sizes, to_dims(dims));
    for (int64_t size : sizes)
      if (size < 0)
        return fail(ErrorCode::profile_invalid, "input '{}': size {} is negative; give actual sizes", name, size);
    InputRange changed = inputs_[name];
    changed.dims[index] = dims;
    if (!ordered(changed.dims, dims_fit))
      return fail(ErrorCode::profile_invalid, "input '{}': min <= opt <= max does not hold, or ranks differ", name);
    inputs_[name] = std::move(changed);
    return {};
  });
}

nv::Dims OptimizationProfile::getDimensions(const char* inputName, nv::OptProfileSelector select) const noexcept {
  return guarded(looking(), "IOptimizationProfile::getDimensions", invalid_dims(), [&]() -> Result<nv::Dims> {
    LATHE_ASSIGN(const InputRange* range, find(inputName));
    LATHE_ASSIGN(const size_t index, index_of(select));
    return range ? range->dims[index].value_or(invalid_dims()) : invalid_dims();
  });
}

int32_t OptimizationProfile::getNbShapeValues(const char* inputName) const noexcept {
  return guarded(looking(), "IOptimizationProfile::getNbShapeValues", -1, [&]() -> Result<int32_t> {
    LATHE_ASSIGN(const InputRange* range, find(inputName));
    if (range)
      for (const auto& values : range->values)
        if (values) return static_cast<int32_t>(values->size());
    return -1;
  });
}

bool OptimizationProfile::setExtraMemoryTarget(float target) noexcept {
  return guarded({*reporter_, use_}, "IOptimizationProfile::setExtraMemoryTarget", [&]() -> Result<> {
    if (!(target >= 0 && target <= 1))
      return fail(ErrorCode::profile_invalid, "memory target {} is outside [0, 1]", target);
    if (target != 1)
      LATHE_TRY(notices_.consult(SettingId::IOptimizationProfile_setExtraMemoryTarget, reporter_->log()));
    extra_memory_target_ = target;
    return {};
  });
}

bool OptimizationProfile::isValid() const noexcept {
  return guarded(looking(), "IOptimizationProfile::isValid", false, [&]() -> Result<bool> {
    for (const auto& [name, range] : inputs_) {
      const bool no_dims = !range.dims[0] && !range.dims[1] && !range.dims[2];
      const bool dims_full = range.dims[0] && range.dims[1] && range.dims[2];
      const bool no_values = !range.values[0] && !range.values[1] && !range.values[2];
      const bool values_full = range.values[0] && range.values[1] && range.values[2];
      if (!(no_dims || dims_full) || !(no_values || values_full)) return false;
    }
    return true;
  });
}

bool OptimizationProfile::setShapeValuesV2(const char* inputName, nv::OptProfileSelector select, const int64_t* values,
                                           int32_t nbValues) noexcept {
  return guarded({*reporter_, use_}, "IOptimizationProfile::setShapeValuesV2", [&]() -> Result<> {
    LATHE_ASSIGN(std::string name, to_string(inputName, "input name"));
    LATHE_ASSIGN(const size_t index, index_of(select));
    if (nbValues < 0 || nbValues > kMaxShapeValues || (nbValues > 0 && !values))
      return fail(ErrorCode::profile_invalid, "input '{}': {} values given; 0 to {} are allowed", name, nbValues,
                  kMaxShapeValues);
    InputRange changed = inputs_[name];
    changed.values[index] = std::vector<int64_t>(values, values + nbValues);
    if (!ordered(changed.values, values_fit))
      return fail(ErrorCode::profile_invalid, "input '{}': min <= opt <= max does not hold, or counts differ", name);
    inputs_[name] = std::move(changed);
    return {};
  });
}

const int64_t* OptimizationProfile::getShapeValuesV2(const char* inputName,
                                                     nv::OptProfileSelector select) const noexcept {
  return guarded(looking(), "IOptimizationProfile::getShapeValuesV2", static_cast<const int64_t*>(nullptr),
                 [&]() -> Result<const int64_t*> {
                   LATHE_ASSIGN(const InputRange* range, find(inputName));
                   LATHE_ASSIGN(const size_t index, index_of(select));
                   return range && range->values[index] ? range->values[index]->data() : nullptr;
                 });
}

}  // namespace lathe::api
