// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay.h"

#include <algorithm>

namespace lathe {

Replay::Replay(Device& device, size_t addresses, size_t sizes) : device_(device), words_(addresses + sizes) {
  current_.reserve(words_);
  hold_most(1);
}

void Replay::hold_most(size_t graphs) {
  most_ = graphs;
  graphs_.reserve(most_);
  seen_.resize(most_);
  for (Run& run : seen_) run.reserve(words_);
}

void Replay::forget() {
  for (Captured& captured : graphs_) captured.run.clear();
  for (Run& run : seen_) run.clear();
}

std::vector<const void*>& Replay::begin() {
  current_.clear();
  return current_;
}

void Replay::add_sizes(std::span<const int64_t> sizes) {
  for (const int64_t size : sizes) current_.push_back(reinterpret_cast<const void*>(size));
}

bool Replay::has_coming() {
  const auto held = std::ranges::find(graphs_, current_, &Captured::run);
  if (held == graphs_.end()) return false;
  std::rotate(graphs_.begin(), held, held + 1);
  return true;
}

Result<bool> Replay::hold(const std::function<Result<>(Queue&)>& work, std::shared_ptr<const void> keeps) {
  if (has_coming()) {
    if (most_ == 1) seen_.front().clear();  // it is not the last run any more: buffers that take turns cost no graphs
    return true;
  }
  return is_seen() ? capture(work, std::move(keeps)) : Result<bool>(false);
}

// Whether such a run went step by step lately; it counts as one from now on.
bool Replay::is_seen() {
  const auto seen = std::ranges::find(seen_, current_);
  if (seen != seen_.end()) return true;
  std::rotate(seen_.begin(), seen_.end() - 1, seen_.end());
  std::swap(seen_.front(), current_);
  return false;
}

// Into a new graph, or the one that was not held for longest; false where the device has no graphs.
Result<bool> Replay::capture(const std::function<Result<>(Queue&)>& work, std::shared_ptr<const void> keeps) {
  const auto idle = std::ranges::find_if(graphs_, [](const Captured& captured) { return captured.run.empty(); });
  if (idle == graphs_.end() && graphs_.size() < most_) {
    LATHE_ASSIGN(std::unique_ptr<CapturedGraph> graph, device_.capture(work));
    if (!graph) return false;
    graphs_.push_back({std::move(keeps), std::move(graph), current_});
    std::rotate(graphs_.begin(), graphs_.end() - 1, graphs_.end());
    return true;
  }
  const auto oldest = idle == graphs_.end() ? graphs_.end() - 1 : idle;
  oldest->run.clear();
  LATHE_TRY(oldest->graph->update(work));
  oldest->keeps = std::move(keeps);
  oldest->run = current_;
  std::rotate(graphs_.begin(), oldest, oldest + 1);
  return true;
}

}  // namespace lathe
