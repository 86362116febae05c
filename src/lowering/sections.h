// SPDX-License-Identifier: Apache-2.0
// Which steps of a plan run beside each other, on auxiliary streams.
#pragma once

#include "device/target.h"
#include "lowering/build.h"

namespace lathe {

// Cuts sections (plan::ParallelSection) out of the plan's steps, with at most so many streams besides the main one:
// where branches that do not depend on each other take longer, one behind the other, than beside each other with what
// it costs to fork and to join. Steps whose sizes depend on data, those of the host and those of blocks belong to none.
// Buffers' lifetimes are found afterwards, for they depend on it.
Result<> find_sections(plan::Plan& plan, const BuildReport& report, const Target& target, uint32_t most_streams);

}  // namespace lathe
