// SPDX-License-Identifier: Apache-2.0
// All that is known of an engine, as JSON: what `lathe inspect` shows and `lathe diff` compares.
#pragma once

#include <nlohmann/json.hpp>

#include "session.h"

namespace lathe::cli {

using Json = nlohmann::ordered_json;

std::string text_at(const Json& json, const char* key);  // "" when it is not there or null
double number_at(const Json& json, const char* key);     // 0 when it is not there or no number
std::string origin_text(const Json& origin);             // "conv1 + relu1"

// planJson(), and "file", "scratch_bytes", "device" (rates of the target, or null), "total_milliseconds",
// "time_source", and "layers": the inspector's, each with "Step", "Operations", "Bytes", "PredictedMilliseconds",
// "MeasuredMilliseconds" (null), "TimeMilliseconds", "Share" (of all steps' time), "FloorMilliseconds" (the longer of
// moving the bytes and of the operations, at the target's rates), "Bound" (by which), "Precision", "InputTensors" and
// "OutputTensors" (numbers of "tensors"). Where the engine keeps no such details a layer is its name alone.
Json describe_engine(Session& session, const std::string& file);

// Sets how long steps took, in a run of their own: milliseconds in the order of "layers", negative for those that did
// not run; and what follows from times.
void set_times(Json& engine, const std::vector<double>& measured);

// What only the build knows: "Candidates", "Refusals" and "Why" of layers, from buildReportJson().
void add_build_report(Json& engine, const Json& report);

}  // namespace lathe::cli
