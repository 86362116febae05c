// SPDX-License-Identifier: Apache-2.0
#include "build/readers.h"

#include "ops/rules.h"

namespace lathe {
namespace {

// Whether channels stay channels whatever becomes of the pixels: of what lies channels-last, too, that is a view.
bool reshapes_pixels(const ir::Node& node) {
  const Shape &from = node.input(0)->shape(), &to = node.output()->shape();
  return node.has_trait(kView) && from.size() >= 3 && to.size() >= 3 && from[0] == to[0] && from[1] == to[1];
}

size_t& count_of(Readers& readers, const ir::Use& use) {
  const ir::Node& node = *use.node;
  switch (node.kind()) {
    case OpKind::convolution:
    case OpKind::deconvolution:
      return use.index == 0 ? readers.channels_last : readers.row_major;
    case OpKind::matmul:  // matrices with either dimension side by side
      return node.input(use.index)->rank() == 3 ? readers.other : readers.row_major;
    case OpKind::transpose:
      return moves_channels_last(node) ? readers.channels_last : readers.other;
    case OpKind::pooling:
    case OpKind::resize:
    case OpKind::roi_align:
    case OpKind::slice:
    case OpKind::split:
    case OpKind::pad:
    case OpKind::expand:
      return use.index == 0 ? readers.other : readers.row_major;
    default:
      break;
  }
  if (node.has_trait(kPointwise)) return readers.pointwise;
  return node.has_trait(kReduction) && use.index == 0 ? readers.other : readers.row_major;
}

}  // namespace

Readers readers_of(const ir::Value& value) {
  Readers readers;
  for (const ir::Use& use : value.uses()) {
    if (use.index > 0 || !reshapes_pixels(*use.node)) {
      ++count_of(readers, use);
      continue;
    }
    const Readers behind = readers_of(*use.node->output());
    readers.channels_last += behind.channels_last;
    readers.row_major += behind.row_major;
    readers.pointwise += behind.pointwise;
    readers.other += behind.other;
  }
  readers.row_major += value.is_graph_output();
  return readers;
}

bool moves_channels_last(const ir::Node& transpose) {
  const auto rank = static_cast<size_t>(transpose.input(0)->rank());
  const Ints from = permutation_of(transpose.attrs<TransposeAttrs>(), rank);
  for (size_t d = 0; d < rank; ++d)
    if (from[d] != static_cast<int64_t>(d == 0 ? 0 : d + 1 < rank ? d + 1 : 1)) return false;
  return rank >= 3;
}

}  // namespace lathe
