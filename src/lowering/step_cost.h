// SPDX-License-Identifier: Apache-2.0
// What steps ask for and about how long they take, to tell people. Nothing is decided by it.
#pragma once

#include "lowering/region_lowering.h"

namespace lathe {

// `problem`: that the step solves; null = there is none.
RegionReport describe_step(const plan::Step& step, std::string kind, const Choice& choice, const Problem* problem,
                           const LoweringContext& context);

// The share of the time, from 0 to 1, that goes to plain evaluations.
double evaluated_share(const BuildReport& report);

// One warning when that is more than a hundredth: what is evaluated, and that it may be slow.
void warn_of_evaluations(const BuildReport& report, Log& log);

// With an editable timing cache: logs each step's candidates, by the key and the hashes that ITimingCache::update()
// takes, in the format that tools for TensorRT's log read.
void log_editable_tactics(const BuildReport& report, Log& log);

// The plan's metadata that holds the share.
inline constexpr std::string_view kEvaluatedShareKey = "evaluated_share";

}  // namespace lathe
