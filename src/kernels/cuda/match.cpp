// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/match.h"

#include <algorithm>

namespace lathe::cuda {

std::vector<Config> best_first(std::vector<Config> configs, size_t most) {
  std::stable_sort(configs.begin(), configs.end(),
                   [](const Config& a, const Config& b) { return a.predicted_us < b.predicted_us; });
  if (configs.size() > most) configs.resize(most);
  return configs;
}

void add_operand_inputs(const Problem& problem, Emission& emission) {
  for (size_t i = 0; i < problem.operands.size(); ++i) emission.inputs.push_back({StepInput::operand, i});
}

void add_prologue_inputs(const Problem& problem, size_t input, Emission& emission) {
  for (size_t k = 0; k < problem.inputs[input].operands.size(); ++k)
    emission.inputs.push_back({.kind = StepInput::input_operand, .index = input, .of_program = k});
}

}  // namespace lathe::cuda
