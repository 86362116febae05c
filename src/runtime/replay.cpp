// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay.h"

namespace lathe {

Replay::Replay(Device& device, size_t addresses) : device_(device) {
  for (auto* held : {&current_, &recorded_, &seen_}) held->reserve(addresses);
}

void Replay::forget() {
  recorded_.clear();
  seen_.clear();
}

std::vector<const void*>& Replay::begin() {
  current_.clear();
  return current_;
}

Result<bool> Replay::run(Queue& queue, const std::function<Result<>(Queue&)>& work) {
  if (current_ != recorded_) {
    if (current_ != seen_) {
      std::swap(current_, seen_);
      return false;
    }
    recorded_.clear();
    if (recording_) {
      LATHE_TRY(recording_->update(work));
    } else {
      LATHE_ASSIGN(recording_, device_.record(work));
      if (!recording_) return false;
    }
    recorded_ = current_;
  }
  LATHE_TRY(recording_->replay(queue));
  return true;
}

}  // namespace lathe
