// SPDX-License-Identifier: Apache-2.0
#include "base/inflate.h"

#include <zlib.h>

#include <algorithm>

#include "base/deflate.h"

namespace lathe {
namespace {

constexpr size_t kPart = size_t{1} << 18;  // stays in the cache between zlib and the sink

Result<size_t> inflated_size(std::span<const std::byte> compressed, size_t most) {
  uint64_t size = 0;
  if (compressed.size() < kDeflatedSizeBytes)
    return fail(ErrorCode::plan_malformed, "{} bytes are no compressed content", compressed.size());
  for (size_t i = 0; i < kDeflatedSizeBytes; ++i) size |= static_cast<uint64_t>(compressed[i]) << (8 * i);
  if (size > most)
    return fail(ErrorCode::plan_malformed, "compressed content claims {} bytes; at most {} are read", size, most);
  return size;
}

// One stream, which lies in memory whole.
class Inflation {
 public:
  explicit Inflation(std::span<const std::byte> compressed) : rest_(compressed.subspan(kDeflatedSizeBytes)) {}
  ~Inflation() { inflateEnd(&stream_); }  // which does nothing where begin() failed
  Inflation(const Inflation&) = delete;
  Inflation& operator=(const Inflation&) = delete;

  bool begin() { return inflateInit(&stream_) == Z_OK; }
  // Fills `to` as far as the stream goes; how much that was.
  size_t fill(std::span<std::byte> to) {
    const size_t wanted = to.size();
    while (code_ == Z_OK && !(to.empty() && rest_.empty())) {
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(rest_.data()));
      stream_.avail_in = static_cast<uInt>(std::min(rest_.size(), kMost));
      stream_.next_out = reinterpret_cast<Bytef*>(to.data());
      stream_.avail_out = static_cast<uInt>(std::min(to.size(), kMost));
      const size_t given = stream_.avail_in, room = stream_.avail_out;
      code_ = inflate(&stream_, Z_NO_FLUSH);
      rest_ = rest_.subspan(given - stream_.avail_in);
      to = to.subspan(room - stream_.avail_out);
    }
    if (code_ == Z_BUF_ERROR && to.empty()) code_ = Z_OK;  // there is more to come, and no room for it
    return wanted - to.size();
  }
  bool is_over() const { return code_ == Z_STREAM_END; }
  bool is_out_of_memory() const { return code_ == Z_MEM_ERROR; }

 private:
  static constexpr size_t kMost = size_t{1} << 30;  // zlib counts in 32 bits

  z_stream stream_{};
  std::span<const std::byte> rest_;
  int code_ = Z_OK;
};

}  // namespace

Result<> inflate_to(std::span<const std::byte> compressed, size_t most, const InflatedSink& sink) {
  LATHE_ASSIGN(const size_t size, inflated_size(compressed, most));
  std::vector<std::byte> part(std::min(size, kPart) + 1);  // one more, so that a stream of too many is told
  Inflation inflation(compressed);
  if (!inflation.begin()) return fail(ErrorCode::out_of_memory, "compressed content of {} bytes", size);
  size_t made = 0;
  while (!inflation.is_over()) {
    const size_t count = inflation.fill(part);
    made += count;
    if (inflation.is_out_of_memory()) return fail(ErrorCode::out_of_memory, "compressed content of {} bytes", size);
    if (made > size || (count < part.size() && !inflation.is_over())) break;
    LATHE_TRY(sink(std::span(part).first(count)));
  }
  if (inflation.is_over() && made == size) return {};
  return fail(ErrorCode::plan_malformed, "compressed content is damaged: {} of {} bytes came", made, size);
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
