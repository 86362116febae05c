// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "NvInferRuntime.h"
#include "device/kernel_cache.h"

namespace lathe::api {

// All that an execution context is made with, by value: what is changed later is for later contexts.
struct ContextSettings {
  nvinfer1::ExecutionContextAllocationStrategy allocation = nvinfer1::ExecutionContextAllocationStrategy::kSTATIC;
  nvinfer1::IRuntimeCache* cache = nullptr;  // the application's
  std::shared_ptr<KernelCache> kernels;      // what it holds
  // Of contexts that are made without an IRuntimeConfig, whose own default is kLAZY.
  nvinfer1::DynamicShapesKernelSpecializationStrategy specialization =
      nvinfer1::DynamicShapesKernelSpecializationStrategy::kNONE;
  std::optional<nvinfer1::CudaGraphStrategy> graphs;  // none: as Lathe sees fit
  int32_t cpu_threads = 0;                            // lathe::setCpuThreads; 0 = the runtime's
};

}  // namespace lathe::api
