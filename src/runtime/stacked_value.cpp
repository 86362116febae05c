// SPDX-License-Identifier: Apache-2.0
#include "runtime/stacked_value.h"

#include <algorithm>

#include "runtime/tensor_copy.h"
#include "runtime/value_moves.h"

namespace lathe {
namespace {

constexpr int64_t kFirstRoom = 16;  // slices

size_t slice_bytes(const TensorArg& arg) {
  return static_cast<size_t>(lathe::bytes_of(arg.dtype, arg.volume()).value_or(0));
}

bool same_dims(const TensorArg& a, const TensorArg& b) {
  return a.rank == b.rank && std::equal(a.dims, a.dims + a.rank, b.dims);
}

std::span<const int64_t> sizes_of(const TensorArg& arg) { return {arg.dims, static_cast<size_t>(arg.rank)}; }

}  // namespace

StackedValue::StackedValue(const Engine& engine, ShapeBinding& shapes, const ContextMemory& memory,
                           TensorStorage& storage, plan::TensorId output, plan::Slice slice, plan::TensorId result)
    : engine_(engine),
      plan_(engine.plan()),
      shapes_(shapes),
      memory_(memory),
      storage_(storage),
      output_(output),
      slice_(slice),
      result_(result) {}

void StackedValue::begin(std::optional<int64_t> rounds) {
  length_ = rounds ? rounds : output().dims[slice_.axis].evaluate(shapes_.symbols());
  first_.rank = -1;
  room_ = 0;
}

Result<> StackedValue::take(int64_t round, Queue& queue) {
  LATHE_ASSIGN(const TensorArg slice, storage_.find(result_));
  if (first_.rank < 0) {
    first_ = slice;
    if (length_) LATHE_TRY(place_output(whole_of(slice, *length_)));
  } else if (!same_dims(slice, first_)) {
    return fail(ErrorCode::execution_failed, "'{}' is {} in round {} and was {} before: they cannot be stacked in '{}'",
                plan_.tensors[result_].name, to_string(to_shape(sizes_of(slice))), round,
                to_string(to_shape(sizes_of(first_))), output().name);
  }
  if (!length_) return collect(slice, round, queue);
  if (round >= *length_)
    return fail(ErrorCode::execution_failed, "output '{}' has {} slices, and the loop has more rounds", output().name,
                *length_);
  LATHE_ASSIGN(const TensorArg whole, storage_.find(output_));
  const int64_t index = slice_.reversed ? *length_ - 1 - round : round;
  const TensorArg place = slice_of(whole, slice_.axis, index);
  if (place.data == slice.data) return {};  // written there
  return copy_tensor(slice, place, engine_.device(), queue);
}

// Slices that would be stacked in this.
TensorArg StackedValue::whole_of(const TensorArg& slice, int64_t length) const {
  TensorArg whole = slice;
  whole.rank = slice.rank + 1;
  for (int d = slice.rank; d > static_cast<int>(slice_.axis); --d) whole.dims[d] = slice.dims[d - 1];
  whole.dims[slice_.axis] = length;
  return whole;
}

// Memory for the output, whose size is known now.
Result<> StackedValue::place_output(TensorArg whole) {
  if (!shapes_.take_dims(output(), sizes_of(whole)))
    return fail(ErrorCode::execution_failed, "output '{}' is {} by the plan, and the loop makes {}", output().name,
                to_string(output().dims), to_string(to_shape(sizes_of(whole))));
  LATHE_TRY(shapes_.check_due_constraints());
  return storage_.provide(output_);
}

Result<> StackedValue::collect(const TensorArg& slice, int64_t round, Queue& queue) {
  if (round == room_) LATHE_TRY(make_room(round + 1, queue));
  const int64_t place = slice_.reversed ? room_ - 1 - round : round;
  std::byte* to = collected_.data() + static_cast<size_t>(place) * slice_bytes(slice);
  return copy_tensor(slice, dense_at(to, slice), engine_.device(), queue);
}

// Twice as much as before: a loop of n rounds copies fewer than 2n slices again.
Result<> StackedValue::make_room(int64_t rounds, Queue& queue) {
  const size_t slice = slice_bytes(first_);
  const int64_t wanted = std::max(2 * room_, std::max(rounds, kFirstRoom));
  if (room_ == 0 && static_cast<size_t>(wanted) * slice <= collected_.size()) {
    room_ = slice == 0 ? wanted : static_cast<int64_t>(collected_.size() / slice);
    return {};
  }
  size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<size_t>(wanted), slice, &bytes))
    return fail(ErrorCode::out_of_memory, "output '{}' has more than {} slices of {} bytes", output().name, room_,
                slice);
  LATHE_ASSIGN(DeviceMemory larger, memory_.temporaries().allocate(bytes));
  const size_t held = static_cast<size_t>(room_) * slice;
  if (held > 0) {
    std::byte* to = larger.data() + (slice_.reversed ? bytes - held : 0);
    LATHE_TRY(engine_.device().copy({to, collected_.data(), held}, queue));
    LATHE_TRY(engine_.device().wait(queue));  // before the smaller one goes
  }
  collected_ = std::move(larger);
  room_ = wanted;
  return {};
}

Result<> StackedValue::finish(int64_t rounds, Queue& queue) {
  if (length_ && *length_ != rounds)
    return fail(ErrorCode::execution_failed, "output '{}' has {} slices, and the loop had {} rounds", output().name,
                *length_, rounds);
  if (rounds == 0) {
    // No slice tells the other sizes: those that nothing else tells are 0.
    TensorArg whole;
    whole.rank = static_cast<int>(output().dims.size());
    for (int d = 0; d < whole.rank; ++d)
      whole.dims[d] = output().dims[static_cast<size_t>(d)].evaluate(shapes_.symbols()).value_or(0);
    whole.dims[slice_.axis] = 0;
    return place_output(whole);
  }
  return length_ ? Result<>() : copy_collected(rounds, queue);
}

Result<> StackedValue::copy_collected(int64_t rounds, Queue& queue) {
  LATHE_TRY(place_output(whole_of(first_, rounds)));
  LATHE_ASSIGN(const TensorArg whole, storage_.find(output_));
  const TensorArg slice = dense_at(nullptr, first_);
  TensorArg source = whole_of(slice, rounds);
  for (int d = 0; d < slice.rank; ++d) source.strides[d < static_cast<int>(slice_.axis) ? d : d + 1] = slice.strides[d];
  source.strides[slice_.axis] = slice.volume();
  source.data = collected_.data() + (slice_.reversed ? static_cast<size_t>(room_ - rounds) * slice_bytes(slice) : 0);
  return copy_tensor(source, whole, engine_.device(), queue);
}

}  // namespace lathe
