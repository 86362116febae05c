// SPDX-License-Identifier: Apache-2.0
// Every allocation on the way of a kernel to a worker process and back may fail: no process and no memory is left over.
#include <sys/wait.h>

#include "device/cuda/toolchain.h"
#include "robustness/allocation_sweep.h"

namespace lathe::cuda {
namespace {

TEST(AllocationFailure, CompilingInAWorker) {
  CompilerOptions options;
  options.nvrtc = {FAKE_NVRTC};
  options.workers = 1;
  const CompileRequest request{"extern \"C\" void lathe_kernel() {}\n", {}, {"--gpu-architecture=sm_90a"}};
  EXPECT_GT(sweep_allocations([&] {
              const auto toolchain = open_toolchain(options);
              if (!toolchain) return false;
              const auto compiled = (*toolchain)->compile(request);
              EXPECT_TRUE(!compiled || compiled->code.starts_with("\177ELF"));
              return compiled.has_value();
            }),
            20);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a worker is left";
}

}  // namespace
}  // namespace lathe::cuda
