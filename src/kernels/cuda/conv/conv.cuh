// SPDX-License-Identifier: Apache-2.0
// Convolution as a matrix product whose left operand is gathered from the input: rows are output pixels, columns output
// channels; the groups are a batch.
#pragma once

#include "conv/gather_loader.cuh"
#include "conv/window_loader.cuh"
