// SPDX-License-Identifier: Apache-2.0
// What a value contains, where that is known before anything runs.
#pragma once

#include <optional>
#include <span>

#include "ir/graph.h"

namespace lathe::ir {

// A constant's content, or that of a computed value of at most 4096 elements which depends on nothing but constants and
// dimensions that are numbers: shape arithmetic, and what is compared with it. Evaluates what makes it; the graph stays
// as it is. nullopt = not found: only running tells, an evaluation failed, or more than 200 ops come before.
std::optional<Tensor> known_content(const Value& value);

// The integers that the shape rule found, as a tensor, with values for the graph's symbols, if any; nullopt when there
// are none or some are not numbers then.
Result<std::optional<Tensor>> inferred_content(const Value& value, std::span<const int64_t> symbols = {});

}  // namespace lathe::ir
