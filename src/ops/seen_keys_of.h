// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/seen_keys.h"
#include "ops/attributes.h"

namespace lathe {

inline SeenKeys seen_keys_of(const AttentionAttrs& attrs) { return {attrs.causal, attrs.window}; }

}  // namespace lathe
