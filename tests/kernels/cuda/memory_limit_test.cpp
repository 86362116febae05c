// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda_tactics.h"
#include "kernels/cuda/emulated_device.h"
#include "runtime/memory_check.h"

namespace lathe::cuda {
namespace {

TEST(MemoryLimit, HoldsForAllShapes) {
  const auto device = std::make_shared<CountingDevice>(make_emulated_device());
  const std::unique_ptr<Compiler> compiler = make_emulated_compiler();
  const auto load = [&](ir::Graph graph, std::vector<ProfileShapes> profiles) {
    BuildOptions options;
    options.tactics = cuda_tactics();
    options.target = kEmulator;
    options.traits.fuses_narrow_types = options.traits.fuses_prologues = options.traits.fuses_movement = true;
    options.tuner.compiler = compiler.get();
    options.tuner.target = make_emulated_device()->describe();
    options.tuner.target.limits = {};
    options.tuner.budget_seconds = 0;
    options.profiles = std::move(profiles);
    const auto built = build_plan(std::move(graph), options);
    EXPECT_TRUE(built) << built.error().to_string();
    return built ? load_engine(*plan::write_plan((*built)->plan), device) : nullptr;
  };
  const auto guarded = [](size_t bytes) {  // ends at a page that faults
    const auto memory = std::make_shared<DeviceMemory>(*make_emulated_device()->allocate(bytes));
    return std::shared_ptr<std::byte>(memory, memory->data());
  };
  expect_limits_to_hold(load, device, guarded, 1e-4);
}

}  // namespace
}  // namespace lathe::cuda
