// SPDX-License-Identifier: Apache-2.0
// Which instruction of the fusion program does what an enumerator of a pointwise op says; nothing where none does.
#pragma once

#include <optional>
#include <type_traits>

#include "device/program.h"
#include "ops/attributes.h"

namespace lathe {

template <class Op>
constexpr std::optional<Opcode> opcode_of(Op op) {
#define LATHE_FUSED(Enum, name)           \
  if constexpr (std::is_same_v<Op, Enum>) \
    if (op == Enum::name) return Opcode::name;
#include "base/scalars.def"
  return std::nullopt;
}

}  // namespace lathe
