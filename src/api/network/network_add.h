// SPDX-License-Identifier: Apache-2.0
// For the files that define the add functions of NetworkDefinition.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "api/network/network.h"
#include "base/function_ref.h"

namespace lathe::api {

// What adding does whatever the layer's class is, so that it is compiled once. Null, and one report, on failure.
Layer* add_layer(NetworkDefinition& network, const char* where, std::span<nv::ITensor* const> inputs,
                 FunctionRef<Result<>()> check_arguments,
                 FunctionRef<std::unique_ptr<Layer>(std::vector<TensorView*>)> make) noexcept;

template <class L, class... Args>
L* NetworkDefinition::add(const char* where, std::span<nv::ITensor* const> inputs, Args&&... args) noexcept {
  const auto check_arguments = [&]() -> Result<> {
    for (Result<>& checked : std::array<Result<>, sizeof...(Args)>{check_argument(args)...})
      LATHE_TRY(std::move(checked));
    return {};
  };
  const auto make = [&](std::vector<TensorView*> views) {
    return std::unique_ptr<Layer>(new L(*this, std::move(views), std::forward<Args>(args)...));
  };
  return static_cast<L*>(add_layer(*this, where, inputs, check_arguments, make));
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
