// SPDX-License-Identifier: Apache-2.0
// Convolutions whose windows the device's copy engine brings (conv/window_copies.cuh).
#pragma once

#include "kernels/cuda/conv/implicit_gemm_tactic.h"

namespace lathe::cuda::conv {

// Whether a tensor map can describe the windows.
bool can_copy_windows(const Problem& problem, const ImplicitGemm& form);
// The text that declares the map of the windows, input 0 of the emission, and their places.
std::string declare_windows(Source& source, const Problem& problem, const ImplicitGemm& form,
                            const gemm::TileShape& tile);

}  // namespace lathe::cuda::conv
