// SPDX-License-Identifier: Apache-2.0
// For the files that define the add functions of NetworkDefinition.
#pragma once

#include <array>

#include "api/network/network.h"

namespace lathe::api {

template <class L, class... Args>
L* NetworkDefinition::add(const char* where, std::span<nv::ITensor* const> inputs, Args&&... args) noexcept {
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

// There is room in the list before the layer is made: no layer is made that is not in it.
template <class L, class... Args>
L* NetworkDefinition::add_to(std::vector<L*>& list, const char* where, std::initializer_list<nv::ITensor*> inputs,
                             Args&&... args) noexcept {
  const bool has_room = guarded(entry(), where, [&]() -> Result<> {
    list.reserve(list.size() + 1);
    return {};
  });
  L* const made = has_room ? add<L>(where, inputs, std::forward<Args>(args)...) : nullptr;
  if (made) list.push_back(made);
  return made;
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
