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
  is_slow_ = maker_.is_busy();
  return current_;
}

void Replay::add_sizes(std::span<const int64_t> sizes) {
  for (const int64_t size : sizes) current_.push_back(reinterpret_cast<const void*>(size));
}

bool Replay::find_coming() {
  const auto held = std::ranges::find(graphs_, current_, &Captured::run);
  if (held == graphs_.end()) return false;
  std::rotate(graphs_.begin(), held, held + 1);
  return true;
}

bool Replay::has_coming() { return find_coming() && graphs_.front().is_ready(); }

Result<bool> Replay::hold(const std::function<Result<>(Queue&)>& work, std::shared_ptr<const void> keeps) {
  if (!find_coming()) return is_seen() ? capture(work, std::move(keeps)) : Result<bool>(false);
  if (most_ == 1) seen_.front().clear();  // it is not the last run any more: buffers that take turns cost no graphs
  Captured& captured = graphs_.front();
  if (!captured.is_ready() || captured.made->made) return captured.is_ready();
  captured.run.clear();
  return fail(captured.made->made.error());
}

// Whether such a run went step by step lately; it counts as one from now on.
bool Replay::is_seen() {
  const auto seen = std::ranges::find(seen_, current_);
  if (seen != seen_.end()) return true;
  std::rotate(seen_.begin(), seen_.end() - 1, seen_.end());
  std::swap(seen_.front(), current_);
  return false;
}

// Into a new graph, or the one that was not held for longest; false where the device has no graphs, or the run is
// slow.
Result<bool> Replay::capture(const std::function<Result<>(Queue&)>& work, std::shared_ptr<const void> keeps) {
  if (is_slow_) return false;
  const auto idle = std::ranges::find_if(graphs_, [](const Captured& captured) { return captured.run.empty(); });
  if (idle == graphs_.end() && graphs_.size() < most_) {
    LATHE_ASSIGN(std::unique_ptr<CapturedGraph> graph, device_.record(work));
    if (!graph) return false;
    graphs_.push_back({std::make_shared<MadeGraph>(), {}});
    graphs_.back().made->graph = std::move(graph);
    return make_ready(graphs_.end() - 1, std::move(keeps));
  }
  const auto taken = idle != graphs_.end() ? idle : graphs_.end() - 1;
  taken->run.clear();
  LATHE_TRY(taken->made->graph->record(work));
  return make_ready(taken, std::move(keeps));
}

// Here where it is the only graph, which is of a run that comes again and again.
Result<bool> Replay::make_ready(std::vector<Captured>::iterator captured, std::shared_ptr<const void> keeps) {
  MadeGraph& made = *captured->made;
  made.keeps = std::move(keeps);
  if (most_ > 1)
    maker_.make(captured->made);
  else
    LATHE_TRY(made.graph->make_ready());
  captured->run = current_;
  std::rotate(graphs_.begin(), captured, captured + 1);
  return graphs_.front().is_ready();
}

}  // namespace lathe
