// SPDX-License-Identifier: Apache-2.0
#include "runtime/slice_views.h"

#include <algorithm>

#include "runtime/storage_uses.h"
#include "runtime/value_moves.h"

namespace lathe {
namespace {

constexpr uintptr_t kAlignment = 16;  // that kernels rely on, of the application's memory, too

// Row-major, without gaps, and where a kernel may take it for a buffer.
bool is_like_buffer(const TensorArg& slice) {
  int64_t dense = 1;
  for (int d = slice.rank; d-- > 0; dense *= slice.dims[d])
    if (slice.dims[d] != 1 && slice.strides[d] != dense) return false;
  return reinterpret_cast<uintptr_t>(slice.data) % kAlignment == 0;
}

}  // namespace

SliceViews::SliceViews(const Engine& engine, size_t loop, ContextMemory& memory, const TensorStorage& storage)
    : plan_(engine.plan()), memory_(memory), storage_(storage) {
  const plan::Step& step = plan_.steps[loop];
  const auto& block = std::get<plan::Block>(step.work);
  if (block.kind != plan::BlockKind::loop) return;
  const plan::Body& body = block.bodies[0];
  const StorageUses uses(plan_, loop);
  const auto make = [&](plan::TensorId whole, plan::TensorId part, const plan::Slice& slice) {
    const plan::TensorDesc &from = plan_.tensors[whole], &to = plan_.tensors[part];
    const bool possible = to.storage == plan::StorageKind::arena && plan_.buffers[to.index].first >= loop &&
                          uses.of(to) == 1 && to.strides.empty() && to.offset == Expr(0) &&
                          !engine.is_data_dependent(part) && !engine.is_data_dependent(whole) && !uses.is_written(from);
    return View{whole, part, slice, possible};
  };
  for (size_t k = 0; k < block.scanned.size(); ++k) {
    const size_t operand = 2 + block.carried + k;
    scanned_.push_back(make(step.inputs[operand], body.params[operand], block.scanned[k]));
    const plan::TensorDesc &from = plan_.tensors[step.inputs[operand]], &to = plan_.tensors[body.params[operand]];
    const bool is_output = std::any_of(step.outputs.begin(), step.outputs.end(), [&](plan::TensorId id) {
      return id != plan::kNoTensor && plan_.tensors[id].storage == from.storage &&
             plan_.tensors[id].index == from.index;
    });
    scanned_.back().possible &= !uses.is_written(to) && !is_output;
  }
  for (size_t k = 0; k < block.stacked.size(); ++k)
    stacked_.push_back(make(step.outputs[block.carried + k], body.results[1 + block.carried + k], block.stacked[k]));
}

Result<bool> SliceViews::view_scanned(size_t i, int64_t round) { return view(scanned_[i], round); }

Result<bool> SliceViews::view_stacked(size_t i, int64_t round) { return view(stacked_[i], round); }

Result<bool> SliceViews::view(const View& view, int64_t round) {
  if (!view.possible) return false;
  const uint32_t buffer = plan_.tensors[view.part].index;
  LATHE_ASSIGN(const TensorArg whole, storage_.find(view.whole));
  LATHE_ASSIGN(const TensorArg part, storage_.find(view.part));
  const int64_t length = whole.dims[view.slice.axis];
  memory_.move_buffer(buffer, nullptr);
  if (round >= length) return false;
  const TensorArg slice = slice_of(whole, view.slice.axis, view.slice.reversed ? length - 1 - round : round);
  const bool fits = std::equal(slice.dims, slice.dims + slice.rank, part.dims) && slice.data &&
                    memory_.buffer_bytes(buffer) == bytes_of(slice.dtype, slice.volume());
  if (!fits || !is_like_buffer(slice)) return false;
  memory_.move_buffer(buffer, slice.as<std::byte>());
  return true;
}

void SliceViews::restore() {
  for (const auto* views : {&scanned_, &stacked_})
    for (const View& view : *views)
      if (view.possible) memory_.move_buffer(plan_.tensors[view.part].index, nullptr);
}

}  // namespace lathe
