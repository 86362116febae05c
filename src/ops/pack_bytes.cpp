// SPDX-License-Identifier: Apache-2.0
#include "ops/pack_bytes.h"

#include <algorithm>
#include <cstring>

namespace lathe {
namespace {

constexpr size_t kMostDims = 8;  // of a box in a file

// The first and last element that a box touches; nullopt on overflow.
std::optional<std::pair<int64_t, int64_t>> reach(int64_t start, const Dims& extents, const Dims& strides) {
  int64_t low = start, high = start;
  for (size_t d = 0; d < extents.size(); ++d) {
    int64_t span = 0;
    if (__builtin_mul_overflow(extents[d] - 1, strides[d], &span)) return std::nullopt;
    if (__builtin_add_overflow(span < 0 ? low : high, span, span < 0 ? &low : &high)) return std::nullopt;
  }
  return std::pair(low, high);
}

bool lies_within(int64_t start, const Dims& extents, const Dims& strides, int64_t volume) {
  const auto range = reach(start, extents, strides);
  return range && range->first >= 0 && range->second < volume;
}

struct Axis {
  int64_t extent = 1, from = 0, to = 0;  // bytes from one element to the next
};

template <size_t kSize>
void copy_line(const std::byte* from, std::byte* to, const Axis& axis) {
  if (axis.from == int64_t{kSize} && axis.to == int64_t{kSize})
    return void(std::memcpy(to, from, static_cast<size_t>(axis.extent) * kSize));
  for (int64_t i = 0; i < axis.extent; ++i, from += axis.from, to += axis.to) std::memcpy(to, from, kSize);
}

// Four by four elements of 4 bytes, which lie in lines on either side.
void transpose_four(const std::byte* from, int64_t from_line, std::byte* to, int64_t to_line) {
  using Line [[gnu::vector_size(16)]] = uint32_t;
  Line a, b, c, d;
  std::memcpy(&a, from, sizeof a);
  std::memcpy(&b, from + from_line, sizeof b);
  std::memcpy(&c, from + 2 * from_line, sizeof c);
  std::memcpy(&d, from + 3 * from_line, sizeof d);
  const Line ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Line cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const Line lines[] = {
      __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5), __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
      __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5), __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
  for (int i = 0; i < 4; ++i) std::memcpy(to + i * to_line, &lines[i], sizeof lines[i]);
}

// Along `reads` elements are neighbours where they come from, along `writes` where they go: square tiles of them use
// each line of a cache on either side as a whole before it is gone.
template <size_t kSize>
void copy_tiles(const std::byte* from, std::byte* to, const Axis& reads, const Axis& writes) {
  constexpr int64_t kTile = 64 / kSize;
  const bool is_transposed = kSize == 4 && reads.from == 4 && writes.to == 4;
  for (int64_t r = 0; r < reads.extent; r += kTile)
    for (int64_t w = 0; w < writes.extent; w += kTile) {
      const int64_t rows = std::min(kTile, reads.extent - r), columns = std::min(kTile, writes.extent - w);
      const std::byte* const source = from + r * reads.from + w * writes.from;
      std::byte* const result = to + r * reads.to + w * writes.to;
      const bool is_whole = is_transposed && rows == kTile && columns % 4 == 0;
      for (int64_t i = 0; is_whole && i < columns; i += 4)
        for (int64_t j = 0; j < rows; j += 4)
          transpose_four(source + i * writes.from + j * 4, writes.from, result + i * 4 + j * reads.to, reads.to);
      for (int64_t i = 0; !is_whole && i < columns; ++i)
        for (int64_t j = 0; j < rows; ++j)
          std::memcpy(result + i * writes.to + j * reads.to, source + i * writes.from + j * reads.from, kSize);
    }
}

template <size_t kSize>
void copy_axes(const std::byte* from, std::byte* to, std::span<const Axis> axes) {
  if (axes.size() == 1) return copy_line<kSize>(from, to, axes[0]);
  if (axes.size() == 2 && axes[1].from != int64_t{kSize}) return copy_tiles<kSize>(from, to, axes[0], axes[1]);
  for (int64_t i = 0; i < axes[0].extent; ++i)
    copy_axes<kSize>(from + i * axes[0].from, to + i * axes[0].to, axes.subspan(1));
}

// From outside to inside: in the order of the result, but for the axis along which elements are read one behind the
// other, which comes before the innermost one.
std::vector<Axis> order_axes(const PackingBox& box, int64_t size) {
  std::vector<Axis> axes;
  for (size_t d = 0; d < box.extents.size(); ++d)
    if (box.extents[d] > 1) axes.push_back({box.extents[d], box.from_strides[d] * size, box.to_strides[d] * size});
  if (axes.empty()) return {Axis()};
  std::ranges::stable_sort(axes, [](const Axis& a, const Axis& b) { return std::abs(a.to) > std::abs(b.to); });
  const auto reads = std::ranges::find(axes, size, &Axis::from);
  if (reads < axes.end() - 1) std::rotate(reads, reads + 1, axes.end() - 1);
  return axes;
}

template <size_t kSize>
void copy_box(const PackingBox& box, const std::byte* from, std::byte* to, PackingPart part) {
  std::vector<Axis> axes = order_axes(box, int64_t{kSize});
  Axis& outer = axes[0];
  const int64_t begin = outer.extent * part.index / part.count, end = outer.extent * (part.index + 1) / part.count;
  if (begin == end) return;
  from += box.from * int64_t{kSize} + begin * outer.from;
  to += box.to * int64_t{kSize} + begin * outer.to;
  outer.extent = end - begin;
  copy_axes<kSize>(from, to, axes);
}

// One of the numbers that make up the place of an element of weights, from the largest stride on, and how far apart
// neighbours along it are where they were packed.
struct Digit {
  int64_t stride, extent, to;
};

// Empty unless each place has its digits.
std::vector<Digit> digits_of(const Packing& packing) {
  if (packing.boxes.size() != 1 || packing.boxes[0].from != 0) return {};
  const PackingBox& box = packing.boxes[0];
  std::vector<Digit> digits;
  for (size_t d = 0; d < box.extents.size(); ++d)
    if (box.extents[d] > 1) digits.push_back({box.from_strides[d], box.extents[d], box.to_strides[d]});
  if (digits.empty()) digits.push_back({1, 1, 0});
  std::ranges::sort(digits, std::greater(), &Digit::stride);
  int64_t stride = 1;
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit)
    if (digit->stride != stride || __builtin_mul_overflow(stride, digit->extent, &stride)) return {};
  return digits;
}

