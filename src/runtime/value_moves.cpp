// SPDX-License-Identifier: Apache-2.0
#include "runtime/value_moves.h"

#include <algorithm>

#include "runtime/tensor_copy.h"

namespace lathe {
namespace {

std::string dims_text(const TensorArg& arg) {
  return to_string(to_shape(std::span<const int64_t>(arg.dims, static_cast<size_t>(arg.rank))));
}

}  // namespace

TensorArg dense_at(void* data, TensorArg shape) {
  int64_t stride = 1;
  for (int d = shape.rank; d-- > 0; stride *= shape.dims[d]) shape.strides[d] = stride;
  shape.data = data;
  return shape;
}

TensorArg slice_of(const TensorArg& whole, uint32_t axis, int64_t index) {
  TensorArg part = whole;
  part.rank = whole.rank - 1;
  for (int d = static_cast<int>(axis); d < part.rank; ++d) {
    part.dims[d] = whole.dims[d + 1];
    part.strides[d] = whole.strides[d + 1];
  }
  const int64_t before = index * whole.strides[axis];
  part.data = static_cast<std::byte*>(whole.data) + before * static_cast<int64_t>(size_of(whole.dtype));
  return part;
}

ValueMoves::ValueMoves(const Engine& engine, const plan::Step& block, ShapeBinding& shapes, ContextMemory& memory,
                       TensorStorage& storage)
    : engine_(engine),
      plan_(engine.plan()),
      block_(block),
      shapes_(shapes),
      memory_(memory),
      storage_(storage),
      written_(plan_.buffers.size() + plan_.bindings.size() + plan_.dynamic_slots) {}

void ValueMoves::clear() {
  moves_.clear();
  ++set_;
}

// Of one that can be written.
size_t ValueMoves::storage_number(plan::TensorId id) const {
  const plan::TensorDesc& tensor = plan_.tensors[id];
  const size_t first = tensor.storage == plan::StorageKind::arena     ? 0
                       : tensor.storage == plan::StorageKind::binding ? plan_.buffers.size()
                                                                      : plan_.buffers.size() + plan_.bindings.size();
  return first + tensor.index;
}

void ValueMoves::note(Move move) {
  if (plan_.tensors[move.from].storage != plan::StorageKind::constant) {
    const size_t source = storage_number(move.from);
    move.overwritten = written_[source] == set_ || (move.from != move.to && source == storage_number(move.to));
  }
  if (move.from != move.to) written_[storage_number(move.to)] = set_;
  moves_.push_back(move);
}

Result<> ValueMoves::add(plan::TensorId from, plan::TensorId to) {
  if (to == plan::kNoTensor) return {};
  LATHE_ASSIGN(const TensorArg source, storage_.find(from));
  note({from, to, source});
  return {};
}

Result<> ValueMoves::add_sizes(plan::TensorId from, plan::TensorId to) {
  LATHE_ASSIGN(const TensorArg source, storage_.find(from));
  moves_.push_back({from, to, source, /*sizes_only=*/true});
  return {};
}

Result<> ValueMoves::add_slice(plan::TensorId from, const plan::Slice& slice, int64_t round, plan::TensorId to) {
  LATHE_ASSIGN(const TensorArg whole, storage_.find(from));
  const int64_t index = slice.reversed ? whole.dims[slice.axis] - 1 - round : round;
  note({from, to, slice_of(whole, slice.axis, index)});
  return {};
}

Result<> ValueMoves::run(std::span<const SymbolId> renewed, Queue& queue) {
  shapes_.forget(renewed);
  for (const Move& move : moves_) LATHE_TRY(check_sizes(move));
  LATHE_TRY(shapes_.check_due_constraints());
  if (saved_.size() < moves_.size()) saved_.resize(moves_.size());
  for (size_t i = 0; i < moves_.size(); ++i)
    if (moves_[i].overwritten) LATHE_TRY(save(i, queue));
  for (const Move& move : moves_) LATHE_TRY(finish(move, queue));
  return {};
}

Result<> ValueMoves::check_sizes(const Move& move) const {
  const plan::TensorDesc& to = plan_.tensors[move.to];
  if (shapes_.take_dims(to, {move.source.dims, static_cast<size_t>(move.source.rank)})) return {};
  return fail(ErrorCode::execution_failed, "step '{}' ({}): '{}' of {} cannot become '{}', which is {} by the plan",
              block_.name, block_.kind(), plan_.tensors[move.from].name, dims_text(move.source), to.name,
              to_string(to.dims));
}

Result<> ValueMoves::save(size_t i, Queue& queue) {
  TensorArg& source = moves_[i].source;
  const auto bytes = static_cast<size_t>(lathe::bytes_of(source.dtype, source.volume()).value_or(0));
  LATHE_TRY(memory_.grow(saved_[i], bytes));
  const TensorArg saved = dense_at(saved_[i].data(), source);
  LATHE_TRY(copy_tensor(source, saved, engine_.device(), queue));
  source = saved;
  return {};
}

Result<> ValueMoves::finish(const Move& move, Queue& queue) {
  if (move.sizes_only) return {};
  const plan::TensorDesc& to = plan_.tensors[move.to];
  if (move.from == move.to && storage_.address(to) == move.source.data) return {};
  LATHE_TRY(storage_.provide(move.to));
  LATHE_ASSIGN(const TensorArg target, storage_.find(move.to));
  return copy_tensor(move.source, target, engine_.device(), queue);
}

}  // namespace lathe
