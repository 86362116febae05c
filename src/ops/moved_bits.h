// SPDX-License-Identifier: Apache-2.0
// Ops that elements pass through as they are, whatever they are, as caches of keys and values are read and written.
#pragma once

#include "ops/attributes.h"

namespace lathe {

inline bool moves_bits(const Attributes& attributes) {
  const OpKind kind = attributes.kind();
  if (kind == OpKind::scatter_nd)
    return static_cast<const ScatterNdAttrs&>(attributes).reduction == ScatterReduction::none;
  return kind == OpKind::gather || kind == OpKind::gather_nd || kind == OpKind::tensor_scatter;
}

}  // namespace lathe
