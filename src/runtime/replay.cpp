// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay.h"

namespace lathe {

Replay::Replay(Device& device, size_t addresses) : device_(device) {
  for (auto* held : {&current_, &captured_, &seen_}) held->reserve(addresses);
}

void Replay::forget() {
  captured_.clear();
  seen_.clear();
}

std::vector<const void*>& Replay::begin() {
  current_.clear();
  return current_;
}

Result<bool> Replay::hold(const std::function<Result<>(Queue&)>& work) {
  if (current_ == captured_) return true;
  if (current_ != seen_) {
    std::swap(current_, seen_);
    return false;
  }
  captured_.clear();
  if (graph_) {
    LATHE_TRY(graph_->update(work));
  } else {
    LATHE_ASSIGN(graph_, device_.capture(work));
    if (!graph_) return false;
  }
  captured_ = current_;
  return true;
}

}  // namespace lathe
