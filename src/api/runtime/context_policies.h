// SPDX-License-Identifier: Apache-2.0
// The settings of contexts as the runtime knows them.
#pragma once

#include "api/runtime/context_settings.h"
#include "runtime/context.h"

namespace lathe::api {

namespace nv = nvinfer1;

Result<MemoryPolicy> policy_of(nv::ExecutionContextAllocationStrategy strategy);
GraphPolicy graphs_of(const ContextSettings& settings);
SpecializationPolicy specialization_of(const ContextSettings& settings);
// What a context is made with, and what of it does nothing on this device.
void tell_settings(const ContextSettings& settings, bool is_host, Log& log);

}  // namespace lathe::api
