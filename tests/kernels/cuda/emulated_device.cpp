// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/emulated_device.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "device/cuda/architecture.h"
#include "device/cuda/cuda_device.h"
#include "device/cuda/nvrtc_compiler.h"
#include "device/cuda/tensor_map.h"
#include "device/whole_grid.h"
#include "fake_cuda/tensor_map.h"
#include "kernels/cuda/compiled_ahead.h"
#include "kernels/cuda/emulated_module.h"
#include "kernels/cuda/headers.h"
#include "kernels/cuda/kernel_check.h"

namespace lathe::cuda {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kAlignment = 16;  // of the start of a block; its end is what matters here

size_t pages_of(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

struct EmulatedQueue final : Queue {
  ~EmulatedQueue() override { note_kernels(true); }
  Result<> begin() override { return {}; }
  void end() override {}
};

class EmulatedKernel final : public Kernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const StepRecord& record) {
    auto kernel = std::make_unique<EmulatedKernel>();
    kernel->launches_.assign(record.launches.begin(), record.launches.end());
    if (record.workspace) kernel->workspace_ = *record.workspace;
    for (const Launch& launch : kernel->launches_) {
      if (launch.code >= record.code.size() || launch.entry != "lathe_kernel")
        return fail(ErrorCode::plan_malformed, "the emulator runs lathe_kernel of a module of the plan only");
      LATHE_ASSIGN(auto module, EmulatedModule::load(record.code[launch.code]));
      kernel->modules_.push_back(std::move(module));
    }
    return kernel;
  }

  Result<size_t> prepare(const Operands& operands, int) const override {
    const std::optional<int64_t> bytes = workspace_.evaluate(operands.symbols);
    if (!bytes || *bytes < 0) return fail(ErrorCode::plan_malformed, "the workspace's size has no value");
    return static_cast<size_t>(*bytes);
  }

  Result<> enqueue(const Operands& operands, std::byte* workspace, Queue&) const override {
    for (size_t i = 0; i < launches_.size(); ++i) {
      const Launch& launch = launches_[i];
      std::array<int64_t, 3> grid;
      for (size_t d = 0; d < 3; ++d) {
        const std::optional<int64_t> blocks = launch.grid[d].evaluate(operands.symbols);
        if (!blocks || *blocks < 0) return fail(ErrorCode::plan_malformed, "the grid has no value");
        grid[d] = *blocks;
      }
      if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0) continue;
      std::vector<uint64_t> arguments;
      fake_cuda::TensorMapContent maps[kMaxTensorMaps];
      for (const LaunchArg& arg : launch.args) {
        if (arg.kind == LaunchArg::tensor_map) {
          LATHE_ASSIGN(maps[arg.index], make_map(launch.maps[arg.index], operands));
          arguments.push_back(reinterpret_cast<uint64_t>(&maps[arg.index]));
          continue;
        }
        LATHE_ASSIGN(arguments.emplace_back(), value_of(arg, operands, workspace));
      }
      const uint32_t at_once = launch.cluster == kWholeGrid ? static_cast<uint32_t>(grid[0]) : launch.cluster;
      LATHE_TRY(modules_[i]->launch(grid, launch.block, launch.shared_bytes, arguments, at_once));
    }
    return {};
  }

 private:
  static Result<fake_cuda::TensorMapContent> make_map(const TensorMap& map, const Operands& operands) {
    if (const auto fault = fault_of(map, operands.inputs.size()))
      return fail(ErrorCode::plan_malformed, "a tensor map {}", *fault);
    uint64_t dims[kMaxMapRank], strides[kMaxMapRank];
    const auto bytes = static_cast<uint32_t>(size_of(map.dtype));
    for (size_t i = 0; i < map.dims.size(); ++i) {
      dims[i] = static_cast<uint64_t>(map.dims[i].evaluate(operands.symbols).value_or(-1));
      if (dims[i] == 0) return fake_cuda::TensorMapContent{};
      if (i > 0)
        strides[i - 1] = static_cast<uint64_t>(map.strides[i - 1].evaluate(operands.symbols).value_or(-1)) * bytes;
      if (i > 0 && dims[i] == 1) strides[i - 1] = 16;
    }
    fake_cuda::TensorMapContent content;
    const auto rank = static_cast<uint32_t>(map.dims.size());
    const void* data = operands.inputs[map.input].data;
    const std::vector<int> corners(map.windows.begin(), map.windows.end());
    const uint32_t steps[] = {1, static_cast<uint32_t>(corners.empty() ? 1 : corners[4]),
                              static_cast<uint32_t>(corners.empty() ? 1 : corners[5]), 1};
    if (corners.empty() ? !fake_cuda::make_tensor_map(bytes, rank, data, dims, strides, map.box.data(), content)
                        : !fake_cuda::make_window_map(bytes, rank, data, dims, strides, &corners[0], &corners[2],
                                                      map.box[0], map.box[1], steps, content))
      return fail(ErrorCode::plan_malformed, "the driver would refuse a tensor map");
    content.rounds = map.rounds;
    return content;
  }

  static Result<uint64_t> value_of(const LaunchArg& arg, const Operands& operands, std::byte* workspace) {
    if (arg.kind == LaunchArg::input || arg.kind == LaunchArg::output) {
      const std::span<const TensorArg> tensors = arg.kind == LaunchArg::input ? operands.inputs : operands.outputs;
      if (arg.index >= tensors.size()) return fail(ErrorCode::plan_malformed, "an argument names no tensor");
      return reinterpret_cast<uint64_t>(tensors[arg.index].data);
    }
    const std::optional<int64_t> value = arg.value.evaluate(operands.symbols);
    if (!value) return fail(ErrorCode::plan_malformed, "an argument has no value");
    const uint64_t base = arg.kind == LaunchArg::workspace ? reinterpret_cast<uint64_t>(workspace) : 0;
    return base + static_cast<uint64_t>(*value);
  }

  std::vector<Launch> launches_;
  std::vector<std::unique_ptr<EmulatedModule>> modules_;  // of each launch
  Expr workspace_;
};

