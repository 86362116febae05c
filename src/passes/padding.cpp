// SPDX-License-Identifier: Apache-2.0
#include "passes/padding.h"

#include "passes/match.h"

namespace lathe {

std::optional<ConstantPadding> constant_padding_of(const ir::Node* node) {
  if (!node || !node->is(OpKind::pad) || node->attrs<PadAttrs>().mode != PadMode::constant) return std::nullopt;
  const auto rank = static_cast<size_t>(node->output()->rank());
  const std::optional<Ints> pads = ints_of(node->input(1)),
                            axes = axes_of(node->input(3), rank, node->output()->rank());
  const std::optional<double> value = node->input(2) ? scalar_of(node->input(2)) : 0;
  if (!pads || !axes || !value) return std::nullopt;
  ConstantPadding padding{Ints(rank), Ints(rank), *value};
  for (size_t i = 0; i < axes->size(); ++i) {
    const auto axis = static_cast<size_t>((*axes)[i]);
    padding.begin[axis] = (*pads)[i];
    padding.end[axis] = (*pads)[i + axes->size()];
    if (padding.begin[axis] < 0 || padding.end[axis] < 0) return std::nullopt;
  }
  return padding;
}

}  // namespace lathe
