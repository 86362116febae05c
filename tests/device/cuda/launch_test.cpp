// SPDX-License-Identifier: Apache-2.0
// Steps of device code: what the driver is asked to run, and what is refused before that.
#include "device/cuda/launch_case.h"
#include "device/whole_grid.h"
#include "fake_cuda/fake_device.h"
#include "fake_cuda/tensor_map.h"

namespace lathe::cuda {
namespace {

class LaunchTest : public FakeDeviceTest {
 protected:
  Result<> run(LaunchCase& launch) {
    LATHE_ASSIGN(const auto device, open_device(0));
    LATHE_ASSIGN(const auto queue, device->make_queue());
    LATHE_ASSIGN(const auto kernel, device->make_kernel(launch.record()));
    LATHE_TRY(kernel->prepare(launch.operands(), 1));
    LATHE_ASSIGN(const QueueTurn turn, QueueTurn::take(*queue));
    return kernel->enqueue(launch.operands(), reinterpret_cast<std::byte*>(0x3000), *queue);
  }
};

TEST_F(LaunchTest, NumbersAreEvaluatedFromTheShapes) {
  LaunchCase launch;
  launch.launches[0].shared_bytes = 100 << 10;
  launch.launches[0].overlaps = true;
  ASSERT_OK(run(launch));
  ASSERT_EQ(fake_cuda_launches(), 1u);
  const fake_cuda_launch& ran = *fake_cuda_launched(0);
  EXPECT_STREQ(ran.name, "add");
  EXPECT_EQ(ran.grid[0], 2u);
  EXPECT_EQ(ran.grid[1], 2u);
  EXPECT_EQ(ran.block, 128u);
  EXPECT_EQ(ran.shared_bytes, 100u << 10);
  EXPECT_EQ(ran.cluster, 1u);
  EXPECT_TRUE(ran.overlaps);
  ASSERT_EQ(ran.parameters, 4u);
  EXPECT_EQ(ran.values[0], 0x1000u);
  EXPECT_EQ(ran.values[1], 0x2000u);
  EXPECT_EQ(ran.values[2], 0x3100u);
  EXPECT_EQ(ran.values[3], 21u);
}

// PTX for sm_80 runs here, and does not wait for what it would overlap.
TEST_F(LaunchTest, CodeForOlderArchitecturesDoesNotOverlap) {
  LaunchCase launch;
  launch.text = "FAKE_CUBIN sm_90\nkernel add 4 ptx=80\n";
  launch.launches[0].overlaps = true;
  ASSERT_OK(run(launch));
  EXPECT_FALSE(fake_cuda_launched(0)->overlaps);
}

class TensorMaps : public LaunchTest {
 protected:
  // A map of the input: as many rows of 40 elements as symbol 0 says, 100 apart.
  TensorMaps() {
    launch_.text = "FAKE_CUBIN sm_90\nkernel add 5 maps=1\n";
    launch_.launches[0].maps = {{0, DType::f16, false, {Expr(40), Expr::symbol(0)}, {Expr(104)}, {64, 16}, {}}};
    launch_.launches[0].args.insert(launch_.launches[0].args.begin(), {LaunchArg::tensor_map, 0, {}});
  }
  void SetUp() override {
    LaunchTest::SetUp();
    const auto keep = [](void** parameters, const unsigned*, void* seen) {
      std::memcpy(seen, *static_cast<void**>(parameters[0]), sizeof(fake_cuda::TensorMapContent));
    };
    fake_cuda_set_kernel("add", keep, &seen_);
  }
  TensorMap& map() { return launch_.launches[0].maps[0]; }
  LaunchCase launch_;
  fake_cuda::TensorMapContent seen_{};  // of the last run
};

TEST_F(TensorMaps, AreMadeForEachRun) {
  ASSERT_OK(run(launch_));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(seen_.address), 0x1000u);
  EXPECT_EQ(seen_.rank, 2);
  EXPECT_EQ(seen_.dims[0], 40u);
  EXPECT_EQ(seen_.dims[1], 7u);
  EXPECT_EQ(seen_.strides[1], 208u);
  EXPECT_EQ(seen_.box[1], 16u);
  EXPECT_EQ(fake_cuda_launched(0)->values[1], 0x1000u);
  launch_.symbols = {1};  // whatever the stride of a dimension of one
  map().strides[0] = Expr(0);
  map().dtype = DType::f32, map().box[0] = 32, map().rounds = true;
  ASSERT_OK(run(launch_));
  EXPECT_EQ(seen_.dims[1], 1u);
  EXPECT_TRUE(seen_.rounds);
}

TEST_F(TensorMaps, OfWindows) {
  map().dims = {Expr(40), Expr(9), Expr(8), Expr::symbol(0)};
  map().strides = {Expr(64), Expr(640), Expr(5120)};
  map().box = {64, 128};
  map().windows = {-1, -2, 3, -4, 2, 1};
  ASSERT_OK(run(launch_));
  EXPECT_EQ(seen_.rank, 4);
  EXPECT_EQ(seen_.dims[3], 7u);
  EXPECT_EQ(seen_.box[1], 128u);
  EXPECT_EQ(seen_.first[0], -1);
  EXPECT_EQ(seen_.first[1], -2);
  EXPECT_EQ(seen_.beyond[0], 3);
  EXPECT_EQ(seen_.beyond[1], -4);
  EXPECT_EQ(seen_.steps[0], 2);
  EXPECT_EQ(seen_.steps[1], 1);
  const LaunchCase right = launch_;
  const auto refused = [&](const auto& spoil) {
    launch_ = right;
    spoil(map());
    EXPECT_FAILS(run(launch_), launch_refused);
  };
  refused([](TensorMap& map) { map.windows.pop_back(); });
  refused([](TensorMap& map) { map.windows[0] = -129; });
  refused([](TensorMap& map) { map.windows[3] = 128; });
  refused([](TensorMap& map) { map.windows[4] = 9; });
  refused([](TensorMap& map) { map.windows[5] = 0; });
  refused([](TensorMap& map) { map.box.push_back(1); });
  refused([](TensorMap& map) { map.dims.pop_back(), map.strides.pop_back(); });
}

TEST_F(TensorMaps, ThatSayNothingAreRefused) {
  const LaunchCase right = launch_;
  const auto refused = [&](const auto& spoil) {
    launch_ = right;
    spoil(launch_.launches[0]);
    EXPECT_FAILS(run(launch_), launch_refused);
  };
  refused([](Launch& launch) { launch.maps[0].input = 1; });
  refused([](Launch& launch) { launch.maps[0].strides.clear(); });
  refused([](Launch& launch) { launch.maps[0].box[1] = 257; });
  refused([](Launch& launch) { launch.maps[0].box[0] = 32; });
  refused([](Launch& launch) { launch.maps[0].rounds = true; });
  refused([](Launch& launch) { launch.maps[0].dims[1] = Expr::symbol(3); });
  refused([](Launch& launch) { launch.args[0].index = 1; });
  refused([](Launch& launch) { launch.args[0] = {LaunchArg::number, 0, {}}; });
  refused([](Launch& launch) { std::swap(launch.args[0], launch.args[1]); });
  refused([](Launch& launch) { launch.maps.resize(5, launch.maps[0]); });
  launch_ = right;
  map().strides[0] = Expr(3);  // 6 bytes, which only the driver refuses
  EXPECT_FALSE(run(launch_));
}

TEST_F(LaunchTest, WorkspaceIsEvaluated) {
  const auto device = *open_device(0);
  LaunchCase launch;
  launch.workspace = Expr::symbol(0) * Expr(100);
  const auto kernel = *device->make_kernel(launch.record());
  EXPECT_EQ(*kernel->prepare(launch.operands(), 1), 700u);
  launch.symbols = {-1};
  EXPECT_FAILS(kernel->prepare(launch.operands(), 1), launch_refused);
  launch.symbols = {};
  EXPECT_FAILS(kernel->prepare(launch.operands(), 1), launch_refused);
}

TEST_F(LaunchTest, EmptyGridsRunNothing) {
  LaunchCase launch;
  launch.symbols = {0};
  ASSERT_OK(run(launch));
  EXPECT_EQ(fake_cuda_launches(), 0u);
}

TEST_F(LaunchTest, ClustersAreAskedFor) {
  LaunchCase launch;
  launch.launches[0].cluster = 2;
  ASSERT_OK(run(launch));
  EXPECT_EQ(fake_cuda_launched(0)->cluster, 2u);
  launch.launches[0].cluster = 16;
  launch.symbols = {64};
  ASSERT_OK(run(launch));
  EXPECT_EQ(fake_cuda_launched(1)->cluster, 16u);
  launch.symbols = {4};
  EXPECT_FAILS(run(launch), launch_refused);
}

TEST_F(LaunchTest, BlocksThatWaitForEachOtherRunAtOnce) {
  LaunchCase launch;
  launch.launches[0].cluster = kWholeGrid;
  ASSERT_OK(run(launch));
  EXPECT_TRUE(fake_cuda_launched(0)->together);
  launch.launches[0].grid[1] = Expr(67);  // 134 blocks for 132 multiprocessors
  EXPECT_FAILS(run(launch), launch_refused);
}

// An engine that was built on a larger device is refused when it is loaded.
TEST_F(LaunchTest, BlocksThatWaitForEachOtherAreCountedOnLoading) {
  const auto device = *open_device(0);
  LaunchCase launch;
  launch.launches[0].cluster = kWholeGrid;
  launch.launches[0].grid = {Expr(132), Expr(1), Expr(1)};
  ASSERT_OK(device->make_kernel(launch.record()));
  launch.launches[0].grid[0] = Expr(133);
  const auto refused = device->make_kernel(launch.record());
  EXPECT_FAILS(refused, launch_refused);
  EXPECT_NE(refused.error().message.find("build the engine on this device"), std::string::npos);
}

TEST_F(LaunchTest, OlderDevicesLaunchWithoutOverlap) {
  fake_cuda_set_device(0, "Ampere", 8, 0, size_t{1} << 30);
  LaunchCase launch;
  launch.text = "FAKE_CUBIN sm_80\nkernel add 4\n";
  launch.launches[0].overlaps = true;
  ASSERT_OK(run(launch));
  EXPECT_FALSE(fake_cuda_launched(0)->overlaps);
  launch.launches[0].cluster = 2;
  EXPECT_FAILS(run(launch), launch_refused);
}

TEST_F(LaunchTest, EqualCodeIsLoadedOnce) {
  const auto device = *open_device(0);
  LaunchCase launch, again, other;
  other.text += "kernel more 0\n";
  const auto first = *device->make_kernel(launch.record()), second = *device->make_kernel(again.record());
  EXPECT_EQ(fake_cuda_live("module"), 1u);
  const auto third = *device->make_kernel(other.record());
  EXPECT_EQ(fake_cuda_live("module"), 2u);
}

TEST_F(LaunchTest, LimitsOfTheDeviceAreKept) {
  const auto refused = [&](const char* name, const std::function<void(LaunchCase&, Launch&)>& change) {
    LaunchCase launch;
    change(launch, launch.launches[0]);
    const Result<> result = run(launch);
    ASSERT_FALSE(result.has_value()) << name;
    EXPECT_EQ(result.error().code, ErrorCode::launch_refused) << name << ": " << result.error().message;
    EXPECT_EQ(fake_cuda_launches(), 0u);
  };
  refused("no threads", [](LaunchCase&, Launch& launch) { launch.block = 0; });
  refused("too many threads", [](LaunchCase&, Launch& launch) { launch.block = 1025; });
  refused("shared memory", [](LaunchCase&, Launch& launch) { launch.shared_bytes = 228 << 10; });
  refused("no cluster", [](LaunchCase&, Launch& launch) { launch.cluster = 0; });
  refused("large cluster", [](LaunchCase&, Launch& launch) { launch.cluster = 32; });
  refused("code module", [](LaunchCase&, Launch& launch) { launch.code = 1; });
  refused("too many launches", [](LaunchCase& all, Launch& launch) { all.launches.assign(9, Launch(launch)); });
  refused("too many parameters", [](LaunchCase&, Launch& launch) { launch.args.resize(97); });
  refused("number of parameters", [](LaunchCase&, Launch& launch) { launch.args.resize(3); });
  refused("input", [](LaunchCase&, Launch& launch) { launch.args[0].index = 1; });
  refused("output", [](LaunchCase&, Launch& launch) { launch.args[1].index = 1; });
  refused("unknown symbol", [](LaunchCase&, Launch& launch) { launch.args[3].value = Expr::symbol(9); });
  refused("negative grid", [](LaunchCase&, Launch& launch) { launch.grid[1] = Expr(-1); });
  refused("tall grid", [](LaunchCase&, Launch& launch) { launch.grid[1] = Expr(65536); });
  refused("wide grid", [](LaunchCase&, Launch& launch) { launch.grid[0] = Expr(int64_t{1} << 31); });
  refused("registers", [](LaunchCase&, Launch& launch) {
    launch.entry = "small";
    launch.args.clear();
  });
  refused("static and dynamic shared memory", [](LaunchCase&, Launch& launch) {
    launch.entry = "shared";
    launch.args.clear();
    launch.shared_bytes = 227 << 10;
  });
}

TEST_F(LaunchTest, WrongCodeIsRefused) {
  LaunchCase launch;
  launch.launches[0].entry = "missing";
  EXPECT_FAILS(run(launch), device_code_refused);
  launch = LaunchCase();
  launch.text = "FAKE_CUBIN sm_80\nkernel add 4\n";
  EXPECT_FAILS(run(launch), device_code_refused);
  launch.text = "garbage";
  EXPECT_FAILS(run(launch), device_code_refused);
  launch.text = "\177ELF";
  EXPECT_FAILS(run(launch), device_code_refused);
}

}  // namespace
}  // namespace lathe::cuda
