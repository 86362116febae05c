// SPDX-License-Identifier: Apache-2.0
#include "runtime/upload_constants.h"

#include "base/divide.h"
#include "device/pinned_memory.h"

namespace lathe {
namespace {

// Of a buffer, unless a packed constant has more. Smaller ones cost more copies, larger ones leave the processor's
// caches before the device has read them.
constexpr uint64_t kBufferBytes = uint64_t{8} << 20;
constexpr uint64_t kMostKept = uint64_t{16} << 20;
constexpr uint64_t kAlignment = 64;

}  // namespace

Result<> ConstantUploader::prepare(uint64_t bytes) {
  auto* const pinning = dynamic_cast<PinningDevice*>(&device_);
  LATHE_CHECK(pinning != nullptr);
  for (Buffer& buffer : buffers_) {
    if (!buffer.queue) {
      LATHE_ASSIGN(buffer.queue, device_.make_queue());
    }
    if (buffer.memory.size() >= bytes) continue;
    buffer.memory = {};
    LATHE_ASSIGN(buffer.memory, pinning->allocate_pinned(bytes));
  }
  return {};
}

// Computes and packs in the buffer what was sent from it before is done with.
Result<ConstantPlacer::Found> ConstantUploader::send(std::span<Part> parts, Buffer& buffer, RangeCheck check,
                                                     int threads) {
  LATHE_TRY(device_.wait(*buffer.queue));
  std::vector<ConstantPlacer::Place> places;
  uint64_t offset = 0;
  for (Part& part : parts) {
    ConstantPlacer::Place& in_buffer = part.in_buffer;
    in_buffer.to = buffer.memory.data() + offset;
    if (const Packing* const packing = in_buffer.content->packing; packing && !is_dense(*packing))
      std::memset(in_buffer.to, 0, in_buffer.bytes);
    places.push_back(in_buffer);
    offset = round_up(offset + in_buffer.bytes, kAlignment);
  }
  LATHE_ASSIGN(ConstantPlacer placer, ConstantPlacer::create(places, threads));
  const ConstantPlacer::Found found = placer.run(check);
  // Parts that are as far apart on the device as here are copied at once, with what lies between them.
  for (size_t first = 0, next = 0; first < parts.size(); first = next) {
    const Part& from = parts[first];
    const auto is_behind = [&](const Part& part) { return part.to - from.to == part.in_buffer.to - from.in_buffer.to; };
    while (next < parts.size() && is_behind(parts[next])) ++next;
    const ConstantPlacer::Place& last = parts[next - 1].in_buffer;
    const auto width = static_cast<size_t>(last.to - from.in_buffer.to) + last.bytes;
    LATHE_TRY(device_.copy({.to = from.to, .from = from.in_buffer.to, .width = width}, *buffer.queue));
  }
  return found;
}

Result<ConstantPlacer::Found> ConstantUploader::send_all(std::span<Part> parts, RangeCheck check, int threads) {
  for (size_t turn = 0; !parts.empty(); ++turn) {
    size_t count = 0;
    for (uint64_t bytes = 0; count < parts.size(); ++count) {
      bytes += round_up(parts[count].in_buffer.bytes, kAlignment);
      if (count > 0 && bytes > kBufferBytes) break;
    }
    LATHE_ASSIGN(const ConstantPlacer::Found found, send(parts.first(count), buffers_[turn % 2], check, threads));
    if (found != ConstantPlacer::Found::none) return found;
    parts = parts.subspan(count);
  }
  return ConstantPlacer::Found::none;
}

Result<ConstantPlacer::Found> ConstantUploader::run(std::span<const ConstantPlacer::Place> places, RangeCheck check,
                                                    int threads) {
  std::vector<Part> parts;
  uint64_t most = 0;
  for (const ConstantPlacer::Place& place : places)
    for (uint64_t first = 0; first < place.bytes; first += parts.back().in_buffer.bytes) {
      const uint64_t left = place.bytes - first;
      const uint64_t bytes = place.content->packing ? left : std::min(left, kBufferBytes);
      parts.push_back({{place.content, nullptr, bytes, first}, place.to + first});
      most = std::max(most, bytes);
    }
  LATHE_TRY(prepare(std::max(most, kBufferBytes)));
  Result<ConstantPlacer::Found> found = send_all(parts, check, threads);
  for (Buffer& buffer : buffers_) {  // also after failures: the device reads what lies there until then
    Result<> done = device_.wait(*buffer.queue);
    if (found && !done) found = fail(std::move(done).error());
    if (buffer.memory.size() > kMostKept) buffer.memory = {};
  }
  return found;
}

}  // namespace lathe
