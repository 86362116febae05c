// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda_tactics.h"

namespace lathe::cuda {

#define LATHE_CUDA_TACTIC(name)                              \
  Matched match_##name(const Problem& problem);              \
  const Tactic& name##_tactic();                             \
  const Tactic& name##_tactic() {                            \
    static const FunctionTactic tactic(#name, match_##name); \
    return tactic;                                           \
  }
#include "cuda_tactics.inc"
#undef LATHE_CUDA_TACTIC

const TacticList& cuda_tactics() {
  static const TacticList list = {
#define LATHE_CUDA_TACTIC(name) &name##_tactic(),
#include "cuda_tactics.inc"
#undef LATHE_CUDA_TACTIC
  };
  return list;
}

}  // namespace lathe::cuda
