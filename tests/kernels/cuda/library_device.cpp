// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/library_device.h"

#include "fixtures/ask_tactic.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/emulated_module.h"

namespace lathe::cuda {
namespace {

// The stand-in driver loads objects of one kernel.
class AloneCompiler final : public Compiler {
 public:
  Result<std::vector<std::byte>> compile(std::string_view source) override { return compile_for_emulator(source); }
};

}  // namespace

void LibraryDeviceTest::SetUp() {
  if (!on_gpu_) {
    setenv("LATHE_CUDA_DRIVER", FAKE_CUDA_DRIVER, 1);
    setenv("LATHE_CUBLASLT", FAKE_CUBLASLT, 1);
    fake_cuda_reset();
    fake_.reset();
  }
  device_ = on_gpu_ ? test_device() : *open_device(0);
  compiler_ = on_gpu_ ? test_compiler() : std::make_unique<AloneCompiler>();
}

void LibraryDeviceTest::TearDown() {
  device_.reset();
  if (on_gpu_) return;
  for (const char* kind : kLiveKinds) EXPECT_EQ(fake_cuda_live(kind), 0u) << kind << " leaked";
  EXPECT_EQ(fake_.live(), 0u);
}

void LibraryDeviceTest::check(const Tactic& tactic, const Problem& problem, const CheckOptions& options) {
  const Result<> checked = check_tactic({*device_, *compiler_}, tactic, problem, options);
  EXPECT_TRUE(checked) << to_text(problem) << "\n" << checked.error().message;
}

Result<std::pair<std::vector<std::byte>, std::vector<std::byte>>> LibraryDeviceTest::replay(
    const Tactic& tactic, const Problem& problem, std::span<const std::byte> one) {
  constexpr size_t kBytes = 1024;  // of each operand
  LATHE_ASSIGN(const Emission emission, emit(tactic, problem, configs_of(tactic, problem).front()));
  const std::vector<Launch> launches = {emission.launches[0].launch};
  StepRecord record;
  record.launches = launches;
  LATHE_ASSIGN(const auto kernel, device_->make_kernel(record));
  LATHE_ASSIGN(const DeviceMemory memory, device_->allocate(3 * kBytes));
  LATHE_ASSIGN(const auto queue, device_->make_queue());
  std::vector<std::byte> ones;
  while (ones.size() < memory.size()) ones.insert(ones.end(), one.begin(), one.end());
  LATHE_TRY(device_->upload(memory.data(), ones.data(), memory.size(), *queue));
  std::vector<TensorArg> inputs(2), outputs(1);
  inputs[0].data = memory.data(), inputs[1].data = memory.data() + kBytes, outputs[0].data = memory.data() + 2 * kBytes;
  const Operands operands{inputs, outputs, {}};
  LATHE_ASSIGN(const size_t bytes, kernel->prepare(operands, 1));
  LATHE_ASSIGN(const DeviceMemory workspace, device_->allocate(bytes));
  const auto work = [&](Queue& on) { return kernel->enqueue(operands, workspace.data(), on); };
  LATHE_ASSIGN(const auto graph, device_->capture(work));
  std::vector<std::byte> before(one.size()), after(one.size());
  LATHE_TRY(device_->download(before.data(), outputs[0].data, before.size(), *queue));
  LATHE_TRY(graph->update(work));
  {
    LATHE_ASSIGN(const QueueTurn turn, QueueTurn::take(*queue));
    LATHE_TRY(graph->replay(*queue));
  }
  LATHE_TRY(device_->download(after.data(), outputs[0].data, after.size(), *queue));
  return std::pair(before, after);
}

size_t LibraryDeviceTest::launches(const Tactic& tactic, const Problem& problem) {
  const std::vector<Config> configs = configs_of(tactic, problem);
  if (configs.empty()) return 0;
  const Result<Emission> emission = emit(tactic, problem, configs.front());
  return emission ? emission->launches.size() : 0;
}

}  // namespace lathe::cuda
