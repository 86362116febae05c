// SPDX-License-Identifier: Apache-2.0
// Optimization profiles, from shapes by input name to ranges of symbols.
#pragma once

#include "build/build.h"

namespace lathe {

// The range and optimum of every symbol of the graph under each profile; checked against the network's inputs. Without
// profiles there is one, in which every symbol has its whole range.
Result<std::vector<plan::Profile>> resolve_profiles(const ir::Graph& graph, const BuildOptions& options);

// Whether profile `index` says which values the symbol may have; otherwise they are the network's.
bool is_given(const ir::Graph& graph, const BuildOptions& options, size_t index, SymbolId symbol);

}  // namespace lathe
