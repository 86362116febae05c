// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"

namespace lathe {

// The condition of a loop that is written flat is computed at the end of a round for the next one, of which there may
// be no slice. Where it reads a scanned argument of `end`, the loop carries the round's number instead, by which it
// takes the slice from the whole; behind the last slice lies one of zeros, which decides nothing. Gives what the loop
// ends with then: `end`, or the node in its place.
Result<ir::Node*> carry_slices_of_condition(ir::Graph& graph, ir::Node* end);

}  // namespace lathe
