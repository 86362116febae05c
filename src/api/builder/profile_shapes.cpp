// SPDX-License-Identifier: Apache-2.0
#include "api/builder/profile_shapes.h"

#include "api/convert.h"

namespace lathe::api {

Result<ProfileShapes> shapes_of(const OptimizationProfile& profile) {
  ProfileShapes shapes;
  for (const auto& [name, range] : profile.inputs()) {
    ProfileShapes::Input input;
    Dims* wanted[] = {&input.min, &input.opt, &input.max};
    input.is_values = range.values[0].has_value();
    for (size_t i = 0; i < 3; ++i) {
      if (input.is_values) {
        *wanted[i] = range.values[i].value_or(Dims());
      } else if (range.dims[i]) {
        LATHE_ASSIGN(*wanted[i], to_dims(*range.dims[i]));
      }
    }
    shapes.inputs.emplace(name, std::move(input));
  }
  return shapes;
}

}  // namespace lathe::api
