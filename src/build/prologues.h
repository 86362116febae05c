// SPDX-License-Identifier: Apache-2.0
// Which expressions a kernel may compute as it reads them: those that this saves from memory without doing their work
// again and again.
#pragma once

#include <optional>

#include "build/region.h"

namespace lathe {

// The expression's result, which nothing but `reader` reads, as input `input` of a kernel for it.
std::optional<Region::Prologue> prologue_for(const Region& expression, const ir::Node& reader, size_t input);

}  // namespace lathe
