// SPDX-License-Identifier: Apache-2.0
#include "base/inflate.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>

#include "base/deflate.h"

namespace lathe {
namespace {

constexpr size_t kHeadBytes = 2, kSumBytes = 4;  // of RFC 1950, around what RFC 1951 compresses
constexpr int kWindowBits = 15;
using Window = std::array<unsigned char, size_t{1} << kWindowBits>;

Result<size_t> inflated_size(std::span<const std::byte> compressed, size_t most) {
  uint64_t size = 0;
  if (compressed.size() < kDeflatedSizeBytes)
    return fail(ErrorCode::plan_malformed, "{} bytes are no compressed content", compressed.size());
  for (size_t i = 0; i < kDeflatedSizeBytes; ++i) size |= static_cast<uint64_t>(compressed[i]) << (8 * i);
  if (size > most)
    return fail(ErrorCode::plan_malformed, "compressed content claims {} bytes; at most {} are read", size, most);
  return size;
}

// Deflate, with a window of 32 KB at most and no dictionary.
bool is_head(std::span<const std::byte> stream) {
  if (stream.size() < kHeadBytes) return false;
  const auto method = static_cast<unsigned>(stream[0]), flags = static_cast<unsigned>(stream[1]);
  return method % 16 == Z_DEFLATED && method / 16 + 8 <= kWindowBits && (flags & 0x20) == 0 &&
         (method * 256 + flags) % 31 == 0;
}

// The checksum of RFC 1950, as fast as zlib's, which has 2 KB of code.
uint32_t adler32(uint32_t sum, std::span<const unsigned char> bytes) {
  constexpr size_t kMost = 5552;  // bytes until the sums, of 32 bits, have to be reduced
  constexpr uint32_t kPrime = 65521;
  uint32_t low = sum & 0xffff, high = sum >> 16;
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(bytes.size(), kMost));
    for (const unsigned char byte : part) high += low += byte;
    low %= kPrime, high %= kPrime;
    bytes = bytes.subspan(part.size());
  }
  return high << 16 | low;
}

// One stream, which lies in memory whole. zlib's inflateBack() makes content in the window that it needs anyway, and
// takes half the code of inflate(); head and checksum are left to its caller.
class Inflation {
 public:
  Inflation(std::span<const std::byte> stream, size_t size, const InflatedSink& sink)
      : stream_(stream), rest_(stream.subspan(kHeadBytes)), size_(size), sink_(sink) {}
  ~Inflation() { inflateBackEnd(&zlib_); }  // which does nothing where run() failed to begin
  Inflation(const Inflation&) = delete;
  Inflation& operator=(const Inflation&) = delete;

  Result<> run(Window& window) {
    if (inflateBackInit(&zlib_, kWindowBits, window.data()) != Z_OK)
      return fail(ErrorCode::out_of_memory, "compressed content of {} bytes", size_);
    const int code = inflateBack(&zlib_, give, this, take, this);
    LATHE_TRY(said_);
    if (code == Z_STREAM_END && made_ == size_ && is_sum_right()) return {};
    return fail(ErrorCode::plan_malformed, "compressed content is damaged: {} of {} bytes came", made_, size_);
  }

 private:
  static constexpr size_t kMost = size_t{1} << 30;  // zlib counts in 32 bits

  static unsigned give(void* of, unsigned char** bytes) {
    auto& rest = static_cast<Inflation*>(of)->rest_;
    const size_t count = std::min(rest.size(), kMost);
    *bytes = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(rest.data()));
    rest = rest.subspan(count);
    return static_cast<unsigned>(count);
  }
  static int take(void* of, unsigned char* bytes, unsigned count) {
    auto& self = *static_cast<Inflation*>(of);
    self.made_ += count;
    if (self.made_ > self.size_) return 1;
    self.sum_ = adler32(self.sum_, {bytes, count});
    self.said_ = self.sink_(std::as_bytes(std::span(bytes, count)));
    return self.said_ ? 0 : 1;
  }
  bool is_sum_right() const {
    const auto sum = stream_.last(zlib_.avail_in + rest_.size());
    if (sum.size() < kSumBytes) return false;
    uint32_t wanted = 0;
    for (size_t i = 0; i < kSumBytes; ++i) wanted = wanted << 8 | static_cast<uint32_t>(sum[i]);
    return sum_ == wanted;
  }

  z_stream zlib_{};
  std::span<const std::byte> stream_, rest_;  // all of it; what zlib has not been given
  size_t size_, made_ = 0;
  uint32_t sum_ = 1;  // of nothing
  const InflatedSink& sink_;
  Result<> said_;
};

}  // namespace

Result<> inflate_to(std::span<const std::byte> compressed, size_t most, const InflatedSink& sink) {
  LATHE_ASSIGN(const size_t size, inflated_size(compressed, most));
  const auto stream = compressed.subspan(kDeflatedSizeBytes);
  if (!is_head(stream)) return fail(ErrorCode::plan_malformed, "compressed content does not begin as such");
  const auto window = std::make_unique<Window>();
  return Inflation(stream, size, sink).run(*window);
}

Result<std::vector<std::byte>> inflate_bytes(std::span<const std::byte> compressed, size_t most) {
  LATHE_ASSIGN(const size_t size, inflated_size(compressed, most));
  std::vector<std::byte> bytes;
  bytes.reserve(size);
  LATHE_TRY(inflate_to(compressed, most, [&](std::span<const std::byte> part) -> Result<> {
    bytes.insert(bytes.end(), part.begin(), part.end());
    return {};
  }));
  return bytes;
}

}  // namespace lathe
