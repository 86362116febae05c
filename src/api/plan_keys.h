// SPDX-License-Identifier: Apache-2.0
// What the builder notes in a plan's metadata for the objects of the public interface.
#pragma once

#include <string_view>

#include "plan/plan.h"

namespace lathe::api {

inline constexpr std::string_view kVerbosityKey = "lathe.profiling_verbosity";
inline constexpr std::string_view kDebugSyncKey = "lathe.debug_sync";           // BuilderFlag::kDEBUG
inline constexpr std::string_view kDebugTensorKey = "lathe.debug_tensor:";      // and its name: markDebug()
inline constexpr std::string_view kDebugUnfusedKey = "lathe.debug_unfused";     // markUnfusedTensorsAsDebugTensors()
inline constexpr std::string_view kFormatKey = "lathe.format:";                 // and a binding's name: MemoryFormat
inline constexpr std::string_view kCostsKey = "lathe.costs";                    // JSON: api/builder/plan_costs.h
inline constexpr std::string_view kLayerMetadataKey = "lathe.layer_metadata:";  // and the layer's name: setMetadata()

// Of a debug tensor: whether it is an output besides, or a binding for the listener alone. Those are the last bindings.
inline constexpr std::string_view kIsOutput = "output", kIsHidden = "hidden";

// Null when there is no such key.
inline const std::string* find_key(const plan::Plan& plan, std::string_view key) {
  for (const auto& [name, value] : plan.metadata)
    if (name == key) return &value;
  return nullptr;
}

// The value for an item of a key that ends in ':'.
inline const std::string* find_key(const plan::Plan& plan, std::string_view key, std::string_view item) {
  for (const auto& [name, value] : plan.metadata)
    if (name.size() == key.size() + item.size() && name.starts_with(key) && name.ends_with(item)) return &value;
  return nullptr;
}

}  // namespace lathe::api
