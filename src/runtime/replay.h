// SPDX-License-Identifier: Apache-2.0
// Replaying the steps of a context from a captured graph (of CUDA, say) instead of launching each.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "device/device.h"

namespace lathe {

// A captured graph holds sizes and addresses. The first run with given ones runs step by step; the second, if it has
// the same, captures the steps, and from then on the graph is replayed. So addresses that change with every run cost no
// graphs. One thread at a time, as the context that owns it; the device outlives it.
class Replay {
 public:
  // `addresses`: how many addresses a run has.
  Replay(Device& device, size_t addresses);

  // Sizes have changed: what is captured is of no use.
  void forget();
  // The addresses of the coming run, for the caller to fill in; empty at first. Running allocates nothing.
  std::vector<const void*>& begin();
  // Whether the graph holds the coming run, which it may capture first; where it does not, the run is to go step by
  // step. `work` gives all steps to the queue that it is given. A failure is the capture's: nothing has run.
  Result<bool> hold(const std::function<Result<>(Queue&)>& work);
  Result<> replay(Queue& queue) { return graph_->replay(queue); }  // what it holds

 private:
  Device& device_;
  std::unique_ptr<CapturedGraph> graph_;
  std::vector<const void*> current_;   // of this run
  std::vector<const void*> captured_;  // that the graph holds
  std::vector<const void*> seen_;      // of the last run
};

}  // namespace lathe
