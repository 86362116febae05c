// SPDX-License-Identifier: Apache-2.0
// The networks of tests/kernels/*.graph on the emulator, or on the GPU that LATHE_TEST_DEVICE names.
#include "fixtures/networks.h"

#include <cstdlib>

#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/cuda_traits.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/emulated_module.h"
#include "kernels/cuda/generic/data_dependent_ops.h"
#include "kernels/cuda/joined_launch.h"

namespace lathe::cuda {
namespace {

// Sources that were compiled together are found, others are compiled alone.
class TogetherCompiler final : public Compiler {
 public:
  Result<> compile_together(const std::vector<std::string>& sources) {
    std::vector<std::string> generic, others;
    for (const std::string& source : sources) (is_generic(source) ? generic : others).push_back(source);
    LATHE_TRY(generic_.compile(generic));
    return others_.compile(others);
  }
  Result<std::vector<std::byte>> compile(std::string_view source) override {
    const EmulatedBatch& batch = is_generic(source) ? generic_ : others_;
    const std::vector<std::byte>* object = batch.find(std::string(source));
    if (object) return *object;
    return compile_for_emulator(source);
  }

 private:
  // Headers of generic kernels define names that other headers define, too.
  static bool is_generic(std::string_view source) { return source.find("\"generic/") != source.npos; }
  EmulatedBatch generic_, others_;
};

CaseDevice make_emulator() {
  CaseDevice device;
  device.name = "cuda";
  device.device = test_device();
  auto compiler = std::make_unique<TogetherCompiler>();
  device.compile_together = [&together = *compiler](const auto& sources) { return together.compile_together(sources); };
  device.backend.target = device.device->describe();
  device.backend.target.limits = {.float8 = true};
  device.backend.traits = kTraits;
  device.backend.join_launches = joined_launch;
  device.backend.traits.arithmetic.float8_products = true;
  device.backend.tactics = cuda_tactics();
  device.backend.data_dependent = data_dependent_tactics();
  device.backend.compiler = std::move(compiler);
  device.backend.timing_key = device.device->timing_key();
  device.measures = true;
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
