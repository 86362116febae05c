// SPDX-License-Identifier: Apache-2.0
#include "plan/derived_weights.h"

#include <algorithm>

#include "base/divide.h"
#include "ops/pack_bytes.h"
#include "plan/limits.h"
#include "plan/words.h"

namespace lathe::plan {
namespace {

constexpr size_t kWords = 5;  // of an entry

template <class... Args>
tl::unexpected<Error> malformed(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::plan_malformed, "the plan's derived weights are damaged: {}",
              fmt::format(format, std::forward<Args>(args)...));
}

Result<> check(const DerivedPiece& piece, size_t number, uint64_t weights) {
  const auto& [place, source, element, packing] = piece;
  if (source.offset > weights || source.bytes > weights - source.offset)
    return malformed("number {} is made of weights that are not there", number);
  if (!is_element(element)) return malformed("number {} has elements of {} bytes", number, element);
  const std::optional<int64_t> elements = checked_volume(packing.dims);
  if (!elements || place.bytes == 0 || place.bytes % element != 0 || source.bytes % element != 0 ||
      static_cast<uint64_t>(*elements) != place.bytes / element)
    return malformed("number {} has {} bytes, and is made of {}", number, place.bytes, source.bytes);
  if (place.bytes / kMostDerived > source.bytes)
    return malformed("number {} has {} bytes, more than {} times those that it is made of", number, place.bytes,
                     kMostDerived);
  Result<> fits = check_packing(packing, static_cast<int64_t>(source.bytes / element), *elements);
  return fits ? Result<>() : malformed("number {}: {}", number, fits.error().message);
}

}  // namespace

bool overlap(std::vector<WeightsWindow> pieces) {
  std::ranges::sort(pieces, {}, &WeightsWindow::offset);
  return std::ranges::adjacent_find(pieces, [](const WeightsWindow& a, const WeightsWindow& b) {
           return b.offset - a.offset < a.bytes;
         }) != pieces.end();
}

bool is_element(size_t bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8; }

bool place_derived(std::span<DerivedPiece> pieces, uint64_t weights) {
  uint64_t end = weights;
  for (DerivedPiece& piece : pieces) {
    piece.place.offset = round_up(end, uint64_t{kConstantAlignment});
    if (__builtin_add_overflow(piece.place.offset, piece.place.bytes, &end) || end > INT64_MAX) return false;
  }
  return true;
}

std::vector<std::byte> encode_derived(std::span<const DerivedPiece> pieces) {
  std::vector<std::byte> bytes;
  std::vector<int64_t> all;
  put_word(bytes, pieces.size());
  for (const DerivedPiece& piece : pieces) {
    const std::vector<int64_t> numbers = to_numbers(piece.packing);
    for (const uint64_t word : {piece.place.bytes, piece.source.offset, piece.source.bytes, uint64_t{piece.element},
                                uint64_t{numbers.size()}})
      put_word(bytes, word);
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  for (const int64_t number : all) put_word(bytes, static_cast<uint64_t>(number));
  return bytes;
}

Result<std::vector<DerivedPiece>> decode_derived(std::span<const std::byte> section, uint64_t weights) {
  WordReader words(section);
  const uint64_t count = words.left() > 0 ? words.next() : 0;
  if (count == 0 || count > kMaxEntries || words.left() / kWords < count) return malformed("their number");
  std::vector<DerivedPiece> pieces(count);
  std::vector<uint64_t> numbers;
  for (DerivedPiece& piece : pieces) {
    piece.place.bytes = words.next();
    piece.source.offset = words.next(), piece.source.bytes = words.next();
    piece.element = words.next();
    numbers.push_back(words.next());
  }
  for (size_t i = 0; i < count; ++i) {
    if (words.left() < numbers[i]) return malformed("the packing of number {}", i);
    std::vector<int64_t> packing(numbers[i]);
    for (int64_t& number : packing) number = static_cast<int64_t>(words.next());
    LATHE_ASSIGN(pieces[i].packing, packing_from(packing));
    LATHE_TRY(check(pieces[i], i, weights));
  }
  if (!words.is_done()) return malformed("their size");
  if (!place_derived(pieces, weights)) return malformed("they are too large");
  return pieces;
}

void derive(std::span<const Derivative> derivatives, std::span<const std::byte> weights, int threads) {
  std::vector<PackingWork> works;
  for (const auto& [piece, to] : derivatives)
    works.push_back({&piece->packing, piece->element, weights.data() + piece->source.offset, to});
  pack_all(works, threads);
}

}  // namespace lathe::plan
