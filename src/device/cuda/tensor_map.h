// SPDX-License-Identifier: Apache-2.0
// A launch's tensor maps, made anew for each run: addresses and sizes may change between them.
#pragma once

#include <optional>
#include <string>

#include "device/cuda/driver.h"
#include "device/kernel.h"
#include "device/launch.h"

namespace lathe::cuda {

// Whether the map can be made at all, whatever the sizes. In words what is wrong.
std::optional<std::string> fault_of(const TensorMap& map, size_t inputs);

// A map of no elements is left empty: nothing is copied by it.
Result<> encode(const Driver& driver, const TensorMap& map, const Operands& operands, CUtensorMap& out);

}  // namespace lathe::cuda
