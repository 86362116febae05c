// SPDX-License-Identifier: Apache-2.0
// Makes recorded graphs ready to be replayed on a thread of its own, for the driver takes longer for it than many a
// run.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "device/device.h"

namespace lathe {

// A graph, which is another thread's while it is not ready.
struct MadeGraph {
  std::shared_ptr<const void> keeps;  // that the graph needs
  std::unique_ptr<CapturedGraph> graph;
  std::atomic<bool> is_ready = true;
  Result<> made;  // of one that is ready
};

class GraphMaker {
 public:
  GraphMaker() = default;
  GraphMaker(const GraphMaker&) = delete;
  ~GraphMaker();  // when the graph that is being made is ready; one that waits never is

  // One at a time, while it is not busy. Whoever gives it away does nothing with it until it is ready.
  void make(std::shared_ptr<MadeGraph> graph);
  bool is_busy() const { return busy_.load(std::memory_order_acquire); }

 private:
  bool start();
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<MadeGraph> next_;
  std::atomic<bool> busy_ = false;
  std::thread thread_;
  bool stops_ = false;
};

}  // namespace lathe
