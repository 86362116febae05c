// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/open_device.h"

#include <map>
#include <mutex>

#include "base/packed_code.h"
#include "base/processors.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/kernel_code.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/target.h"

namespace lathe::cpu {
namespace {

// What CPUs' kernels hold between instructions is f32; casts to narrower types are steps of their own.
bool has_casts(const Program& program) {
  for (const Instruction& each : program.code)
    if (each.op == Opcode::round_f16 || each.op == Opcode::round_bf16) return true;
  return false;
}

}  // namespace

Result<std::unique_ptr<lathe::Kernel>> make_kernel(const StepRecord& record) {
  const KernelFactory factory = find_kernel(record.kernel);
  if (!factory || !record.launches.empty())
    return fail(ErrorCode::plan_target, "this library has no kernel '{}'; build the plan anew with this version",
                record.kernel);
  if (record.program && has_casts(*record.program))
    return fail(ErrorCode::plan_target, "kernel '{}' has no instruction for casts", record.kernel);
  LATHE_TRY(have_packed_code());  // families make kernels without a device
  LATHE_ASSIGN(std::unique_ptr<lathe::Kernel> kernel, factory({record.params, record.program}));
  return kernel;
}

Result<std::shared_ptr<Device>> open_device(const ThreadPoolOptions& options) {
  if (!supports(isa_level()))
    return fail(
        ErrorCode::invalid_state,
        "this build of Lathe has kernels for {} alone, which this CPU lacks; build with cmake -DLATHE_CPU_KERNELS=all",
        target_name());
  LATHE_TRY(have_packed_code());
  LATHE_TRY(have_kernel_code());
  LATHE_ASSIGN(std::shared_ptr<Workers> workers, Workers::create(options));
  Target target = describe_machine(workers->size());
  return std::make_shared<CpuDevice>(
      CpuDeviceOptions{std::move(workers), make_kernel, std::move(target), runnable_targets(), timing_device()});
}

Result<std::shared_ptr<Device>> shared_device(int threads) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<Device>> devices;
  const int count = threads > 0 ? threads : allowed_cpus();
  const std::lock_guard lock(mutex);
  if (std::shared_ptr<Device> device = devices[count].lock()) return device;
  ThreadPoolOptions options;
  options.threads = count;
  LATHE_ASSIGN(std::shared_ptr<Device> device, open_device(options));
  devices[count] = device;
  return device;
}

}  // namespace lathe::cpu
