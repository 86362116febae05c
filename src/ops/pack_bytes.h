// SPDX-License-Identifier: Apache-2.0
// Packings (ops/packing.h) of bytes that are no tensors, and how one follows from another.
#pragma once

#include "ops/pack_box.h"

namespace lathe {

// Fails where a box leaves the `source` elements that are packed or the `result` elements that they are packed in, and
// where boxes write more elements than there are, so that a packing from a file costs what its result does.
Result<> check_packing(const Packing& packing, int64_t source, int64_t result);
// Of all elements of a dense tensor, which are no parts of bytes.
Result<> check_packing(const Packing& packing, const Tensor& source);

// Whether a packing that was checked leaves nothing between the elements that it writes.
bool is_dense(const Packing& packing);

// By a packing that was checked, of elements of `size` bytes. What is written to holds zeros, unless it is dense.
void pack_bytes(const Packing& packing, size_t size, const std::byte* from, std::byte* to, PackingPart part = {},
                Written written = Written::to_caches);

// Bytes to pack, by a packing that was checked, and where they go.
struct PackingWork {
  const Packing* packing;
  size_t size;  // of an element
  const std::byte* from;
  std::byte* to;
  uint64_t bytes() const { return static_cast<uint64_t>(checked_volume(packing->dims).value_or(0)) * size; }
};
// Of so many bytes in all.
Written written_for(uint64_t bytes);
// All of them, on so many threads at most; `others`: bytes that are written as well before any of it is read.
void pack_all(std::span<const PackingWork> works, int threads, uint64_t others = 0);

// What makes `to` of the same weights of what `from` has made of them. nullopt where `from` is no order of all weights
// by one box, or places of `to` that follow each other do not so in `from`.
std::optional<Packing> packing_between(const Packing& from, const Packing& to);

// The order of `count` elements that nobody has packed.
Packing no_packing(int64_t count);

}  // namespace lathe
