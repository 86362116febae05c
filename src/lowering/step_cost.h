// SPDX-License-Identifier: Apache-2.0
// About how long steps take, to tell the user how much of the work no kernel does. Nothing is decided by it.
#pragma once

#include "lowering/build.h"

namespace lathe {

// Of a step that no tactic predicts, whose operands have these dims.
double estimated_microseconds(const plan::Step& step, std::span<const Dims> inputs, std::span<const Dims> outputs,
                              const Target& target);

// The share of the time, from 0 to 1, that goes to plain evaluations.
double evaluated_share(const BuildReport& report);

// One warning when that is more than a hundredth: what is evaluated, and that it may be slow.
void warn_of_evaluations(const BuildReport& report, Log& log);

// The plan's metadata that holds the share.
inline constexpr std::string_view kEvaluatedShareKey = "evaluated_share";

}  // namespace lathe