class EmulatedDevice : public Device {
 public:
  std::string_view name() const override { return "emulator"; }
  std::string target() const override { return kEmulator; }
  Target describe() const override {
    Target target = cuda::describe(**find_architecture(90));
    target.name = kEmulator;
    target.least_cores = 1;
    return target;
  }
  std::string timing_key() const override { return "emulator"; }
  Result<> check_target(std::string_view) const override { return {}; }
  bool is_host() const override { return false; }

  Result<DeviceMemory> allocate(size_t bytes) override {
    if (bytes == 0) return DeviceMemory();
    const size_t pages = pages_of(bytes);
    void* memory = mmap(nullptr, pages + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return fail(ErrorCode::out_of_memory, "{} bytes for the emulator", bytes);
    mprotect(static_cast<std::byte*>(memory) + pages, kPage, PROT_NONE);
    const size_t padded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return DeviceMemory(static_cast<std::byte*>(memory) + pages - padded, bytes, nullptr,
                        [](void*, std::byte* data, size_t size) {
                          auto* page = reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(data) & ~(kPage - 1));
                          munmap(page, pages_of(size) + kPage);
                        });
  }
  Result<std::unique_ptr<Queue>> make_queue() override { return std::make_unique<EmulatedQueue>(); }
  Result<std::unique_ptr<Queue>> make_stream_queue(void*) override { return make_queue(); }
  Result<> upload(void* to, const void* from, size_t bytes, Queue&) override {
    if (bytes) std::memcpy(to, from, bytes);
    return {};
  }
  Result<> download(void* to, const void* from, size_t bytes, Queue&) override {
    if (bytes) std::memcpy(to, from, bytes);
    return {};
  }
  Result<> copy(const RowsCopy& rows, Queue&) override {
    rows.run();
    return {};
  }
  Result<> wait(Queue&) override { return {}; }
  bool is_accessible(const void*) const override { return true; }
  Result<std::unique_ptr<Kernel>> make_kernel(const StepRecord& record) override {
    return EmulatedKernel::make(record);
  }
  Result<std::shared_ptr<const std::byte>> make_resident(std::span<const std::byte> bytes,
                                                         std::shared_ptr<const void> owner) override {
    return std::shared_ptr<const std::byte>(std::move(owner), bytes.data());
  }
  Result<std::unique_ptr<CapturedGraph>> capture(const std::function<Result<>(Queue&)>&) override { return nullptr; }
  Result<std::vector<double>> time(Queue& queue, const std::function<Result<>(Queue&)>& work, int repeats) override {
    for (int i = 0; i < repeats; ++i) LATHE_TRY(work(queue));
    return std::vector<double>(static_cast<size_t>(repeats), 1.0);  // the emulator's time says nothing
  }
};

class IdleDevice final : public EmulatedDevice {
 public:
  Result<std::unique_ptr<Kernel>> make_kernel(const StepRecord&) override { return std::make_unique<EmulatedKernel>(); }
  // A build reads results once it has asked for all kernels that it checks first; those that it asks for after them
  // take the place of ones that are wrong.
  Result<> download(void* to, const void* from, size_t bytes, Queue& queue) override {
    note_kernels(false);
    return EmulatedDevice::download(to, from, bytes, queue);
  }
};

class EmulatedCompiler final : public Compiler {
 public:
  Result<std::vector<std::byte>> compile(std::string_view source) override { return code_of_kernel(source); }
};

}  // namespace

std::unique_ptr<Device> make_emulated_device() { return std::make_unique<EmulatedDevice>(); }
std::unique_ptr<Device> make_idle_device() { return std::make_unique<IdleDevice>(); }
std::unique_ptr<Compiler> make_emulated_compiler() { return std::make_unique<EmulatedCompiler>(); }

std::shared_ptr<Device> test_device() {
  const char* name = std::getenv("LATHE_TEST_DEVICE");
  if (!name) return make_emulated_device();
  Result<std::shared_ptr<Device>> device = open_device(std::atoi(name + std::strcspn(name, "0123456789")));
  EXPECT_TRUE(device) << device.error().to_string();
  return *device;
}

std::unique_ptr<Compiler> test_compiler() {
  if (!std::getenv("LATHE_TEST_DEVICE")) return make_emulated_compiler();
  Result<std::unique_ptr<NvrtcCompiler>> compiler = NvrtcCompiler::create(test_device()->target(), headers());
  EXPECT_TRUE(compiler) << compiler.error().to_string();
  return *std::move(compiler);
}

const Backend& test_backend() {
  static const std::shared_ptr<Device> device = test_device();
  static const std::unique_ptr<Compiler> compiler = test_compiler();
  static const Backend backend{*device, *compiler};
  return backend;
}

Target test_target() { return test_backend().device.describe(); }

}  // namespace lathe::cuda
