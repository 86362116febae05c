// SPDX-License-Identifier: Apache-2.0
// The steps before it that attention of few queries does itself (Problem::inlined): queries that are computed, as where
// positions turn them, and caches of keys and values that take new rows. The device code is inlined.cuh.
#pragma once

#include <optional>
#include <string>

#include "kernels/cuda/source.h"

namespace lathe::cuda {

// Why that cannot be.
std::optional<std::string> refuse_inlined(const Problem& problem);

// The step that writes the input, if it is one of them.
std::optional<size_t> inlined_at(const Problem& problem, size_t input);

// Declares what takes the place of input `input` of the root, which step `step` of them writes. Its tensors become the
// emission's next inputs. Gives the text of an object of the input's name.
std::string declare_inlined(Source& source, const Problem& problem, size_t step, std::string_view name,
                            Emission& emission);

}  // namespace lathe::cuda
