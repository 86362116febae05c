// SPDX-License-Identifier: Apache-2.0
// Deflate (RFC 1951) in zlib's format (RFC 1950). A runtime that a plan brings is inflated when the plan is loaded, and
// the kernels of the lean library are when the first of them runs: the whole stream and its content lie in memory,
// which makes this twice as fast as zlib, whose streams come in parts.
#include "base/inflate.h"

#include <cstring>

#include "base/adler32.h"
#include "base/bit_stream.h"
#include "base/deflate.h"
#include "base/prefix_code.h"

namespace lathe {
namespace deflate {
namespace {

constexpr std::ptrdiff_t kWindow = 32768;        // how far behind it a match can begin
constexpr std::ptrdiff_t kSlack = 258 + 16 + 3;  // the longest one, what is written behind it, and literals before it
constexpr size_t kPart = 7 * size_t{kWindow};    // a sink gets at a time, at most: more than a block that is stored has

// Values of symbols that are a base, to which following bits are added: bases that lie close come first, then each
// `group` of them has a bit more.
template <size_t kSize>
constexpr void set_bases(std::array<Meaning, kSize>& meanings, size_t begin, size_t end, uint32_t base, size_t group) {
  for (size_t i = begin; i < end; ++i) {
    const size_t step = (i - begin) / group;
    const auto bits = static_cast<uint32_t>(step < 2 ? 0 : step - 1);
    meanings[i] = meaning(0, base, bits);
    base += 1u << bits;
  }
}

constexpr std::array<Meaning, kMostSymbols> literals_and_lengths() {
  std::array<Meaning, kMostSymbols> meanings{};
  for (uint32_t i = 0; i < 256; ++i) meanings[i] = meaning(kLiteral, i, 0);
  meanings[256] = kEnd;
  set_bases(meanings, 257, 285, 3, 4);
  meanings[285] = meaning(0, 258, 0);
  meanings[286] = meanings[287] = kNone;
  return meanings;
}
constexpr std::array<Meaning, 32> distances() {
  std::array<Meaning, 32> meanings{};
  set_bases(meanings, 0, 30, 1, 2);
  meanings[30] = meanings[31] = kNone;
  return meanings;
}
constexpr std::array<Meaning, 19> code_lengths() {
  std::array<Meaning, 19> meanings{};
  for (uint32_t i = 0; i < 16; ++i) meanings[i] = meaning(0, i, 0);
  meanings[16] = meaning(0, 16, 2);
  meanings[17] = meaning(0, 17, 3);
  meanings[18] = meaning(0, 18, 7);
  return meanings;
}
constexpr auto kLiteralsAndLengths = literals_and_lengths();
constexpr auto kDistances = distances();
constexpr auto kCodeLengths = code_lengths();

// The bytes that are `distance` behind `to`, again, which may overlap. Up to 16 bytes are written behind them.
inline void copy_within(uint8_t* to, size_t distance, size_t length) {
  const uint8_t* from = to - distance;
  if (distance >= 8) {
    const uint8_t* const end = to + length;
    do {
      std::memcpy(to, from, 8);
      std::memcpy(to + 8, from + 8, 8);
      to += 16;
      from += 16;
    } while (to < end);
  } else if (distance == 1) {
    std::memset(to, *from, length);
  } else {
    for (size_t i = 0; i < length; ++i) to[i] = from[i];
  }
}

class Inflation {
 public:
  // All `size` bytes to `to`; with a sink, `to` holds a part of them at a time, and the sink gets each.
  Inflation(std::span<const std::byte> from, std::span<std::byte> to, size_t size, const InflatedSink* sink)
      : bits_(reinterpret_cast<const uint8_t*>(from.data()),
              reinterpret_cast<const uint8_t*>(from.data()) + from.size()),
        begin_(reinterpret_cast<uint8_t*>(to.data())),
        fresh_(begin_),
        to_(begin_),
        end_(begin_ + to.size()),
        left_(size),
        sink_(sink) {}

  // Whether the stream is whole and right; else left() bytes have not come, or the sink has failed.
  bool run();
  size_t left() const { return left_; }
  Result<> sunk() { return std::move(sunk_); }

 private:
  enum class Ended { no, yes, damaged };
  bool head();
  bool block(uint32_t kind);
  bool stored();
  bool fixed_codes();
  bool read_codes();
  bool coded();
  Ended coded_far_from_ends();
  bool hand_out();
  bool make_room();

