// SPDX-License-Identifier: Apache-2.0
#include "lowering/min_cut.h"

#include <algorithm>

namespace lathe {
namespace {

constexpr size_t kNotReached = SIZE_MAX;

}  // namespace

void MinCut::add_edge(size_t from, size_t to, int64_t cost) {
  if (cost == 0) return;
  edges_of_[from].push_back(edges_.size());
  edges_.push_back({from, to, cost});
  edges_of_[to].push_back(edges_.size());
  edges_.push_back({to, from, 0});
}

void MinCut::add_node(size_t node, int64_t on_sink_side, int64_t on_source_side) {
  const int64_t either = std::min(on_sink_side, on_source_side);
  add_edge(source(), node, on_sink_side - either);
  add_edge(node, sink(), on_source_side - either);
}

// The last edge of a shortest path with capacity from the source to each node.
std::vector<size_t> MinCut::reach() const {
  std::vector<size_t> last(edges_of_.size(), kNotReached);
  std::vector<size_t> queue{source()};
  for (size_t i = 0; i < queue.size(); ++i)
    for (const size_t e : edges_of_[queue[i]]) {
      const size_t to = edges_[e].to;
      if (edges_[e].capacity == 0 || to == source() || last[to] != kNotReached) continue;
      last[to] = e;
      if (to == sink()) return last;
      queue.push_back(to);
    }
  return last;
}

std::vector<bool> MinCut::solve() {
  std::vector<size_t> last = reach();
  for (; last[sink()] != kNotReached; last = reach()) {
    int64_t least = INT64_MAX;
    for (size_t node = sink(); node != source(); node = edges_[last[node]].from)
      least = std::min(least, edges_[last[node]].capacity);
    for (size_t node = sink(); node != source(); node = edges_[last[node]].from) {
      edges_[last[node]].capacity -= least;
      edges_[last[node] ^ 1].capacity += least;
    }
  }
  std::vector<bool> on_sink_side;
  for (size_t node = 0; node < source(); ++node) on_sink_side.push_back(last[node] == kNotReached);
  return on_sink_side;
}

}  // namespace lathe
