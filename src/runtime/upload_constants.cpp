// SPDX-License-Identifier: Apache-2.0
#include "runtime/upload_constants.h"

#include <algorithm>

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

const Tensor& weights_of(const ConstantPlacer::Place& place) { return place.content->elements.source(); }

// Of a buffer, where the device packs: weights and what its kernel is told of them.
uint64_t bytes_sent(const ConstantPlacer::Place& place) {
  PackingTable::Extent table;
  table.add(*place.content);
  return round_up(weights_of(place).bytes(), ConstantUploader::kAlignment) + table.bytes();
}

}  // namespace

uint64_t ConstantUploader::Part::bytes() const {
  return round_up(packed ? bytes_sent(*packed) : in_buffer.bytes, kAlignment);
}

bool ConstantUploader::packs(const ConstantPlacer::Place& place, Packer packer) const {
  return packer == Packer::device && PackingTable::takes(*place.content) && is_pinned(bytes_sent(place));
}

uint64_t ConstantUploader::buffer_bytes(std::span<const ConstantPlacer::Place> places, Packer packer) const {
  uint64_t bytes = kBufferBytes;
  for (const ConstantPlacer::Place& place : places) {
    const uint64_t sent = packs(place, packer) ? bytes_sent(place) : place.bytes;
    if (place.content->packing && is_pinned(sent)) bytes = std::max(bytes, round_up(sent, kAlignment));
  }
  return bytes;
}

uint64_t ConstantUploader::scratch_bytes(std::span<const ConstantPlacer::Place> places) const {
  const auto is_packed = [&](const ConstantPlacer::Place& place) { return packs(place, Packer::device); };
  if (!packing_ || !dynamic_cast<PinningDevice*>(&device_) || std::ranges::none_of(places, is_packed)) return 0;
  return buffers_.size() * (buffer_bytes(places, Packer::device) + kAlignment);
}

Result<> ConstantUploader::prepare(uint64_t bytes) {
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

// Each buffer gets so many bytes of scratch memory, behind where the kernel says that a number was out of range.
Result<> ConstantUploader::divide(std::byte* scratch, uint64_t bytes) {
  constexpr int kNone = 0;
  for (Buffer& buffer : buffers_) {
    buffer.found = scratch;
    buffer.scratch = scratch + kAlignment;
    scratch = buffer.scratch + bytes;
    LATHE_TRY(device_.upload(buffer.found, &kNone, sizeof kNone, *buffer.queue));
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
    if (part.packed) part.to = buffer.scratch + offset;
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
  LATHE_TRY(pack(parts, offset, buffer, check));
  return found;
}

// What the device packs of parts whose weights it has when the queue comes here; its table lies behind them.
Result<> ConstantUploader::pack(std::span<const Part> parts, uint64_t offset, Buffer& buffer, RangeCheck check) {
  PackingTable::Extent extent;
  for (const Part& part : parts)
    if (part.packed) extent.add(*part.packed->content);
  if (extent.boxes == 0) return {};
  std::byte* const from = buffer.memory.data() + offset;
  std::byte* const to = buffer.scratch + offset;
  PackingTable table(extent, from, to, check);
  for (const Part& part : parts)
    if (part.packed) table.add(*part.packed->content, part.to, part.packed->to);
  LATHE_TRY(device_.copy({.to = to, .from = from, .width = extent.bytes()}, *buffer.queue));
  return table.launch(*packing_, buffer.found, *buffer.queue);
}

Result<ConstantPlacer::Found> ConstantUploader::found_by_device() {
  for (const Buffer& buffer : buffers_) {
    int found = 0;
    LATHE_TRY(device_.download(&found, buffer.found, sizeof found, *buffer.queue));
    if (found != 0) return ConstantPlacer::Found::out_of_range;
  }
  return ConstantPlacer::Found::none;
}

Result<ConstantPlacer::Found> ConstantUploader::send_all(std::span<Part> parts, RangeCheck check, int threads) {
  for (size_t turn = 0; !parts.empty(); ++turn) {
    size_t count = 0;
    for (uint64_t bytes = 0; count < parts.size(); ++count) {
      bytes += parts[count].bytes();
      if (count > 0 && (bytes > kBufferBytes || buffers_[0].memory.size() == 0)) break;
    }
    LATHE_ASSIGN(const ConstantPlacer::Found found, send(parts.first(count), buffers_[turn % 2], check, threads));
    if (found != ConstantPlacer::Found::none) return found;
    parts = parts.subspan(count);
  }
  return ConstantPlacer::Found::none;
}

Result<ConstantPlacer::Found> ConstantUploader::run(std::span<const ConstantPlacer::Place> places, RangeCheck check,
                                                    int threads, std::byte* scratch) {
  const Packer packer = scratch ? Packer::device : Packer::host;
  std::vector<ConstantContent> weights;  // as they are, of what the device packs
  weights.reserve(places.size());
  std::vector<Part> parts;
  for (const ConstantPlacer::Place& place : places) {
    if (packs(place, packer)) {
      weights.push_back({ChannelArithmetic(weights_of(place)), nullptr});
      parts.push_back({{&weights.back(), nullptr, weights_of(place).bytes()}, nullptr, &place});
      continue;
    }
    for (uint64_t first = 0; first < place.bytes; first += parts.back().in_buffer.bytes) {
      const uint64_t left = place.bytes - first;
      const uint64_t bytes = place.content->packing ? left : std::min(left, kBufferBytes);
      parts.push_back({{place.content, nullptr, bytes, first}, place.to + first});
    }
  }
  const uint64_t bytes = buffer_bytes(places, packer);
  Result<> ready = prepare(bytes);
  if (ready && scratch) ready = divide(scratch, bytes);
  Result<ConstantPlacer::Found> found = ready ? send_all(parts, check, threads) : fail(ready.error());
  for (const Buffer& buffer : buffers_) {  // also after failures: the device reads what lies there until then
    const Result<> done = buffer.queue ? device_.wait(*buffer.queue) : Result<>();
    if (found && !done) found = fail(done.error());
  }
  if (scratch && check == RangeCheck::on && found && *found == ConstantPlacer::Found::none) found = found_by_device();
  release_large();
  return found;
}

}  // namespace lathe
