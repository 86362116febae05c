// SPDX-License-Identifier: Apache-2.0
#include "runtime/graph_maker.h"

#include <new>
#include <system_error>
#include <utility>

#include "runtime/driver_turns.h"

namespace lathe {
namespace {

void make_ready(MadeGraph& graph) {
  try {
    graph.made = graph.graph->make_ready();
  } catch (const std::bad_alloc&) {  // which would end the process, as the thread has nobody to tell
    graph.made = fail(ErrorCode::out_of_memory, "no memory to prepare captured work");
  }
  graph.is_ready.store(true, std::memory_order_release);
}

}  // namespace

GraphMaker::~GraphMaker() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void GraphMaker::make(std::shared_ptr<MadeGraph> graph) {
  if (!start()) return make_ready(*graph);
  {
    const std::lock_guard lock(mutex_);
    graph->is_ready = false;
    busy_ = true;
    next_ = std::move(graph);
  }
  changed_.notify_all();
}

bool GraphMaker::start() {
  try {
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  } catch (const std::system_error&) {  // the caller is one
  } catch (const std::bad_alloc&) {
  }
  return thread_.joinable();
}

void GraphMaker::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stops_ || next_; });
    if (stops_) return;
    std::shared_ptr<MadeGraph> graph = std::move(next_);
    lock.unlock();
    {
      const std::lock_guard turn(driver_turns());
      make_ready(*graph);
    }
    graph.reset();
    busy_.store(false, std::memory_order_release);
    lock.lock();
    changed_.wait_for(lock, kBetweenTurns, [&] { return stops_; });
  }
}

}  // namespace lathe
