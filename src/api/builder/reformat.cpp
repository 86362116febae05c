// SPDX-License-Identifier: Apache-2.0
#include "api/builder/reformat.h"

namespace lathe::api {
namespace {

// Puts the dimensions of `perm` between those that stay in front.
Ints behind(size_t front, const Ints& perm) {
  Ints whole;
  for (size_t d = 0; d < front; ++d) whole.push_back(static_cast<int64_t>(d));
  for (const int64_t axis : perm) whole.push_back(static_cast<int64_t>(front) + axis);
  return whole;
}

// With c channels (or groups of them) in front of n spatial dimensions: those first, and the reverse.
Ints channels_to_end(size_t n) {
  Ints perm;
  for (size_t d = 1; d <= n; ++d) perm.push_back(static_cast<int64_t>(d));
  perm.push_back(0);
  return perm;
}
Ints channels_to_front(size_t n) {
  Ints perm{static_cast<int64_t>(n)};
  for (size_t d = 0; d < n; ++d) perm.push_back(static_cast<int64_t>(d));
  return perm;
}

}  // namespace

ir::Value* read_memory(ir::GraphBuilder& b, ir::Value* x, const MemoryFormat& format) {
  const MemoryLayout& layout = format.layout();
  const size_t front = format.channel_axis(), n = layout.spatial;
  if (!layout.channels_last) {  // groups, spatial, group -> spatial, channels
    Ints perm = channels_to_end(n);
    perm.push_back(static_cast<int64_t>(n) + 1);
    x = b.transpose(x, behind(front, perm));
    Ints sizes(front + n);  // 0: as they are
    sizes.push_back(format.padded_channels());
    x = b.reshape(x, sizes);
  }
  x = b.transpose(x, behind(front, channels_to_front(n)));
  if (format.padded_channels() != format.channels()) x = b.slice(x, static_cast<int64_t>(front), 0, format.channels());
  return x;
}

ir::Value* write_memory(ir::GraphBuilder& b, ir::Value* x, const MemoryFormat& format) {
  const MemoryLayout& layout = format.layout();
  const size_t front = format.channel_axis(), n = layout.spatial;
  if (format.padded_channels() != format.channels())
    x = b.add(PadAttrs{}, {x, b.ints({0, format.padded_channels() - format.channels()}), nullptr,
                           b.ints({static_cast<int64_t>(front)})});
  x = b.transpose(x, behind(front, channels_to_end(n)));
  if (layout.channels_last) return x;
  Ints sizes(front + n);
  sizes.push_back(format.padded_channels() / layout.vector);
  sizes.push_back(layout.vector);
  x = b.reshape(x, sizes);
  Ints perm = channels_to_front(n);
  perm.push_back(static_cast<int64_t>(n) + 1);
  return b.transpose(x, behind(front, perm));
}

}  // namespace lathe::api
