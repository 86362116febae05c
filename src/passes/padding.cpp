// SPDX-License-Identifier: Apache-2.0
#include "passes/padding.h"

#include "passes/match.h"

namespace lathe {

std::optional<ConstantPadding> constant_padding_of(const ir::Node* node) {
  if (!node || !node->is(OpKind::pad) || node->attrs<PadAttrs>().mode != PadMode::constant) return std::nullopt;
  const std::optional<Ints> pads = ints_of(node->input(1)), given = node->input(3) ? ints_of(node->input(3)) : Ints();
  const std::optional<double> value = node->input(2) ? scalar_of(node->input(2)) : 0;
  if (!pads || !given || !value) return std::nullopt;
  const int64_t rank = node->output()->rank();
  Ints axes = *given;
  for (int64_t i = 0; !node->input(3) && i < rank; ++i) axes.push_back(i);
  ConstantPadding padding{Ints(static_cast<size_t>(rank)), Ints(static_cast<size_t>(rank)), *value};
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i] < 0 ? axes[i] + rank : axes[i]);
    padding.begin[axis] = (*pads)[i];
    padding.end[axis] = (*pads)[i + axes.size()];
    if (padding.begin[axis] < 0 || padding.end[axis] < 0) return std::nullopt;
  }
  return padding;
}

}  // namespace lathe
