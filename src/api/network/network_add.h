// SPDX-License-Identifier: Apache-2.0
// For the files that define the add functions of NetworkDefinition.
#pragma once

#include <array>

#include "api/network/network.h"

namespace lathe::api {

template <class L, class... Args>
L* NetworkDefinition::add(const char* where, std::vector<nv::ITensor*> inputs, Args&&... args) noexcept {
  return guarded(entry(), where, static_cast<L*>(nullptr), [&]() -> Result<L*> {
    for (Result<>& checked : std::array<Result<>, sizeof...(Args)>{check_argument(args)...})
      LATHE_TRY(std::move(checked));
    std::vector<TensorView*> views;
    for (nv::ITensor* input : inputs) {
      LATHE_ASSIGN(TensorView * view, own(input));
      views.push_back(view);
    }
    return keep(std::make_unique<L>(*this, std::move(views), std::forward<Args>(args)...));
  });
}

template <class L>
L* NetworkDefinition::keep(std::unique_ptr<L> layer) {
  layer->create();
  L* made = layer.get();
  layers_.push_back(std::move(layer));
  return made;
}

// One report, and null.
template <class L>
L* NetworkDefinition::refuse(const char* where) noexcept {
  return guarded(entry(), where, static_cast<L*>(nullptr), [&]() -> Result<L*> {
    return fail(ErrorCode::invalid_argument, "an argument is null or a count is not positive");
  });
}

}  // namespace lathe::api
