// SPDX-License-Identifier: Apache-2.0
// The matrix instructions of a warp and of four, with the fragment layouts of the PTX manual.
#pragma once

#include "cluster_run.h"

namespace emulator {

// `shape` is one of the names in warp_units.cpp: "m16n8k16 f16". Of sparse ones `e` says which elements of a are there.
void mma(ClusterRun& run, const char* shape, void* d, const unsigned* a, const unsigned* b, unsigned e = 0);
void sparse_mma(ClusterRun& run, const char* shape, void* d, const unsigned* a, const unsigned* b, unsigned e);
// What a thread has of 64 rows of a times `columns` rows of b, 16 columns of each, in the layout of panels.
void wgmma(const Product& product);
void ldmatrix(ClusterRun& run, unsigned* r, int count, bool transposed, const void* row);

}  // namespace emulator
