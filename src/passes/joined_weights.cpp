// SPDX-License-Identifier: Apache-2.0
#include "passes/joined_weights.h"

#include <algorithm>
#include <cstring>

#include "base/divide.h"
#include "base/for_each_in_threads.h"
#include "base/for_size.h"
#include "ops/rules.h"

namespace lathe {
namespace {

// Elements along the axis that are moved as runs of bytes: what of a line of the result they are.
struct Columns {
  const std::byte* from;
  size_t line;  // bytes from one line that is read to the next
  int64_t count;
  int64_t first, step;  // in the result's line
};

// Runs one behind the other become runs that are `pitch` bytes apart.
void spread(const std::byte* from, int64_t count, size_t run, std::byte* to, size_t pitch) {
  if (pitch == run) {
    std::memcpy(to, from, static_cast<size_t>(count) * run);
  } else if (run == 1 || run == 2 || run == 4 || run == 8) {
    for_size(run, [&](auto element) {
      for (int64_t i = 0; i < count; ++i, from += sizeof element, to += pitch) std::memcpy(to, from, sizeof element);
    });
  } else {
    for (int64_t i = 0; i < count; ++i, from += run, to += pitch) std::memcpy(to, from, run);
  }
}

// `run`: bytes of an element of the axis and all behind it.
void move(const std::vector<Columns>& parts, int64_t lines, size_t run, Tensor& result, int threads) {
  constexpr size_t kPieceBytes = 1 << 20;
  if (result.volume() == 0) return;
  const size_t line = result.bytes() / static_cast<size_t>(lines);
  const int64_t at_once = std::max<int64_t>(static_cast<int64_t>(kPieceBytes / run), 1);  // elements of the axis
  struct Piece {
    const Columns* part;
    int64_t line, begin;
  };
  std::vector<Piece> pieces;
  for (int64_t i = 0; i < lines; ++i)
    for (const Columns& part : parts)
      for (int64_t begin = 0; begin < part.count; begin += at_once) pieces.push_back({&part, i, begin});
  auto* const to = static_cast<std::byte*>(result.mutable_data());
  for_each_in_threads(pieces.size(), result.bytes() > kPieceBytes ? threads : 1, [&](size_t i, size_t) {
    const auto& [part, row, begin] = pieces[i];
    const size_t place = static_cast<size_t>(row) * line + static_cast<size_t>(part->first + begin * part->step) * run;
    spread(part->from + static_cast<size_t>(row) * part->line + static_cast<size_t>(begin) * run,
           std::min(at_once, part->count - begin), run, to + place, static_cast<size_t>(part->step) * run);
  });
}

const std::byte* bytes_of(const Tensor& tensor) { return static_cast<const std::byte*>(tensor.data()); }

struct Space {
  int64_t lines;
  size_t run;  // bytes of an element of the axis
};
Space space_of(const Tensor& tensor, size_t axis) {
  const AxisSplit split = split_at(tensor.dims(), static_cast<int64_t>(axis));
  return {split.outer, static_cast<size_t>(split.inner) * size_of(tensor.dtype())};
}

Result<Tensor> result_of(const std::vector<Tensor>& parts, size_t axis) {
  Dims dims = parts[0].dims();
  for (size_t i = 1; i < parts.size(); ++i) dims[axis] += parts[i].dims()[axis];
  return Tensor::allocate(parts[0].dtype(), std::move(dims));
}

// By plain evaluation: elements that share bytes.
Result<Tensor> concatenated(const std::vector<Tensor>& parts, size_t axis) {
  ConcatAttrs attrs;
  attrs.axis = static_cast<int64_t>(axis);
  LATHE_ASSIGN(const std::vector<Tensor> results, run_op(attrs, parts, 1));
  return results[0];
}

// [k, count n] as it was [k, count, n] becomes [k, n, count].
Result<Tensor> swapped(const Tensor& whole, size_t axis, int64_t count) {
  Dims apart = whole.dims();
  apart[axis] /= count;
  apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(axis), count);
  TransposeAttrs swap;
  for (size_t i = 0; i < apart.size(); ++i) swap.perm.push_back(static_cast<int64_t>(i));
  std::swap(swap.perm[axis], swap.perm[axis + 1]);
  LATHE_ASSIGN(const std::vector<Tensor> results, run_op(swap, std::vector{whole.reshaped(apart)}, 1));
  return results[0].reshaped(whole.dims());
}

}  // namespace

Result<Tensor> joined(const std::vector<Tensor>& parts, size_t axis, int threads) {
  if (is_packed(parts[0].dtype())) return concatenated(parts, axis);
  LATHE_ASSIGN(Tensor result, result_of(parts, axis));
  const auto [lines, run] = space_of(result, axis);
  std::vector<Columns> columns;
  int64_t first = 0;
  for (const Tensor& part : parts) {
    const int64_t count = part.dims()[axis];
    columns.push_back({bytes_of(part), static_cast<size_t>(count) * run, count, first, 1});
    first += count;
  }
  move(columns, lines, run, result, threads);
  return result;
}

Result<Tensor> joined_in_turns(const std::vector<Tensor>& parts, size_t axis, int threads) {
  constexpr int64_t kHalves = 2;
  const int64_t turns = parts.size() == 1 ? kHalves : static_cast<int64_t>(parts.size());
  if (is_packed(parts[0].dtype())) {
    LATHE_ASSIGN(const Tensor whole, concatenated(parts, axis));
    return swapped(whole, axis, turns);
  }
  LATHE_ASSIGN(Tensor result, result_of(parts, axis));
  const auto [lines, run] = space_of(result, axis);
  const int64_t count = result.dims()[axis] / turns;
  const auto bytes = static_cast<size_t>(count) * run;
  std::vector<Columns> columns;
  for (int64_t i = 0; i < turns; ++i)
    columns.push_back(parts.size() == 1 ? Columns{bytes_of(parts[0]) + static_cast<size_t>(i) * bytes, kHalves * bytes,
                                                  count, i, turns}
                                        : Columns{bytes_of(parts[static_cast<size_t>(i)]), bytes, count, i, turns});
  move(columns, lines, run, result, threads);
  return result;
}

}  // namespace lathe
