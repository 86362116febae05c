// SPDX-License-Identifier: Apache-2.0
#include "lowering/min_cut.h"

#include <algorithm>

namespace lathe {

void MinCut::connect(size_t from, size_t to, int64_t capacity) {
  if (capacity == 0) return;
  edges_of_[from].push_back(edges_.size());
  edges_.push_back({to, capacity});
  edges_of_[to].push_back(edges_.size());
  edges_.push_back({from, 0});
}

void MinCut::add_node(size_t node, int64_t on_sink_side, int64_t on_source_side) {
  const int64_t either = std::min(on_sink_side, on_source_side);
  connect(source(), node, on_sink_side - either);
  connect(node, sink(), on_source_side - either);
}

void MinCut::add_edge(size_t from, size_t to, int64_t cost) { connect(from, to, cost); }

// Distances from the source through edges that have capacity left; false when the sink is out of reach.
bool MinCut::find_levels() {
  level_.assign(edges_of_.size(), SIZE_MAX);
  level_[source()] = 0;
  std::vector<size_t> queue{source()};
  for (size_t i = 0; i < queue.size(); ++i)
    for (const size_t e : edges_of_[queue[i]])
      if (edges_[e].capacity > 0 && level_[edges_[e].to] == SIZE_MAX) {
        level_[edges_[e].to] = level_[queue[i]] + 1;
        queue.push_back(edges_[e].to);
      }
  return level_[sink()] != SIZE_MAX;
}

// Sends at most `flow` from the node to the sink; gives how much.
int64_t MinCut::push(size_t start, int64_t flow) {
  // The path so far, as edges; networks are too deep for recursion.
  std::vector<size_t> path;
  int64_t sent = 0;
  for (size_t node = start; flow > 0;) {
    if (node == sink()) {
      int64_t least = flow;
      for (const size_t e : path) least = std::min(least, edges_[e].capacity);
      for (const size_t e : path) edges_[e].capacity -= least, edges_[e ^ 1].capacity += least;
      sent += least, flow -= least;
      path.clear();
      node = start;
      continue;
    }
    size_t& at = next_[node];
    while (at < edges_of_[node].size()) {
      const Edge& edge = edges_[edges_of_[node][at]];
      if (edge.capacity > 0 && level_[edge.to] == level_[node] + 1) break;
      ++at;
    }
    if (at < edges_of_[node].size()) {
      path.push_back(edges_of_[node][at]);
      node = edges_[path.back()].to;
    } else if (path.empty()) {
      break;
    } else {
      node = edges_[path.back() ^ 1].to;
      path.pop_back();
      ++next_[node];
    }
  }
  return sent;
}

std::vector<bool> MinCut::solve() {
  while (find_levels()) {
    next_.assign(edges_of_.size(), 0);
    push(source(), INT64_MAX);
  }
  std::vector<bool> on_sink_side;
  for (size_t node = 0; node + 2 < edges_of_.size(); ++node) on_sink_side.push_back(level_[node] == SIZE_MAX);
  return on_sink_side;
}

}  // namespace lathe
