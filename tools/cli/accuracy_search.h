// SPDX-License-Identifier: Apache-2.0
// Which layers must stay in float32 so that a narrow engine is as accurate as is wanted: `lathe compare
// --accuracyBudget`.
#pragma once

#include <functional>

#include "session.h"

namespace lathe::cli {

// The greatest difference of an element of an output, relative to the greatest magnitude that the output should have.
// Infinite where it is not a number, or has another shape.
double relative_error(const HostTensor& have, const NamedTensor& want);

struct AccuracySearch {
  std::vector<std::string> layers;                                       // that can be narrow, in the network's order
  double budget = 0;                                                     // of the error
  std::function<double(const std::vector<std::string>& wide)> error_of;  // of an engine with these in float32
};

struct AccuracyResult {
  std::vector<std::string> wide;  // each was found too much when it was to be narrow besides those before it
  double error = 0;               // with these in float32
  double error_narrow = 0;        // with none
  int builds = 0;
};

// Tries to narrow all layers, then halves of what cannot be narrowed as a whole. Tells how far it is on standard error.
// Throws Failure when float32 alone misses the budget.
AccuracyResult find_wide_layers(const AccuracySearch& search);

// "--precisionConstraints=prefer --layerPrecisions=conv1:fp32,...", as a shell takes it; "" for none.
std::string layer_arguments(const std::vector<std::string>& wide);
// The value of --layerPrecisions.
std::string layer_precisions(const std::vector<std::string>& wide);

}  // namespace lathe::cli
