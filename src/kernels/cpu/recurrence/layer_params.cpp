// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/recurrence/layer_params.h"

#include <algorithm>

#include "kernels/cpu/kernel_table.h"

namespace lathe::cpu::recurrence {

bool is_valid(const LayerParams& params) {
  if (!is_one_of(params.cell, Cell::lstm) || !is_one_of(params.direction, Direction::bidirectional) ||
      !(params.clip >= 0) || (params.linear_before_reset && params.cell != Cell::gru))
    return false;
  return params.functions.size() == params.functions_of_direction() * static_cast<size_t>(params.directions()) &&
         std::all_of(params.functions.begin(), params.functions.end(),
                     [](const LayerParams::Function& f) { return is_activation(f.op); });
}

}  // namespace lathe::cpu::recurrence
