// SPDX-License-Identifier: Apache-2.0
// What a plan says of the work of its steps and of the device's limits, for people: kCostsKey.
#pragma once

#include <string>

#include "lowering/build.h"

namespace lathe::api {

// {"device": {"cores", "clock_mhz", "memory_bytes_per_us", "cache_bytes_per_us", "launch_us", "operations_per_us":
// {"f64", "f32", "f16", "i8"}}, "steps": [[predicted milliseconds, operations, bytes], ...]}: rates are those that the
// cost model reckons with, and no kernel exceeds.
std::string describe_costs(const BuildReport& report, const TunerOptions& tuner);

}  // namespace lathe::api
