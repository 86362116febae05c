// SPDX-License-Identifier: Apache-2.0
// The networks of tests/kernels/*.graph on the emulator, or on the GPU that LATHE_TEST_DEVICE names.
#include "fixtures/networks.h"

#include <cstdlib>

#include "kernels/cuda/compiled_ahead.h"
#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/cuda_traits.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/generic/data_dependent_ops.h"
#include "kernels/cuda/joined_launch.h"

namespace lathe::cuda {
namespace {

CaseDevice make_emulator() {
  CaseDevice device;
  device.name = "cuda";
  device.device = only_notes_kernels() ? make_idle_device() : test_device();
  device.backend.target = device.device->describe();
  device.backend.target.limits = {.float8 = true};
  device.backend.traits = kTraits;
  device.backend.join_launches = joined_launch;
  device.backend.traits.arithmetic.float8_products = true;
  device.backend.traits.arithmetic.float8_block = 32;
  device.backend.tactics = cuda_tactics();
  device.backend.data_dependent = data_dependent_tactics();
  device.backend.compiler = make_emulated_compiler();
  device.backend.timing_key = device.device->timing_key();
  device.measures = true;
  device.compiles_slowly = true;
  device.only_compiles = only_notes_kernels();
  device.most_configurations = 3;
  return device;
}

CaseDevice make_gpu(const char* name) {
  CaseDevice device;
  device.name = "cuda";
  device.device = test_device();
  Result<BackendBuild> backend = find_backend("cuda")->prepare(name, {});
  EXPECT_TRUE(backend) << backend.error().to_string();
  device.backend = *std::move(backend);
  device.is_real = true;
  device.most_configurations = 6;
  return device;
}

class CudaNetworks : public testing::TestWithParam<NetworkCase> {};

// S161.
TEST_P(CudaNetworks, Hold) {
  const char* gpu = std::getenv("LATHE_TEST_DEVICE");
  static CaseDevice device = gpu ? make_gpu(gpu) : make_emulator();
  check_network(GetParam(), device);
}

TEST(CudaCases, NameEveryTactic) { expect_named(cuda_tactics(), data_dependent_tactics(), "cuda"); }

INSTANTIATE_TEST_SUITE_P(Files, CudaNetworks, testing::ValuesIn(network_cases()), name_of_test);

}  // namespace
}  // namespace lathe::cuda
