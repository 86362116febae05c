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
  held_.hold_most(most_, words_);
  seen_.hold_most(most_, words_);
}

void Replay::forget() {
  held_.forget();
  seen_.forget();
}

void Replay::begin() {
  current_.clear();
  coming_.reset();
  is_slow_ = maker_.is_busy();
}

bool Replay::find_coming() {
  if (!coming_) coming_ = held_.find(current_);
  return coming_.has_value();
}

bool Replay::has_coming() { return find_coming() && is_ready(*coming_); }

Result<bool> Replay::hold(const std::function<Result<>(Queue&)>& work, std::shared_ptr<const void> keeps) {
  if (most_ > 1 && !has_coming()) replays_missing_ = std::clamp<size_t>(graphs_.size(), 1, kMostAwaited);
  if (!find_coming()) return is_seen() ? capture(work, std::move(keeps)) : Result<bool>(false);
  if (most_ == 1) seen_.forget();  // it is not the last run any more: buffers that take turns cost no graphs
  if (!is_ready(*coming_) || graphs_[*coming_]->made) return is_ready(*coming_);
  held_.forget(*coming_);
  return fail(graphs_[*coming_]->made.error());
}

Result<> Replay::replay(Queue& queue) {
  if (replays_missing_ > 0) --replays_missing_;
  return graphs_[*coming_]->graph->replay(queue);
}

// Whether such a run went step by step lately; it counts as one from now on.
bool Replay::is_seen() {
  if (seen_.find(current_)) return true;
  seen_.add(current_);
  return false;
}

// Into a new graph, or the one that was not held for longest, unless the run is slow. The run is held when its graph is
// there, whatever fails or throws before.
Result<bool> Replay::capture(const std::function<Result<>(Queue&)>& work, std::shared_ptr<const void> keeps) {
  if (is_slow_) return false;
  const std::optional<size_t> place = held_.vacate();
  if (!place) return false;
  LATHE_ASSIGN(const bool recorded, record(*place, work));
  if (!recorded) return false;
  MadeGraph& made = *graphs_[*place];
  made.keeps = std::move(keeps);
  if (most_ > 1)
    maker_.make(graphs_[*place]);
  else
    LATHE_TRY(made.graph->make_ready());  // at once, as the run comes again and again
  held_.set(*place, current_);
  coming_ = place;
  return is_ready(*place);
}

// False where the device has no graphs.
Result<bool> Replay::record(size_t place, const std::function<Result<>(Queue&)>& work) {
  if (place < graphs_.size()) {
    LATHE_TRY(graphs_[place]->graph->record(work));
    return true;
  }
  auto made = std::make_shared<MadeGraph>();
  LATHE_ASSIGN(made->graph, device_.record(work));
  if (!made->graph) {
    replays_missing_ = 0;  // for none will come
    return false;
  }
  graphs_.push_back(std::move(made));
  return true;
}

}  // namespace lathe
