// SPDX-License-Identifier: Apache-2.0
// The networks of tests/kernels/*.graph on the CPU and on the null device.
#include "fixtures/networks.h"

#include "device/family.h"

namespace lathe {
namespace {

CaseDevice open(std::string_view name, int threads) {
  CaseDevice device;
  device.name = name;
  Result<BackendBuild> backend =
      find_backend(name)->prepare(name, {.threads = threads, .libraries = {}, .compiler = {}});
  EXPECT_TRUE(backend) << backend.error().to_string();
  device.backend = *std::move(backend);
  device.device = device.backend.device ? device.backend.device : *find_family(name)->open(threads);
  return device;
}

class CpuNetworks : public testing::TestWithParam<NetworkCase> {};

// S161.
TEST_P(CpuNetworks, Hold) {
  static CaseDevice device = open("cpu", 3);
  check_network(GetParam(), device);
}

// There they are built and run, and nothing is computed.
TEST_P(CpuNetworks, RunOnTheNullDevice) {
  static CaseDevice device = open("null", 1);
  device.computes = false;
  check_network(GetParam(), device);
}

TEST(CpuCases, NameEveryTactic) {
  const BackendBuild backend = *find_backend("cpu")->prepare("cpu", {});
  expect_named(backend.tactics, backend.data_dependent, "cpu");
}

INSTANTIATE_TEST_SUITE_P(Files, CpuNetworks, testing::ValuesIn(network_cases()), name_of_test);

}  // namespace
}  // namespace lathe
