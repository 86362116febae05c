// SPDX-License-Identifier: Apache-2.0
// How long work takes on a GPU.
#pragma once

#include <functional>
#include <vector>

#include "device/cuda/stream.h"

namespace lathe::cuda {

// Microseconds of `work`, `repeats` times. Short work is captured several times over and replayed, so that the host's
// cost of launching is no part of the times.
Result<std::vector<double>> time_work(Stream& stream, const std::function<Result<>(Queue&)>& work, int repeats);

}  // namespace lathe::cuda
