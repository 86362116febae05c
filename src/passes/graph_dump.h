// SPDX-License-Identifier: Apache-2.0
// The network as text, as the passes go along: for people who look for the pass that is to blame.
#pragma once

#include <string>
#include <string_view>

#include "ir/graph.h"

namespace lathe {

// Files in one folder, numbered in the order in which they are written: 000_before.graph, 001_fold_constants.graph, ...
class GraphDump {
 public:
  // Makes the folder and removes what an earlier dump left in it. "" = nothing is ever written.
  static Result<GraphDump> open(const std::string& directory);

  // The graph as `name` leaves it. Constants of more than a few elements are written as digests.
  Result<> write(std::string_view name, const ir::Graph& graph);

  // What a pass was given that failed, with its constants unless they are large, so that it can become a text case.
  // The file's path, or "" when nothing is written.
  Result<std::string> write_failed(std::string_view pass, const ir::Graph& given);

 private:
  Result<std::string> write(std::string_view name, const ir::Graph& graph, int64_t max_elements);

  std::string directory_;
  int written_ = 0;
};

}  // namespace lathe
