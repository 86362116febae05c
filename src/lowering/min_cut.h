// SPDX-License-Identifier: Apache-2.0
// The minimum cut between two terminals of a directed graph, by shortest augmenting paths (Edmonds and Karp, 1972).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lathe {

class MinCut {
 public:
  explicit MinCut(size_t nodes) : edges_of_(nodes + 2) {}

  // What is paid when `node` is on the sink's side, and when it is on the source's. Costs add up; none is negative.
  void add_node(size_t node, int64_t on_sink_side, int64_t on_source_side);
  // What is paid when `from` is on the source's side and `to` on the sink's.
  void add_edge(size_t from, size_t to, int64_t cost);

  // For each node whether it is on the sink's side of a cut of least cost; of several such cuts that with the fewest
  // nodes on the source's.
  std::vector<bool> solve();

 private:
  struct Edge {
    size_t from = 0, to = 0;
    int64_t capacity = 0;
  };
  size_t source() const { return edges_of_.size() - 2; }
  size_t sink() const { return edges_of_.size() - 1; }
  std::vector<size_t> reach() const;

  std::vector<Edge> edges_;  // each followed by the one in the other direction
  std::vector<std::vector<size_t>> edges_of_;
};

}  // namespace lathe