  BitStream bits_;
  uint8_t *begin_, *fresh_, *to_, *end_;  // what came before `fresh_` was handed out, and may be repeated
  size_t left_;
  const InflatedSink* sink_;
  Result<> sunk_;
  Adler32 checksum_;
  PrefixCode<11, 2342> literals_;
  PrefixCode<8, 402> distances_;
};

bool Inflation::hand_out() {
  const std::span<const uint8_t> bytes(fresh_, to_);
  if (bytes.size() > left_) return false;
  left_ -= bytes.size();
  checksum_.add(bytes);
  if (sink_) sunk_ = (*sink_)(std::as_bytes(bytes));
  fresh_ = to_;
  return sunk_.has_value();
}

// For as much as a block that is stored, or a match, has at most. False where what comes is more than was promised.
bool Inflation::make_room() {
  if (!sink_ || !hand_out()) return false;
  const std::ptrdiff_t kept = std::min(to_ - begin_, kWindow);
  std::memmove(begin_, to_ - kept, static_cast<size_t>(kept));
  fresh_ = to_ = begin_ + kept;
  return true;
}

bool Inflation::head() {
  bits_.refill();
  const uint32_t method = bits_.take(8), flags = bits_.take(8);
  constexpr uint32_t kDictionary = 32;
  return method % 16 == 8 && method / 16 < 8 && (method * 256 + flags) % 31 == 0 && (flags & kDictionary) == 0;
}

bool Inflation::stored() {
  std::span<const uint8_t> rest = bits_.rest();
  if (rest.size() < 4) return false;
  const size_t size = rest[0] + 256u * rest[1], inverse = rest[2] + 256u * rest[3];
  rest = rest.subspan(4);
  if (size + inverse != 0xffff || size > rest.size()) return false;
  if (size > static_cast<size_t>(end_ - to_) && !make_room()) return false;
  if (size > 0) std::memcpy(to_, rest.data(), size);
  to_ += size;
  bits_.go_on_at(rest.data() + size);
  return true;
}

bool Inflation::fixed_codes() {
  std::array<uint8_t, kMostSymbols> lengths;
  std::fill_n(lengths.begin(), 144, 8);
  std::fill_n(lengths.begin() + 144, 112, 9);
  std::fill_n(lengths.begin() + 256, 24, 7);
  std::fill_n(lengths.begin() + 280, 8, 8);
  std::array<uint8_t, 32> of_distances;
  of_distances.fill(5);
  return literals_.make(lengths, kLiteralsAndLengths) && distances_.make(of_distances, kDistances);
}

bool Inflation::read_codes() {
  bits_.refill();
  const uint32_t literals = 257 + bits_.take(5), distances = 1 + bits_.take(5), codes = 4 + bits_.take(4);
  if (literals > 286 || distances > 30) return false;
  constexpr uint8_t kOrder[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  std::array<uint8_t, 19> code{};
  for (uint32_t i = 0; i < codes; ++i) {
    bits_.refill();
    code[kOrder[i]] = static_cast<uint8_t>(bits_.take(3));
  }
  PrefixCode<7, 128> lengths_code;
  if (std::ranges::count(code, 0) >= 18 || !lengths_code.make(code, kCodeLengths)) return false;
  std::array<uint8_t, 286 + 30> lengths{};
  for (uint32_t i = 0; i < literals + distances;) {
    bits_.refill();
    const Meaning found = lengths_code.first(bits_.bits());
    const uint32_t symbol = value_of(found), repeated = bits_.take_value(found) - symbol;
    if (bits_.is_over() || (symbol == 16 && i == 0)) return false;
    const uint32_t count = symbol < 16 ? 1 : repeated + (symbol == 18 ? 11 : 3);
    if (count > literals + distances - i) return false;
    const uint8_t length = symbol < 16 ? static_cast<uint8_t>(symbol) : symbol == 16 ? lengths[i - 1] : uint8_t{0};
    std::fill_n(lengths.begin() + i, count, length);
    i += count;
  }
  const std::span<const uint8_t> all(lengths);
  return all[256] > 0 && literals_.make(all.first(literals), kLiteralsAndLengths) &&
         distances_.make(all.subspan(literals, distances), kDistances);
}

// As far as nothing can be read or written behind an end, whatever comes: 258 bytes at most are repeated at a time.
Inflation::Ended Inflation::coded_far_from_ends() {
  BitStream bits = bits_;  // whose members are in registers, for they cannot be what is written to
  uint8_t* to = to_;
  Ended ended = Ended::no;
  const auto literal = [&](Meaning found) {
    bits.drop(taken(found));
    *to++ = static_cast<uint8_t>(value_of(found));
  };
  Meaning found = 0;
  const auto look_up = [&] { found = literals_.first(bits.bits()); };
  const auto refill = [&] {
    bits.refill_within();
    look_up();
  };
  const auto is_far = [&] { return bits.has_plenty() && end_ - to >= kSlack; };
  if (!is_far()) return ended;
  refill();
  do {
    // Of 56 bits, two literals take 22 and a length with its bits 20.
    if (found & kLiteral) {
      literal(found);
      look_up();
      if (found & kLiteral) {
        literal(found);
        look_up();
      }
    }
    if (found & kFurther) {
      bits.drop(taken(found));
      found = literals_.second(found, bits.bits());
    }
    if (found & (kLiteral | kEnd | kNone)) {
      if (found & kLiteral) {
        literal(found);
        refill();
        continue;
      }
      bits.drop(taken(found));
      ended = found & kEnd ? Ended::yes : Ended::damaged;
      break;
    }
    const uint32_t length = bits.take_value(found);
    if (bits.count() < 15 + 13) bits.refill_within();
    Meaning far = distances_.first(bits.bits());
    if (far & kFurther) {
      bits.drop(taken(far));
      far = distances_.second(far, bits.bits());
    }
    const uint32_t distance = bits.take_value(far);
    if ((far & kNone) || distance > to - begin_) {
      ended = Ended::damaged;
      break;
    }
    refill();  // before the copy, which takes its time
    copy_within(to, distance, length);
    to += length;
  } while (is_far());
  bits_ = bits;
  to_ = to;
  return ended;
}

bool Inflation::coded() {
  for (;;) {
    if (const Ended ended = coded_far_from_ends(); ended != Ended::no) return ended == Ended::yes;
    if (sink_ && end_ - to_ < kSlack && !make_room()) return false;
    bits_.refill();
    Meaning found = literals_.first(bits_.bits());
    if (found & kFurther) {
      bits_.drop(taken(found));
      found = literals_.second(found, bits_.bits());
    }
    const uint32_t value = bits_.take_value(found);
    if (bits_.is_over() || (found & kNone)) return false;
    if (found & kEnd) return true;
    if (found & kLiteral) {
      if (to_ == end_) return false;
      *to_++ = static_cast<uint8_t>(value);
      continue;
    }
    bits_.refill();
    Meaning far = distances_.first(bits_.bits());
    if (far & kFurther) {
      bits_.drop(taken(far));
      far = distances_.second(far, bits_.bits());
    }
    const std::ptrdiff_t distance = bits_.take_value(far);
    if (bits_.is_over() || (far & kNone) || distance > to_ - begin_ || value > end_ - to_) return false;
    for (uint8_t* const end = to_ + value; to_ < end; ++to_) *to_ = to_[-distance];
  }
}

bool Inflation::block(uint32_t kind) {
  switch (kind) {
    case 0:
      return stored();
    case 1:
      return fixed_codes() && coded();
    case 2:
      return read_codes() && coded();
    default:
      return false;
  }
}

bool Inflation::run() {
  if (!head()) return false;
  for (bool is_last = false; !is_last;) {
    bits_.refill();
    is_last = bits_.take(1) != 0;
    if (!block(bits_.take(2))) return false;
  }
  const std::span<const uint8_t> sum = bits_.rest();
  return hand_out() && left_ == 0 && sum.size() >= 4 &&
         checksum_.value() == (uint32_t{sum[0]} << 24 | sum[1] << 16 | sum[2] << 8 | sum[3]);
}

}  // namespace
}  // namespace deflate

namespace {

Result<size_t> inflated_size(std::span<const std::byte> compressed, size_t most) {
  uint64_t size = 0;
  if (compressed.size() < kDeflatedSizeBytes)
    return fail(ErrorCode::plan_malformed, "{} bytes are no compressed content", compressed.size());
  for (size_t i = 0; i < kDeflatedSizeBytes; ++i) size |= static_cast<uint64_t>(compressed[i]) << (8 * i);
  if (size > most)
    return fail(ErrorCode::plan_malformed, "compressed content claims {} bytes; at most {} are read", size, most);
  return size;
}

Result<> inflate(std::span<const std::byte> compressed, std::span<std::byte> to, size_t size,
                 const InflatedSink* sink) {
  deflate::Inflation inflation(compressed.subspan(kDeflatedSizeBytes), to, size, sink);
  if (inflation.run()) return {};
  LATHE_TRY(inflation.sunk());
  return fail(ErrorCode::plan_malformed, "compressed content is damaged: {} of {} bytes came", size - inflation.left(),
              size);
}

}  // namespace

Result<> inflate_to(std::span<const std::byte> compressed, size_t most, const InflatedSink& sink) {
  LATHE_ASSIGN(const size_t size, inflated_size(compressed, most));
  std::vector<std::byte> part(deflate::kWindow + deflate::kPart);
  return inflate(compressed, part, size, &sink);
}

Result<std::vector<std::byte>> inflate_bytes(std::span<const std::byte> compressed, size_t most) {
  LATHE_ASSIGN(const size_t size, inflated_size(compressed, most));
  std::vector<std::byte> bytes(size);
  LATHE_TRY(inflate(compressed, bytes, size, nullptr));
  return bytes;
}

}  // namespace lathe
