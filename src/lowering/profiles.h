// SPDX-License-Identifier: Apache-2.0
// Optimization profiles, from shapes by input name to ranges of symbols.
#pragma once

#include "lowering/build.h"

namespace lathe {

// The range and optimum of every symbol of the graph under each profile, whose names, ranks and fixed dimensions are
// checked against the network's inputs. A profile speaks of each dimension that is open; one that several inputs have
// takes the sizes that fit all of them, and fails where there are none. An element that a profile does not speak of has
// its range in the graph. Without profiles in the options there is one that speaks of nothing.
Result<std::vector<plan::Profile>> resolve_profiles(const ir::Graph& graph, const BuildOptions& options);

// Whether profile `index` of the options speaks of the symbol; otherwise its range is that of the graph.
bool is_given(const ir::Graph& graph, const BuildOptions& options, size_t index, SymbolId symbol);

}  // namespace lathe
