// SPDX-License-Identifier: Apache-2.0
// Replaying the steps of a context from a captured graph (of CUDA, say) instead of launching each.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/graph_maker.h"
#include "runtime/recent_keys.h"

namespace lathe {

// A captured graph holds sizes and addresses. The first run with given ones runs step by step; the second, if it has
// the same, captures the steps, and from then on the graph is replayed. So addresses that change with every run cost no
// graphs. One of several graphs is made ready by a thread of its own, and its run goes step by step until it is.
// No run captures if the driver was at that when it began: it was launched more slowly already. One thread at a time,
// as the context that owns it; the device outlives it.
class Replay {
 public:
  // `addresses`: how many addresses a run has; `sizes`: how many sizes may be added to them.
  Replay(Device& device, size_t addresses, size_t sizes);

  // So many graphs instead of one: of the runs that were seen last, of which add_sizes() tells the sizes.
  void hold_most(size_t graphs);
  // Sizes have changed, or what else graphs hold: what is captured is of no use.
  void forget();
  // The coming run, of which the caller tells all addresses, and then sizes. Running allocates nothing.
  void begin();
  void add_address(const void* address) { current_.push_back(reinterpret_cast<int64_t>(address)); }
  void add_sizes(std::span<const int64_t> sizes) { current_.insert(current_.end(), sizes.begin(), sizes.end()); }
  // Whether a graph that is ready holds the coming run.
  bool has_coming();
  // Whether a graph that is ready holds the coming run, which it may capture first; where none does, the run is to go
  // step by step. `work` gives all steps to the queue that it is given, and needs `keeps` as long as the graph is
  // there. A failure is the capture's: nothing has run.
  Result<bool> hold(const std::function<Result<>(Queue&)>& work, std::shared_ptr<const void> keeps = nullptr);
  Result<> replay(Queue& queue);  // what hold() has found
  // Of several graphs: true from a run on that none was ready for, until as many in a row have been replayed as there
  // are graphs, kMostAwaited at most. Few of the runs to come can then be without one.
  bool awaits_replays() const { return replays_missing_ > 0; }
  static constexpr size_t kMostAwaited = 32;

 private:
  bool find_coming();
  Result<bool> capture(const std::function<Result<>(Queue&)>& work, std::shared_ptr<const void> keeps);
  Result<bool> record(size_t place, const std::function<Result<>(Queue&)>& work);
  bool is_seen();
  bool is_ready(size_t place) const { return graphs_[place]->is_ready.load(std::memory_order_acquire); }

  Device& device_;
  const size_t words_;  // of a run, at the most
  size_t most_ = 1;
  RecentKeys held_, seen_;                          // runs that graphs hold, and that went step by step lately
  std::vector<std::shared_ptr<MadeGraph>> graphs_;  // by the place of their run in held_
  std::vector<int64_t> current_;                    // the coming run: its addresses and sizes
  std::optional<size_t> coming_;                    // the place of its graph
  GraphMaker maker_;
  size_t replays_missing_ = 0;  // of those that it awaits
  bool is_slow_ = false;        // the coming run, for the maker was busy when it began
};

}  // namespace lathe
