// SPDX-License-Identifier: Apache-2.0
// The CPU device, as the builder and the runtime need it.
#pragma once

#include "runtime/engine.h"

namespace lathe::api {

Result<std::unique_ptr<cpu::Kernel>> find_cpu_kernel(std::string_view name, const cpu::Record& record);

// Worker threads, shared by all who ask for the same number. 0 = as many as this process may use.
Result<std::shared_ptr<Workers>> shared_workers(int threads);

}  // namespace lathe::api
