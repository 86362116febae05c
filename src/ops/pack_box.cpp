// SPDX-License-Identifier: Apache-2.0
#include "ops/pack_box.h"

#include <optional>

#include "base/for_size.h"
#include "base/insertion_sort.h"
#include "ops/line_transposer.h"

namespace lathe {
namespace {

using namespace packing;

void write_run(std::byte* to, const std::byte* from, int64_t bytes, Written written) {
  constexpr int64_t kLong = 4096;
  if (kWritesPast && written == Written::past_caches && is_multiple(to, bytes >= kLong ? 0 : bytes, kPiece)) {
    for (; bytes >= kCacheLine; bytes -= kCacheLine, to += kCacheLine, from += kCacheLine) write_line_past(to, from);
    for (; bytes >= kPiece; bytes -= kPiece, to += kPiece, from += kPiece) write_piece_past(to, from);
  }
  std::memcpy(to, from, static_cast<size_t>(bytes));
}

// Calls `f` with the addresses of each element of the axes.
template <class F>
void for_each_element(std::span<const BoxAxis> axes, const std::byte* from, std::byte* to, const F& f) {
  if (axes.empty()) return f(from, to);
  for (int64_t i = 0; i < axes[0].extent; ++i)
    for_each_element(axes.subspan(1), from + i * axes[0].from, to + i * axes[0].to, f);
}

// Runs of bytes that stay together. The two innermost loops go along the axis whose runs are nearest to each other
// where they come from and, a few at a time, along the one whose runs are so where they go.
void copy_runs(Axes axes, int64_t run, const std::byte* from, std::byte* to, Written written) {
  constexpr int64_t kAtATime = 16;
  BoxAxis writes, reads;
  if (axes.size() > 0) writes = axes.take(axes.size() - 1);
  const auto nearest =
      std::ranges::min_element(axes.all(), {}, [](const BoxAxis& axis) { return std::abs(axis.from); });
  if (nearest != axes.all().end() && std::abs(nearest->from) < std::abs(writes.from))
    reads = axes.take(static_cast<size_t>(nearest - axes.all().begin()));
  for_each_element(axes.all(), from, to, [&](const std::byte* source, std::byte* result) {
    for (int64_t w = 0; w < writes.extent; w += kAtATime)
      for (int64_t r = 0; r < reads.extent; ++r)
        for (int64_t i = w; i < std::min(w + kAtATime, writes.extent); ++i)
          write_run(result + r * reads.to + i * writes.to, source + r * reads.from + i * writes.from, run, written);
  });
}

// In the order of the result, without those of one element. Axes are joined where one goes on as the other does.
Axes axes_of(const PackingBox& box, int64_t size) {
  Axes axes;
  for (size_t d = 0; d < box.extents.size(); ++d)
    if (box.extents[d] > 1) axes.add({box.extents[d], box.from_strides[d] * size, box.to_strides[d] * size});
  insertion_sort(axes.all(), [](const BoxAxis& a, const BoxAxis& b) { return std::abs(a.to) > std::abs(b.to); });
  for (size_t i = axes.size(); i-- > 1;) {
    const BoxAxis inner = axes.all()[i];
    BoxAxis& outer = axes.all()[i - 1];
    if (outer.from != inner.extent * inner.from || outer.to != inner.extent * inner.to) continue;
    outer = {outer.extent * inner.extent, inner.from, inner.to};
    axes.take(i);
  }
  if (axes.size() == 0) axes.add({});
  return axes;
}

// The axis along which neighbours are written that were none; none = the runs of that many bytes stay together.
struct Lines {
  std::optional<BoxAxis> writes;
  int64_t run = 0;

