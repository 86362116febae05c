// SPDX-License-Identifier: Apache-2.0
// Kernel `recurrence_elements`: a layer of an RNN, GRU or LSTM over a sequence, of f32 or f64, computed in doubles.
// What kernel `recurrence` does not take.
//   program  none
//   params   recurrence::LayerParams
//   inputs   those of the op, in its order: x [steps, batch, directions * gates * hidden],
//            r [directions, gates * hidden, hidden], bias?, lengths? (integers), initial h?, initial c?, peepholes?;
//            omitted ones have rank 0 or lie beyond the list's end
//   outputs  y; the last h; the last c (LSTM only, optional)
// All of any strides.
#pragma once

#include "kernels/cpu/recurrence/layer_params.h"
