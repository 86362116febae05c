// SPDX-License-Identifier: Apache-2.0
#include "runtime/upload_constants.h"

#include "base/divide.h"
#include "device/pinned_memory.h"

namespace lathe {
namespace {

// Size of a buffer, unless a packed constant has more. Smaller ones cost more copies, larger ones leave the processor's
// caches before the device has read them.
constexpr uint64_t kBufferBytes = uint64_t{8} << 20;
// What a buffer keeps from one refit to the next: pinned memory takes as long as copying it.
constexpr uint64_t kMostKept = uint64_t{16} << 20;
// Of packed constants that have more, a copy that the driver takes in pieces is better than as much pinned memory.
constexpr uint64_t kMostPinned = uint64_t{64} << 20;

bool is_pinned(uint64_t bytes) { return bytes <= kMostPinned; }

// What lies between packed elements is zero.
void clear(const ConstantPlacer::Place& place) {
  if (const Packing* const packing = place.content->packing; packing && !is_dense(*packing))
    std::memset(place.to, 0, place.bytes);
}

}  // namespace

Result<> ConstantUploader::prepare(std::span<const ConstantPlacer::Place> places) {
  uint64_t bytes = kBufferBytes;
  for (const ConstantPlacer::Place& place : places)
    if (place.content->packing && is_pinned(place.bytes)) bytes = std::max(bytes, place.bytes);
  auto* const pinning = dynamic_cast<PinningDevice*>(&device_);
  for (Buffer& buffer : buffers_) {
    if (!buffer.queue) {
      LATHE_ASSIGN(buffer.queue, device_.make_queue());
    }
    if (!pinning || buffer.memory.size() >= bytes) continue;
    buffer.memory = {};
    LATHE_ASSIGN(buffer.memory, pinning->allocate_pinned(bytes));
  }
  return {};
}

void ConstantUploader::release_large() {
  for (Buffer& buffer : buffers_)
    if (buffer.memory.size() > kMostKept) buffer.memory = {};
}

Result<ConstantPlacer::Found> ConstantUploader::send_unpinned(const Part& part, RangeCheck check, int threads) {
  ConstantPlacer::Place place = part.in_buffer;
  LATHE_ASSIGN(Tensor memory, Tensor::allocate(DType::u8, {static_cast<int64_t>(place.bytes)}));
  place.to = memory.mutable_as<std::byte>();
  clear(place);
  LATHE_ASSIGN(ConstantPlacer placer, ConstantPlacer::create({&place, 1}, threads));
  const ConstantPlacer::Found found = placer.run(check);
  LATHE_TRY(device_.upload(part.to, memory.data(), place.bytes, *buffers_[0].queue));
  return found;
}

// Waits until the device has read the buffer's previous contents, then computes and packs the parts there and queues
// their copies.
Result<ConstantPlacer::Found> ConstantUploader::send(std::span<Part> parts, Buffer& buffer, RangeCheck check,
                                                     int threads) {
  if (buffer.memory.size() < parts[0].in_buffer.bytes) return send_unpinned(parts[0], check, threads);
  LATHE_TRY(device_.wait(*buffer.queue));
  std::vector<ConstantPlacer::Place> places;
  uint64_t offset = 0;
  for (Part& part : parts) {
    part.in_buffer.to = buffer.memory.data() + offset;
    clear(part.in_buffer);
    places.push_back(part.in_buffer);
    offset = round_up(offset + part.in_buffer.bytes, kAlignment);
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
      if (count > 0 && (bytes > kBufferBytes || buffers_[0].memory.size() == 0)) break;
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
  for (const ConstantPlacer::Place& place : places)
    for (uint64_t first = 0; first < place.bytes; first += parts.back().in_buffer.bytes) {
      const uint64_t left = place.bytes - first;
      const uint64_t bytes = place.content->packing ? left : std::min(left, kBufferBytes);
      parts.push_back({{place.content, nullptr, bytes, first}, place.to + first});
    }
  const Result<> prepared = prepare(places);
  Result<ConstantPlacer::Found> found = prepared ? send_all(parts, check, threads) : fail(prepared.error());
  for (const Buffer& buffer : buffers_) {  // also after failures: the device reads what lies there until then
    const Result<> done = buffer.queue ? device_.wait(*buffer.queue) : Result<>();
    if (found && !done) found = fail(done.error());
  }
  release_large();
  return found;
}

}  // namespace lathe
