// SPDX-License-Identifier: Apache-2.0
// Builds for each architecture with NVIDIA's compiler, which needs no GPU.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda/nvrtc.h"
#include "ir/graph.h"
#include "lowering/build.h"

namespace lathe::cuda {

// The parameter is the architecture, as 90 of sm_90.
class Architectures : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const auto found = nvrtc();
    if (found) return;
    ASSERT_EQ(std::getenv("CI"), nullptr) << found.error().to_string();
    GTEST_SKIP() << found.error().to_string();
  }
  std::string target() const { return fmt::format("cuda-sm_{}", GetParam()); }
  // By the cost model. T in the text stands for the type.
  Result<std::unique_ptr<BuiltPlan>> build(std::string text, const std::string& type,
                                           const std::vector<std::string_view>& without = {}) const {
    for (size_t at = text.find("T["); at != std::string::npos; at = text.find("T[")) text.replace(at, 1, type);
    LATHE_ASSIGN(ir::Graph graph, ir::parse_graph(text));
    BuildOptions options;
    LATHE_ASSIGN(const BackendBuild backend, prepare_build(target(), {}));
    use_backend(backend, options);
    std::erase_if(options.tactics,
                  [&](const Tactic* tactic) { return std::ranges::count(without, tactic->name()) > 0; });
    options.tuner.sparsity = backend.no_sparsity.empty();
    options.tuner.budget_seconds = 0;
    return build_plan(std::move(graph), options);
  }
};

}  // namespace lathe::cuda
