// SPDX-License-Identifier: Apache-2.0
#include "runtime/place_constants.h"

#include <algorithm>
#include <atomic>

#include "base/divide.h"
#include "base/for_each_in_threads.h"

namespace lathe {
namespace {

constexpr int64_t kPieceElements = 32 << 10;  // with what is computed of them, in a second-level cache
constexpr int64_t kPartElements = 4 << 10;    // in a first-level cache

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

// How far apart elements are along an axis; there are none of one.
int64_t span_of(const PackingBox& box, size_t axis) {
  return box.extents[axis] > 1 ? std::abs(box.from_strides[axis]) : -1;
}

// The one whose elements are farthest apart where they come from.
size_t outer_axis(const PackingBox& box) {
  size_t axis = 0;
  for (size_t d = 1; d < box.extents.size(); ++d)
    if (span_of(box, d) > span_of(box, axis)) axis = d;
  return axis;
}

// Calls f(begin, count) for parts of the box along its outer axis that read at most so many elements each, or one step
// of the axis. The box is the part meanwhile: what it reads lies among `count` elements from `begin` on, and box.from
// counts from there. Allocates nothing.
template <class F>
void cut(PackingBox& box, int64_t elements, const F& f) {
  const size_t axis = outer_axis(box);
  const Reach reach = reach_without(box, axis);
  const int64_t step = box.from_strides[axis], stride = std::abs(step), one = reach.high - reach.low + 1;
  const int64_t at_once = stride == 0 ? box.extents[axis] : std::max<int64_t>(1, (elements - one) / stride + 1);
  const int64_t from = box.from, to = box.to, extent = box.extents[axis];
  for (int64_t i = 0; i < extent; i += at_once) {
    box.extents[axis] = std::min(at_once, extent - i);
    box.to = to + i * box.to_strides[axis];
    const int64_t first = from + i * step, last = first + (box.extents[axis] - 1) * step;
    const int64_t begin = std::min(first, last) + reach.low;
    box.from = first - begin;
    f(begin, std::max(first, last) + reach.high + 1 - begin);
  }
  box.from = from, box.to = to, box.extents[axis] = extent;
}

// A piece is cut into parts where its outer axis is that of the result, too. Along another axis, parts would have too
// few of the lines that are transposed together: one channel each, say, of panels of 16.
int64_t part_elements(const PackingBox& box) {
  const int64_t step = std::abs(box.to_strides[outer_axis(box)]);
  for (size_t d = 0; d < box.extents.size(); ++d)
    if (box.extents[d] > 1 && std::abs(box.to_strides[d]) > step) return kPieceElements;
  return kPartElements;
}

bool is_in_order(const PackingBox& box) {
  return box.extents.size() == 1 && box.from == 0 && box.from_strides[0] == 1 && box.to_strides[0] == 1;
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

void ConstantPlacer::add_pieces(const ChannelArithmetic& arithmetic, const PackingBox& box, std::byte* to) {
  PackingBox part = box;
  cut(part, kPieceElements, [&](int64_t begin, int64_t count) {
    Piece piece{&arithmetic, begin, count, part, to, std::nullopt};
    piece.factors = factors_of(piece);
    pieces_.push_back(std::move(piece));
  });
}

Result<ConstantPlacer> ConstantPlacer::create(std::span<const Place> places, int threads) {
  ConstantPlacer placer;
  placer.threads_ = std::max(threads, 1);
  placer.plain_.reserve(places.size());
  for (const auto& [content, to, bytes, first] : places) {
    if (bytes == 0) continue;
    const ChannelArithmetic& elements = content->elements;
    const bool is_computed = !elements.steps().empty();
    // What is copied as it is may have elements of a few bits.
    const size_t size = is_computed || content->packing ? size_of(elements.type()) : 1;
    const Packing* packing = content->packing;
    if (!packing) {
      Packing& plain = placer.plain_.emplace_back(no_packing(static_cast<int64_t>(bytes / size)));
      plain.boxes[0].from = static_cast<int64_t>(first / size);
      packing = &plain;
    }
    if (is_computed)
      placer.add_pieces(elements, *packing, to);
    else
      placer.copies_.push_back({packing, size, elements.source().raw().data(), to});
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

ConstantPlacer::Found ConstantPlacer::run(RangeCheck check) {
  uint64_t copied = 0, computed = 0;
  for (const PackingWork& copy : copies_) copied += copy.bytes();
  for (const Piece& piece : pieces_) computed += static_cast<uint64_t>(piece.count) * size_of(piece.arithmetic->type());
  const Written written = written_for(copied + computed);
  std::atomic<Found> result = Found::none;
  // The function takes memory: it is there before anything is written.
  const std::function<void(size_t, size_t)> place = [&](size_t i, size_t thread) {
    Piece& piece = pieces_[i];
    const ChannelArithmetic& arithmetic = *piece.arithmetic;
    if (piece.factors)
      return pack_box_scaled(piece.box, arithmetic.source().as<float>() + piece.begin,
                             reinterpret_cast<float*>(piece.to), *piece.factors, written);
    const Tensor& source = arithmetic.source();
    const size_t size = size_of(arithmetic.type());
    const auto from_size = static_cast<int64_t>(size_of(source.dtype()));
    const bool stays = written == Written::to_caches && is_in_order(piece.box);
    std::byte* const made =
        stays ? piece.to + piece.box.to * static_cast<int64_t>(size) : scratch_[thread].mutable_as<std::byte>();
    std::optional<ChannelArithmetic::OutOfRange> found;
    const bool is_checked = check == RangeCheck::on && !arithmetic.holds_range();
    const auto compute = [&](int64_t begin, int64_t count) {
      arithmetic.run(piece.begin + begin, count, made, is_checked ? &found : nullptr);
    };
    if (stays)
      compute(0, piece.count);
    else
      cut(piece.box, part_elements(piece.box), [&](int64_t begin, int64_t count) {
        compute(begin, count);
        const std::byte* const next = source.raw().data() + (piece.begin + begin + count) * from_size;
        pack_box(piece.box, size, made, piece.to, {}, written, {next, from_size / static_cast<int64_t>(size)});
      });
    if (found) result = Found::out_of_range;
  };
  pack_all(copies_, threads_, computed);
  for_each_in_threads(pieces_.size(), threads_, place);
  return result;
}

}  // namespace lathe
