// SPDX-License-Identifier: Apache-2.0
#include "runtime/place_constants.h"

#include <algorithm>

#include "base/divide.h"
#include "base/for_each_in_threads.h"

namespace lathe {
namespace {

constexpr int64_t kPieceElements = 32 << 10;  // with what is computed of them, in a second-level cache

// Elements from the first to the last that a box reads, but along one axis.
struct Reach {
  int64_t low = 0, high = 0;
};
Reach reach_without(const PackingBox& box, size_t axis) {
  Reach reach;
  for (size_t d = 0; d < box.extents.size(); ++d) {
    const int64_t span = d == axis ? 0 : (box.extents[d] - 1) * box.from_strides[d];
    (span < 0 ? reach.low : reach.high) += span;
  }
  return reach;
}

}  // namespace

void ConstantPlacer::add_pieces(const ChannelArithmetic& arithmetic, const Packing& packing, std::byte* to) {
  for (const PackingBox& box : packing.boxes) add_pieces(arithmetic, box, to);
}

// Those of its first channel and the next, where packing multiplies on the way: then nothing is computed before.
std::optional<ChannelFactors> ConstantPlacer::factors_of(const Piece& piece) {
  std::optional<ChannelFactors> factors = piece.arithmetic->factors();
  if (!factors || piece.begin % factors->each != 0 || !takes_factors(piece.box, factors->each)) return std::nullopt;
  factors->numbers += piece.begin / factors->each;
  return factors;
}

// Cuts the box along the axis whose elements are farthest apart.
void ConstantPlacer::add_pieces(const ChannelArithmetic& arithmetic, const PackingBox& box, std::byte* to) {
  const auto widest = std::ranges::max_element(box.from_strides, {}, [](int64_t stride) { return std::abs(stride); });
  const auto axis = static_cast<size_t>(widest - box.from_strides.begin());
  const Reach reach = reach_without(box, axis);
  const int64_t stride = std::abs(*widest), one = reach.high - reach.low + 1;
  const int64_t at_once = stride == 0 ? box.extents[axis] : std::max<int64_t>(1, (kPieceElements - one) / stride);
  for (int64_t i = 0; i < box.extents[axis]; i += at_once) {
    Piece piece{&arithmetic, 0, 0, box, to, std::nullopt};
    const int64_t count = std::min(at_once, box.extents[axis] - i);
    piece.box.extents[axis] = count;
    piece.box.to += i * box.to_strides[axis];
    const int64_t first = box.from + i * *widest, last = first + (count - 1) * *widest;
    piece.begin = std::min(first, last) + reach.low;
    piece.count = std::max(first, last) + reach.high + 1 - piece.begin;
    piece.box.from = first - piece.begin;
    piece.factors = factors_of(piece);
    pieces_.push_back(std::move(piece));
  }
}

Result<ConstantPlacer> ConstantPlacer::create(std::span<const Place> places, int threads) {
  ConstantPlacer placer;
  placer.threads_ = std::max(threads, 1);
  placer.plain_.reserve(places.size());
  for (const auto& [content, to] : places) {
    const ChannelArithmetic& elements = content->elements;
    const Packing* const packing = content->packing;
    const Tensor& source = elements.source();
    if (source.bytes() == 0) continue;
    if (elements.steps() > 0)
      placer.add_pieces(elements, packing ? *packing : no_packing(source.volume()), to);
    else if (packing)
      placer.copies_.push_back({packing, size_of(source.dtype()), source.raw().data(), to});
    else
      placer.copies_.push_back(
          {&placer.plain_.emplace_back(no_packing(static_cast<int64_t>(source.bytes()))), 1, source.raw().data(), to});
  }
  int64_t most = 0;
  for (const Piece& piece : placer.pieces_)
    if (!piece.factors) most = std::max(most, piece.count * static_cast<int64_t>(size_of(piece.arithmetic->type())));
  const size_t scratches = std::min(static_cast<size_t>(placer.threads_), placer.pieces_.size());
  for (size_t i = 0; i < scratches; ++i) {
    LATHE_ASSIGN(placer.scratch_.emplace_back(), Tensor::allocate(DType::u8, {most}));
  }
  return placer;
}

void ConstantPlacer::run() {
  uint64_t copied = 0, computed = 0;
  for (const PackingWork& copy : copies_) copied += copy.bytes();
  for (const Piece& piece : pieces_) computed += static_cast<uint64_t>(piece.count) * size_of(piece.arithmetic->type());
  pack_all(copies_, threads_, computed);
  const Written written = written_for(copied + computed);
  for_each_in_threads(pieces_.size(), threads_, [&](size_t i, size_t thread) {
    const Piece& piece = pieces_[i];
    const ChannelArithmetic& arithmetic = *piece.arithmetic;
    if (piece.factors)
      return pack_box_scaled(piece.box, arithmetic.source().as<float>() + piece.begin,
                             reinterpret_cast<float*>(piece.to), *piece.factors, written);
    std::byte* const made = static_cast<std::byte*>(scratch_[thread].mutable_data());
    arithmetic.run(piece.begin, piece.count, made);
    pack_box(piece.box, size_of(arithmetic.type()), made, piece.to, {}, written);
  });
}

}  // namespace lathe
