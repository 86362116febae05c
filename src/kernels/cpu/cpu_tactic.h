// SPDX-License-Identifier: Apache-2.0
// The CPU tactics: the folders kernels/cpu/<name>/ that hold <name>_tactic.cpp; each defines
//   Matched lathe::cpu::match_<name>(const Problem& problem);
// from which cpu_tactic.cpp makes the tactic <name>, which others declare as
//   const Tactic& lathe::cpu::<name>_tactic();
#pragma once

#include <functional>

#include "device/params.h"
#include "kernels/axes_tactic.h"
#include "kernels/cpu/cost_tactic.h"

namespace lathe::cpu {

const TacticList& cpu_tactics();

// Pieces of refusals that several tactics share; nullopt when all is well.
std::optional<std::string> refuse_epilogue(const Problem& problem);
struct ResultTypes {
  bool levels = false;  // of 8 bits, by an epilogue that ends with them, beside f32
};
std::optional<std::string> refuse_non_f32(const Problem& problem, ResultTypes results = {});
std::optional<std::string> refuse_layout(const Operand& operand, std::string_view what);  // channel stride must be 1

// The step of a kernel that reads these inputs of the root, then the program's operands.
Emission emission_of(const Problem& problem, std::vector<int64_t> params, const std::vector<size_t>& inputs);
template <Params P>
Emission emission_of(const Problem& problem, const P& params, const std::vector<size_t>& inputs) {
  return emission_of(problem, encode_params(params), inputs);
}
// ... that reads the root's first input, weights that were packed for it, then the program's operands.
Emission emission_with_weights(const Problem& problem, std::vector<int64_t> params, Packed packed);
// `pack` writes so many floats of known weights, input 1; `packing` says the same as data, if it can be said.
using PackWeights = std::function<void(const float* weights, std::span<float> packed)>;
using PackingOf = std::function<Packing()>;
Result<Emission> emission_with_weights(const Problem& problem, std::vector<int64_t> params, int64_t floats,
                                       const PackWeights& pack, const PackingOf& packing);
// ... whose kernel packs weights itself where they are not known. `params.packed` says which it is. Without a packing
// it does so, too, where weights can be replaced.
template <Params P>
Result<Emission> emission_with_weights(const Problem& problem, P params, int64_t floats, const PackWeights& pack,
                                       const PackingOf& packing = {}) {
  params.packed = problem.inputs[1].constant || (problem.inputs[1].weights && packing);
  if (!params.packed) return emission_of(problem, params, {0, 1});
  return emission_with_weights(problem, encode_params(params), floats, pack, packing);
}

// The match of a kernel that has no choice and computes a root alone, without an epilogue.
Matched match_root(const Problem& problem, std::vector<int64_t> params, const std::vector<size_t>& inputs,
                   const Features& supported = {}, const Effort& effort = {});
template <Params P>
Matched match_root(const Problem& problem, const P& params, const std::vector<size_t>& inputs,
                   const Features& supported = {}, const Effort& effort = {}) {
  return match_root(problem, encode_params(params), inputs, supported, effort);
}
std::vector<size_t> all_inputs(const Problem& problem);

}  // namespace lathe::cpu
