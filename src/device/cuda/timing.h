// SPDX-License-Identifier: Apache-2.0
// How long work takes on a GPU.
#pragma once

#include <functional>
#include <vector>

#include "device/cuda/stream.h"
#include "device/device.h"

namespace lathe::cuda {

// Microseconds of `work`, `repeats` times. Short work is captured several times over and replayed, so that the host's
// cost of launching is no part of the times.
Result<std::vector<double>> time_work(Stream& stream, const std::function<Result<>(Queue&)>& work, int repeats);
// Of a graph, which is replayed as it is.
Result<std::vector<double>> time_replays(Stream& stream, CapturedGraph& graph, int repeats);

}  // namespace lathe::cuda
