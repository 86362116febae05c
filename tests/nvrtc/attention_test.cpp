// SPDX-License-Identifier: Apache-2.0
#include "nvrtc/architectures.h"

namespace lathe::cuda {
namespace {

// Attention of few queries holds keys and values in registers, of which the largest heads leave few.
TEST_P(Architectures, LargeHeads) {
  for (const std::string type : {"f16", "bf16"}) {
    const Result<std::unique_ptr<BuiltPlan>> built = build(R"(graph "g" {
      input %token: T[1, 2, 1, 256]
      input %keys: T[1, 1, 150, 256]
      input %values: T[1, 1, 150, 256]
      %y = attention{scale=0.0625}(%token, %keys, %values)
      output %y
    })",
                                                           type);
    ASSERT_TRUE(built) << built.error().to_string();
    const std::string& tactic = (*built)->plan.steps[0].tactic;
    EXPECT_TRUE(GetParam() < 80 || tactic.find(" rows x keys") != tactic.npos) << tactic;
  }
}

}  // namespace
}  // namespace lathe::cuda
