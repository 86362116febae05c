// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/byte_scale_tactic.h"

namespace lathe::cpu {

std::optional<ByteScale> byte_scale_of(const Operand& input) {
  const Program& program = input.program;
  const size_t length = program.code.size();
  if (!is_byte_integer(input.dtype) || program.num_inputs != 1 || length < 1 || length > 2 ||
      program.outputs[0] != length)
    return std::nullopt;
  for (size_t i = 0; i < length; ++i)
    if (program.code[i].op != Opcode::affine || program.code[i].operands[0] != i) return std::nullopt;
  const auto &first = program.code.front().immediates, &last = program.code.back().immediates;
  if (last[1] != 0 || (length == 2 && first[0] != 1)) return std::nullopt;
  const ByteScale levels{length == 2 ? -first[1] : 0, last[0]};
  return levels.is_given() ? std::optional(levels) : std::nullopt;
}

}  // namespace lathe::cpu
