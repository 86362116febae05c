// SPDX-License-Identifier: Apache-2.0
// Convolution as a matrix product of gathered pixels and sparse weights.
#pragma once

#include "conv/conv.cuh"
#include "gemm_sparse/gemm_sparse.cuh"
