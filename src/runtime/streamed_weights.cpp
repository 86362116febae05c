// SPDX-License-Identifier: Apache-2.0
#include "runtime/streamed_weights.h"

#include <algorithm>
#include <numeric>

#include "base/divide.h"
#include "device/pinned_memory.h"

namespace lathe {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kSmall = 4096;  // what costs more to wait for than to keep

template <class See>
void for_each_constant(const plan::Plan& plan, const std::vector<plan::TensorId>& ids, See see) {
  for (const plan::TensorId id : ids)
    if (id != plan::kNoTensor && plan.tensors[id].storage == plan::StorageKind::constant) see(plan.tensors[id].index);
}

}  // namespace

size_t StreamedWeights::aligned_bytes(uint32_t constant) const {
  return round_up(static_cast<size_t>(plan_.constants[constant].bytes), kAlignment);
}

Result<std::unique_ptr<StreamedWeights>> StreamedWeights::create(const plan::Plan& plan,
                                                                 const std::vector<plan::StepPlace>& places,
                                                                 std::shared_ptr<Device> device) {
  auto* const pinning = dynamic_cast<PinningDevice*>(device.get());
  if (!pinning) return nullptr;
  std::unique_ptr<StreamedWeights> weights(new StreamedWeights(plan, std::move(device)));
  LATHE_ASSIGN(weights->host_, pinning->allocate_pinned(plan.weights.size()));
  std::ranges::copy(plan.weights, weights->host_.data());
  weights->find_streamable(places);
  std::vector<bool> fixed = weights->streamable_;
  fixed.flip();
  weights->fixed_addresses_.resize(plan.constants.size());
  LATHE_ASSIGN(weights->fixed_, weights->upload(fixed, weights->fixed_addresses_));
  weights->budget_ = weights->streamable_bytes_;
  weights->arrange();
  return weights;
}

// Of steps that always have their turn in the same order, and that the device runs.
void StreamedWeights::find_streamable(const std::vector<plan::StepPlace>& places) {
  streamable_.resize(plan_.constants.size());
  std::vector<bool> stays(plan_.constants.size());
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const plan::Step& step = plan_.steps[i];
    const bool streams = places[i].depth == 0 && step.is<plan::DeviceLaunches>();
    const auto see = [&](uint32_t constant) { (streams ? streamable_ : stays)[constant] = true; };
    for_each_constant(plan_, step.inputs, see);
    if (const auto* block = std::get_if<plan::Block>(&step.work))
      for (const plan::Body& body : block->bodies) for_each_constant(plan_, body.results, see);
  }
  for (uint32_t i = 0; i < streamable_.size(); ++i) {
    streamable_[i] = streamable_[i] && !stays[i] && plan_.constants[i].bytes > kSmall;
    if (streamable_[i]) streamable_bytes_ += aligned_bytes(i);
  }
}

// The largest ones stay as far as there is room: the largest that is copied decides how large the buffers are.
void StreamedWeights::arrange() {
  std::vector<uint32_t> order(streamable_.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::greater(), [&](uint32_t i) { return plan_.constants[i].bytes; });
  stays_.assign(streamable_.size(), false);
  size_t room = budget_;
  for (const uint32_t i : order) {
    if (!streamable_[i] || aligned_bytes(i) > room) continue;
    stays_[i] = true;
    room -= aligned_bytes(i);
  }
  steps_.clear();
  buffer_bytes_ = 0;
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    StreamingStep found{i, {}};
    size_t bytes = 0;
    for_each_constant(plan_, plan_.steps[i].inputs, [&](uint32_t constant) {
      const bool is_there = std::ranges::find(found.pieces, constant, &Piece::constant) != found.pieces.end();
      if (!streamable_[constant] || stays_[constant] || is_there) return;
      found.pieces.push_back({constant, bytes});
      bytes += aligned_bytes(constant);
    });
    buffer_bytes_ = std::max(buffer_bytes_, bytes);
    if (!found.pieces.empty()) steps_.push_back(std::move(found));
  }
}

size_t StreamedWeights::budget() const {
  const std::lock_guard lock(mutex_);
  return budget_;
}

size_t StreamedWeights::scratch_bytes() const {
  const std::lock_guard lock(mutex_);
  return 2 * buffer_bytes_;
}

size_t StreamedWeights::placed_bytes() const {
  const std::lock_guard lock(mutex_);
  return placement_ ? placement_->memory.size() : 0;
}

Result<> StreamedWeights::set_budget(size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (placement_.use_count() > 1)
    return fail(ErrorCode::invalid_state,
                "{} contexts of the engine have their weights by the former budget: delete them first",
                placement_.use_count() - 1);
  placement_.reset();
  budget_ = std::min(bytes, streamable_bytes_);
  arrange();
  return {};
}

Result<DeviceMemory> StreamedWeights::upload(const std::vector<bool>& is_wanted,
                                             std::vector<const std::byte*>& addresses) const {
  size_t bytes = 0;
  std::vector<size_t> offsets(is_wanted.size());
  for (uint32_t i = 0; i < is_wanted.size(); ++i)
    if (is_wanted[i]) offsets[i] = std::exchange(bytes, bytes + aligned_bytes(i));
  LATHE_ASSIGN(DeviceMemory memory, device_->allocate(bytes));
  LATHE_ASSIGN(const std::unique_ptr<Queue> queue, device_->make_queue());
  for (uint32_t i = 0; i < is_wanted.size(); ++i) {
    if (!is_wanted[i]) continue;
    std::byte* const to = memory.data() + offsets[i];
    LATHE_TRY(device_->copy({.to = to, .from = on_host(i), .width = plan_.constants[i].bytes}, *queue));
    addresses[i] = to;
  }
  LATHE_TRY(device_->wait(*queue));
  return memory;
}

Result<std::shared_ptr<const StreamedWeights::Placement>> StreamedWeights::place() {
  const std::lock_guard lock(mutex_);
  if (placement_) return placement_;
  auto placement = std::make_shared<Placement>();
  placement->on_device = fixed_addresses_;
  LATHE_ASSIGN(placement->memory, upload(stays_, placement->on_device));
  placement->steps = steps_;
  placement->buffer_bytes = buffer_bytes_;
  placement_ = placement;
  return placement_;
}

}  // namespace lathe
