// SPDX-License-Identifier: Apache-2.0
// Streams of zlib in each of its ways to compress, and what becomes of them when they are damaged: zlib's own answer is
// the right one.
#include "base/inflate.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "base/deflate.h"

namespace lathe {
namespace {

using Bytes = std::vector<std::byte>;

// Of many literals and few, short distances and long ones, and nothing that repeats.
std::vector<Bytes> contents() {
  std::mt19937 random(5);
  std::vector<Bytes> all;
  for (const size_t size : {0, 1, 2, 15, 300, 5'000, 70'000, 400'000})
    for (const int kind : {0, 1, 2, 3}) {
      Bytes bytes(size);
      for (size_t i = 0; i < size; ++i) {
        const uint32_t number = random();
        const size_t back = 1 + number % (kind == 1 ? 9 : 40'000);
        const bool repeats = kind != 0 && i >= back && number >> 16 > 2'000;
        bytes[i] = repeats && kind < 3
                       ? bytes[i - back]
                       : static_cast<std::byte>(kind == 3 ? std::min(number >> 27, number >> 24 & 7) : number >> 24);
        for (size_t more = kind == 2 && repeats ? number >> 16 & 0x1ff : 0; more > 0 && i + 1 < size; --more, ++i)
          bytes[i + 1] = bytes[i + 1 - back];
      }
      all.push_back(std::move(bytes));
    }
  return all;
}

Bytes compressed(const Bytes& bytes, int level, int strategy) {
  Bytes made(kDeflatedSizeBytes + compressBound(bytes.size()) + 100);
  for (size_t i = 0; i < kDeflatedSizeBytes; ++i) made[i] = static_cast<std::byte>(bytes.size() >> (8 * i));
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, level, Z_DEFLATED, 15, 8, strategy), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(made.data() + kDeflatedSizeBytes);
  stream.avail_out = static_cast<uInt>(made.size() - kDeflatedSizeBytes);
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  made.resize(kDeflatedSizeBytes + stream.total_out);
  deflateEnd(&stream);
  return made;
}

Result<Bytes> in_parts(const Bytes& stream, size_t most) {
  Bytes whole;
  LATHE_TRY(inflate_to(stream, most, [&](std::span<const std::byte> part) -> Result<> {
    whole.insert(whole.end(), part.begin(), part.end());
    return {};
  }));
  return whole;
}

// What zlib makes of it; empty where that is nothing.
std::optional<Bytes> reference(const Bytes& stream, size_t size) {
  Bytes bytes(size);
  uLongf made = size;
  const int code = uncompress(reinterpret_cast<Bytef*>(bytes.data()), &made,
                              reinterpret_cast<const Bytef*>(stream.data() + kDeflatedSizeBytes),
                              stream.size() - kDeflatedSizeBytes);
  return code == Z_OK && made == size ? std::optional(bytes) : std::nullopt;
}

TEST(Inflate, GivesWhatZlibCompressed) {
  for (const Bytes& bytes : contents())
    for (const int level : {0, 1, 6, 9})
      for (const int strategy : {Z_DEFAULT_STRATEGY, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED}) {
        const Bytes stream = compressed(bytes, level, strategy);
        ASSERT_EQ(inflate_bytes(stream, bytes.size()).value(), bytes)
            << level << ' ' << strategy << ' ' << bytes.size();
        ASSERT_EQ(in_parts(stream, bytes.size()).value(), bytes) << level << ' ' << strategy << ' ' << bytes.size();
      }
}

TEST(Inflate, TellsDamagedStreamsAsZlibDoes) {
  std::mt19937 random(7);
  size_t wrong = 0;
  for (const Bytes& bytes : contents()) {
    if (bytes.size() > 5'000) continue;
    for (const int strategy : {Z_DEFAULT_STRATEGY, Z_FIXED}) {
      const Bytes stream = compressed(bytes, 6, strategy);
      for (int i = 0; i < 300; ++i) {
        Bytes changed = stream;
        // Where codes are described, mostly: behind the size and two bytes of zlib's.
        const size_t reach = changed.size() - kDeflatedSizeBytes;
        const size_t place = kDeflatedSizeBytes + random() % (i % 2 == 0 ? reach : std::min<size_t>(reach, 80));
        if (i % 5 == 0)
          changed.resize(place);
        else
          changed[place] ^= static_cast<std::byte>(1 + random() % 255);
        const std::optional<Bytes> wanted = reference(changed, bytes.size());
        for (const Result<Bytes>& made : {inflate_bytes(changed, bytes.size()), in_parts(changed, bytes.size())}) {
          ASSERT_EQ(made.has_value(), wanted.has_value()) << bytes.size() << ' ' << i << ' ' << place;
          if (made) {
            ASSERT_EQ(*made, *wanted);
          } else {
            ASSERT_EQ(made.error().code, ErrorCode::plan_malformed);
          }
        }
        wrong += !wanted;
      }
    }
  }
  EXPECT_GT(wrong, 5'000u);
}

TEST(Inflate, SaysWhatTheSinkSays) {
  const Bytes stream = *deflate_bytes(Bytes(1'000'000));
  size_t parts = 0;
  const Result<> made = inflate_to(stream, 1'000'000, [&](std::span<const std::byte>) -> Result<> {
    if (++parts < 3) return {};
    return fail(ErrorCode::file_read, "no room");
  });
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::file_read);
  EXPECT_EQ(parts, 3u);
  EXPECT_FALSE(inflate_to(stream, 999'999, [](std::span<const std::byte>) -> Result<> { return {}; }));
}

}  // namespace
}  // namespace lathe
