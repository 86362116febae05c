// SPDX-License-Identifier: Apache-2.0
// Puts new contents of constants where kernels read them, each element by element where it goes, in one go.
#pragma once

#include "ops/pack_bytes.h"
#include "runtime/derive_constants.h"
#include "runtime/range_check.h"

namespace lathe {

// All that may fail is done when this is made.
class ConstantPlacer {
 public:
  struct Place {
    const ConstantContent* content;
    std::byte* to;       // in its order, zeros between elements
    uint64_t bytes;      // all, or some whole elements of those that stay in their order
    uint64_t first = 0;  // of its bytes
  };
  // What the places refer to must outlive it.
  static Result<ConstantPlacer> create(std::span<const Place> places, int threads);
  enum class Found : uint8_t { none, out_of_range };  // whether a number is that, where it is looked for
  Found run(RangeCheck check = RangeCheck::off);

 private:
  // Elements that are computed and packed together, so that they are in a cache in between.
  struct Piece {
    const ChannelArithmetic* arithmetic;
    int64_t begin, count;  // of the elements
    PackingBox box;        // reads them from `begin` on
    std::byte* to;
    std::optional<ChannelFactors> factors;
  };
  static std::optional<ChannelFactors> factors_of(const Piece& piece);
  void add_pieces(const ChannelArithmetic& arithmetic, const Packing& packing, std::byte* to);
  void add_pieces(const ChannelArithmetic& arithmetic, const PackingBox& box, std::byte* to);

  int threads_ = 1;
  std::vector<Packing> plain_;  // of what stays in its order
  std::vector<PackingWork> copies_;
  std::vector<Piece> pieces_;
  std::vector<Tensor> scratch_;  // by thread
};

}  // namespace lathe
