// SPDX-License-Identifier: Apache-2.0
// Kernels that leave out zeros of 2:4 sparse weights: whether a build has them, what it says of them, and weights that
// are made so.
#pragma once

#include "api/builder/builder_config.h"
#include "lowering/build.h"

namespace lathe::api {

// By BuilderFlag::kSPARSE_WEIGHTS. Where it has no effect, the log says why.
bool uses_sparsity(const BuilderConfig& settings, const BackendBuild& backend, Log& log);

// Makes weights of products and convolutions 2:4 sparse where setForcedSparsity() asks for it.
Result<> force_sparsity(const BuilderConfig& settings, ir::Graph& graph, const BuildOptions& options);

// Which layers have such weights, and which of them were given such a kernel.
void log_sparsity(const BuildReport& report, Log& log);

}  // namespace lathe::api