// Reads a box's elements from where another packing has them.
class BoxReader {
 public:
  explicit BoxReader(std::span<const Digit> digits) : digits_(digits), last_(digits.size()) {}

  std::optional<PackingBox> read(const PackingBox& box, int64_t start) {
    if (box.from < 0) return std::nullopt;
    result_ = {start, box.to, {}, {}, {}};
    int64_t left = box.from;
    for (size_t d = 0; d < digits_.size(); ++d) {
      last_[d] = left / digits_[d].stride;
      left %= digits_[d].stride;
      if (!add(last_[d], digits_[d].to, result_.from)) return std::nullopt;
    }
    for (size_t d = 0; d < box.extents.size(); ++d)
      if (!read(box.extents[d], box.from_strides[d], box.to_strides[d])) return std::nullopt;
    for (size_t d = 0; d < digits_.size(); ++d)
      if (last_[d] >= digits_[d].extent) return std::nullopt;  // it is carried into the digit before
    if (result_.extents.empty()) result_.extents = result_.from_strides = result_.to_strides = {1};
    return result_.extents.size() <= kMostDims ? std::optional(result_) : std::nullopt;
  }

 private:
  static bool add(int64_t count, int64_t each, int64_t& sum) {
    int64_t product = 0;
    return !__builtin_mul_overflow(count, each, &product) && !__builtin_add_overflow(sum, product, &sum);
  }

  // An axis changes one digit, or is split into axes that do.
  bool read(int64_t extent, int64_t from, int64_t to) {
    if (extent == 1) return true;
    size_t d = 0;
    while (d < digits_.size() && digits_[d].stride > from) ++d;
    if (from <= 0 || d == digits_.size() || from % digits_[d].stride != 0) return false;
    const Digit& digit = digits_[d];
    const int64_t step = from / digit.stride;
    if (step >= digit.extent) return false;
    int64_t inner = extent, next = 0;
    if ((extent - 1) > (digit.extent - 1) / step) {
      inner = digit.extent / step;
      if (digit.extent % step != 0 || extent % inner != 0 || __builtin_mul_overflow(to, inner, &next) ||
          !read(extent / inner, from * inner, next))
        return false;
    }
    int64_t stride = 0;
    if (!add(step, digit.to, stride) || !add(step, inner - 1, last_[d])) return false;
    if (inner == 1) return true;
    result_.extents.push_back(inner);
    result_.from_strides.push_back(stride);
    result_.to_strides.push_back(to);
    return true;
  }

  std::span<const Digit> digits_;
  std::vector<int64_t> last_;  // by digit: the largest that the box has
  PackingBox result_;
};

}  // namespace

Result<> check_packing(const Packing& packing, int64_t source, int64_t result) {
  int64_t written = 0;
  for (const PackingBox& box : packing.boxes) {
    const std::optional<int64_t> volume = checked_volume(box.extents);
    if (box.extents.empty() || !lies_within(box.from, box.extents, box.from_strides, source) ||
        !lies_within(box.to, box.extents, box.to_strides, result) || !volume ||
        __builtin_add_overflow(written, *volume, &written) || written > result)
      return fail(ErrorCode::plan_malformed, "weights of {} elements do not fit the order that they are packed in",
                  source);
  }
  return {};
}

void pack_bytes(const Packing& packing, size_t size, const std::byte* from, std::byte* to, PackingPart part) {
  const auto copy = size == 8 ? copy_box<8> : size == 4 ? copy_box<4> : size == 2 ? copy_box<2> : copy_box<1>;
  for (const PackingBox& box : packing.boxes) copy(box, from, to, part);
}

std::optional<Packing> packing_between(const Packing& from, const Packing& to) {
  const std::vector<Digit> digits = digits_of(from);
  if (digits.empty()) return std::nullopt;
  Packing result{to.dims, {}};
  for (const PackingBox& box : to.boxes) {
    std::optional<PackingBox> read = BoxReader(digits).read(box, from.boxes[0].to);
    if (!read) return std::nullopt;
    result.boxes.push_back(*std::move(read));
  }
  return result;
}

Packing no_packing(int64_t count) { return {{count}, {{0, 0, {count}, {1}, {1}}}}; }

}  // namespace lathe
