// SPDX-License-Identifier: Apache-2.0
#include "ops/pack_bytes.h"

#include <algorithm>

#include "base/divide.h"
#include "base/for_each_in_threads.h"

namespace lathe {
namespace {

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
    return result_.extents.size() <= kMostBoxDims ? std::optional(result_) : std::nullopt;
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
    if (box.extents.empty() || box.extents.size() > kMostBoxDims ||
        !lies_within(box.from, box.extents, box.from_strides, source) ||
        !lies_within(box.to, box.extents, box.to_strides, result) || !volume ||
        __builtin_add_overflow(written, *volume, &written) || written > result)
      return fail(ErrorCode::plan_malformed, "weights of {} elements do not fit the order that they are packed in",
                  source);
  }
  return {};
}

Result<> check_packing(const Packing& packing, const Tensor& source) {
  if (is_packed(source.dtype()))
    return fail(ErrorCode::dtype_unsupported, "elements of type {} cannot be packed one by one",
                name_of(source.dtype()));
  return check_packing(packing, source.volume(), checked_volume(packing.dims).value_or(0));
}

bool is_dense(const Packing& packing) {
  int64_t written = 0;
  for (const PackingBox& box : packing.boxes) written += checked_volume(box.extents).value_or(0);
  return written == checked_volume(packing.dims);
}

void pack_bytes(const Packing& packing, size_t size, const std::byte* from, std::byte* to, PackingPart part,
                Written written) {
  for (const PackingBox& box : packing.boxes) pack_box(box, size, from, to, part, written);
}

Written written_for(uint64_t bytes) {
  constexpr uint64_t kMostCached = uint64_t{16} << 20;
  return bytes > kMostCached ? Written::past_caches : Written::to_caches;
}

void pack_all(std::span<const PackingWork> works, int threads, uint64_t others) {
  constexpr uint64_t kPartBytes = uint64_t{4} << 20;  // of less, rows are read in pieces too short to be fetched ahead
  struct Part {
    const PackingWork* work;
    PackingPart part;
  };
  std::vector<Part> parts;
  uint64_t total = others;
  for (const PackingWork& work : works) {
    const uint64_t bytes = work.bytes();
    total += bytes;
    const int64_t count = threads > 1 ? static_cast<int64_t>(ceil_div(bytes, kPartBytes)) : 1;
    for (PackingPart part{0, count}; part.index < part.count; ++part.index) parts.push_back({&work, part});
  }
  const Written written = written_for(total);
  for_each_in_threads(parts.size(), threads, [&](size_t i, size_t) {
    const PackingWork& work = *parts[i].work;
    pack_bytes(*work.packing, work.size, work.from, work.to, parts[i].part, written);
  });
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
