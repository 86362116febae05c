// SPDX-License-Identifier: Apache-2.0
#include "api/cpu_device.h"

#include <map>

#include "kernels/cpu/kernel_table.h"

namespace lathe::api {

Result<std::unique_ptr<cpu::Kernel>> find_cpu_kernel(std::string_view name, const cpu::Record& record) {
  const cpu::KernelFactory factory = cpu::find_kernel(name);
  if (!factory)
    return fail(ErrorCode::plan_target, "this library has no kernel '{}'; build the plan anew with this version", name);
  return factory(record);
}

Result<std::shared_ptr<Workers>> shared_workers(int threads) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<Workers>> pools;
  const int count = threads > 0 ? threads : cpu::allowed_cpus();
  const std::lock_guard lock(mutex);
  if (std::shared_ptr<Workers> workers = pools[count].lock()) return workers;
  cpu::ThreadPoolOptions options;
  options.threads = count;
  LATHE_ASSIGN(std::shared_ptr<Workers> workers, Workers::create(options));
  pools[count] = workers;
  return workers;
}

}  // namespace lathe::api
