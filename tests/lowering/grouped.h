// SPDX-License-Identifier: Apache-2.0
// What grouping makes of a graph, as text.
#pragma once

#include <gtest/gtest.h>

#include "device/cuda/architecture.h"
#include "lowering/region.h"

namespace lathe {

// A line for each region: the ops of its nodes, those that a prologue computes in brackets before the op they are for.
// Where it has further results, the program that computes all of them follows; where it normalises its result, whether
// it writes that, too.
inline std::vector<std::string> grouped(const std::string& body, bool prologues = true) {
  const Result<ir::Graph> graph = ir::parse_graph("graph \"g\" {\n" + body + "\n}");
  EXPECT_TRUE(graph) << graph.error().to_string();
  std::vector<std::string> lines;
  if (!graph) return lines;
  constexpr OpKind kFurtherResults[] = {OpKind::layer_normalization, OpKind::rms_normalization};
  CostModel costs(cuda::describe(**cuda::find_architecture(90)));
  for (const Region& region : group_regions(*graph,
                                            {true,
                                             {.fuses_narrow_types = true,
                                             .fuses_prologues = prologues,
                                             .fuses_movement = prologues,
                                             .most_rows_normalized_as_read = 16,
                                             .rows_normalized_as_written = {17, 512},
                                             .most_rows_written_beside = 256,
                                             .further_results = kFurtherResults}},
                                            costs)) {
    std::string line;
    for (const auto& [input, producer] : region.producers)
      line += producer.moves_elements(region.root->input(input)->shape())
                  ? fmt::format("{}<{}> ", input, fmt::join(producer.space.reassociation(), " "))
                  : fmt::format("{}[{}] ", input, to_text(producer.program));
    auto node = region.nodes.begin();
    if (!region.producers.empty()) node = std::find(node, region.nodes.end(), region.root);
    for (; node != region.nodes.end(); ++node) line += fmt::format("{} ", (*node)->info().name);
    line.pop_back();
    if (region.has_further_results()) line += fmt::format(": {}", to_text(region.expression.program));
    if (region.expression.normalization && region.outputs.size() > 1) line += ", beside its result";
    lines.push_back(std::move(line));
  }
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace lathe
