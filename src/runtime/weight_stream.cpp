// SPDX-License-Identifier: Apache-2.0
#include "runtime/weight_stream.h"

namespace lathe {

Result<std::unique_ptr<WeightStream>> WeightStream::create(const Engine& engine) {
  if (!engine.streamed()) return nullptr;
  std::unique_ptr<WeightStream> stream(new WeightStream(engine));
  LATHE_ASSIGN(stream->placement_, engine.streamed()->place());
  LATHE_ASSIGN(stream->buffers_, engine.device().allocate(2 * stream->placement_->buffer_bytes));
  stream->addresses_ = stream->placement_->on_device;
  return stream;
}

Result<> WeightStream::begin(Queue& queue) {
  next_ = 0;
  for (const size_t turn : {0, 1}) LATHE_TRY(copy(turn, queue));
  return {};
}

Result<> WeightStream::before(size_t step, Queue& queue) {
  if (!is_next(step)) return {};
  for (const StreamedWeights::Piece& piece : placement_->steps[next_].pieces)
    addresses_[piece.constant] = buffer(next_) + piece.offset;
  return join(next_, queue);
}

Result<> WeightStream::after(size_t step, Queue& queue) {
  if (!is_next(step)) return {};
  return copy(next_++ + 2, queue);
}

Result<> WeightStream::end(Queue& queue) {
  Result<> result;
  for (const size_t turn : {0, 1}) {
    Result<> joined = join(turn, queue);
    if (result) result = std::move(joined);
  }
  return result;
}

// Behind all that the run's queue was given so far: whoever read the buffer last among it.
Result<> WeightStream::copy(size_t turn, Queue& queue) {
  if (turn >= placement_->steps.size()) return {};
  auto* const forking = dynamic_cast<ForkingQueue*>(&queue);
  LATHE_CHECK(forking != nullptr);
  LATHE_ASSIGN(Queue * beside, forking->fork(number(turn)));
  copying_[turn % 2] = true;
  for (const StreamedWeights::Piece& piece : placement_->steps[turn].pieces)
    LATHE_TRY(engine_.device().copy({.to = buffer(turn) + piece.offset,
                                     .from = engine_.streamed()->on_host(piece.constant),
                                     .width = engine_.plan().constants[piece.constant].bytes},
                                    *beside));
  return {};
}

Result<> WeightStream::join(size_t turn, Queue& queue) {
  if (!std::exchange(copying_[turn % 2], false)) return {};
  return dynamic_cast<ForkingQueue&>(queue).join(number(turn));
}

}  // namespace lathe