  static Lines take_from(Axes& axes, int64_t size) {
    const size_t found = axes.find(&BoxAxis::to, size);
    if (found == axes.size()) return {std::nullopt, size};
    const BoxAxis axis = axes.take(found);
    if (axis.from == size) return {std::nullopt, axis.extent * size};
    return {axis, 0};
  }
};

// Calls change_at() with where the first of some lines is.
template <class T, class ChangeAt>
void transpose_lines(Axes axes, const BoxAxis& writes, const std::byte* from, std::byte* to, Written written,
                     ReadNext next, const ChangeAt& change_at) {
  const Neighbours neighbours = Neighbours::take_from(axes, sizeof(T));
  for (const BoxAxis& axis : axes.all())
    if (axis.to % kCacheLine != 0) written = Written::to_caches;
  const LineTransposer<T, decltype(change_at(from))> transposer(writes, neighbours, from, to, written, next);
  for_each_element(axes.all(), from, to, [&](const std::byte* source, std::byte* result) {
    transposer.run(source, result, change_at(source));
  });
}

// Two lines whose elements alternate: pairs of rows, as matrix units have 16-bit floats.
template <class T>
void alternate(const std::byte* first, const std::byte* second, int64_t count, std::byte* to, Written written) {
  using Line = TileLine<T>;
  constexpr int64_t kSize = sizeof(T), kSide = kTileSide<T>;
  const bool writes_past = written == Written::past_caches && is_multiple(to, 2 * count * kSize, kCacheLine);
  int64_t i = 0;
  for (; i + kSide <= count; i += kSide) {
    typename Line::Vec lines[2];
    std::memcpy(&lines[0], first + i * kSize, sizeof lines[0]);
    std::memcpy(&lines[1], second + i * kSize, sizeof lines[1]);
    const typename Line::Vec pairs[2] = {Line::low_halves(lines[0], lines[1]), Line::high_halves(lines[0], lines[1])};
    if (writes_past)
      for (int k = 0; k < 2; ++k)
        write_piece_past(to + 2 * i * kSize + k * kPiece, reinterpret_cast<const std::byte*>(&pairs[k]));
    else
      std::memcpy(to + 2 * i * kSize, pairs, sizeof pairs);
  }
  for (; i < count; ++i) {
    std::memcpy(to + 2 * i * kSize, first + i * kSize, kSize);
    std::memcpy(to + (2 * i + 1) * kSize, second + i * kSize, kSize);
  }
}

template <class T>
void copy_axes(Axes axes, const std::byte* from, std::byte* to, Written written, ReadNext next) {
  constexpr int64_t kSize = sizeof(T);
  const Lines lines = Lines::take_from(axes, kSize);
  if (!lines.writes) {
    if (lines.run == kSize || (lines.run != 2 && lines.run != 4 && lines.run != 8))
      return copy_runs(axes, lines.run, from, to, written);
    // Short runs are elements themselves.
    return for_size(static_cast<size_t>(lines.run),
                    [&](auto run) { copy_axes<decltype(run)>(axes, from, to, written, next); });
  }
  const size_t inner = axes.find(&BoxAxis::from, kSize);
  if (lines.writes->extent == 2 && inner < axes.size() && axes.all()[inner].to == 2 * kSize) {
    const int64_t count = axes.take(inner).extent;
    return for_each_element(axes.all(), from, to, [&](const std::byte* source, std::byte* result) {
      alternate<T>(source, source + lines.writes->from, count, result, written);
    });
  }
  transpose_lines<T>(axes, *lines.writes, from, to, written, next, [](const std::byte*) { return Unchanged<T>(); });
}

void finish(Written written) {
#ifdef __SSE2__
  if (written == Written::past_caches) _mm_sfence();
#endif
}

}  // namespace

void pack_box(const PackingBox& box, size_t size, const std::byte* from, std::byte* to, PackingPart part,
              Written written, ReadNext next) {
  const auto bytes = static_cast<int64_t>(size);
  Axes axes = axes_of(box, bytes);
  BoxAxis& outer = axes.all()[0];
  const int64_t begin = outer.extent * part.index / part.count, end = outer.extent * (part.index + 1) / part.count;
  if (begin == end) return;
  from += box.from * bytes + begin * outer.from;
  to += box.to * bytes + begin * outer.to;
  outer.extent = end - begin;
  for_size(size, [&](auto element) { copy_axes<decltype(element)>(axes, from, to, written, next); });
  finish(written);
}

bool takes_factors(const PackingBox& box, int64_t each) {
  Axes axes = axes_of(box, sizeof(float));
  const int64_t bytes = each * static_cast<int64_t>(sizeof(float));
  int64_t within = box.from % each * static_cast<int64_t>(sizeof(float));
  for (const BoxAxis& axis : axes.all()) {
    if (axis.from < 0) return false;
    if (axis.from % bytes != 0) within += (axis.extent - 1) * axis.from;
  }
  const Lines lines = Lines::take_from(axes, sizeof(float));
  return within < bytes && lines.writes && lines.writes->from == bytes;
}

void pack_box_scaled(const PackingBox& box, const float* from, float* to, const ChannelFactors& factors,
                     Written written) {
  const auto* const source = reinterpret_cast<const std::byte*>(from);
  Axes axes = axes_of(box, sizeof(float));
  const Lines lines = Lines::take_from(axes, sizeof(float));
  const int64_t bytes = factors.each * static_cast<int64_t>(sizeof(float));
  transpose_lines<uint32_t>(
      axes, *lines.writes, source + box.from * static_cast<int64_t>(sizeof(float)),
      reinterpret_cast<std::byte*>(to + box.to), written, ReadNext{}, [&](const std::byte* first) {
        return Scaled{factors.numbers + (first - source) / bytes, scaled_transposer(cpu::isa_level())};
      });
  finish(written);
}

}  // namespace lathe
