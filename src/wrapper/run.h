// SPDX-License-Identifier: Apache-2.0
// One run of a wrapped engine, and runs that are recorded.
#pragma once

#include "wrapper/wrapped_engine.h"

namespace lathe::wrapper {

struct WrappedEngine::Run {
  struct Tensor {
    nv::Dims dims{};
    size_t bytes = 0;
    void* data = nullptr;
  };
  std::vector<Tensor> inputs, outputs;               // as inputs_ and outputs_
  std::vector<DeviceMemory> copies;                  // of inputs that lay elsewhere
  std::vector<std::unique_ptr<std::byte[]>> values;  // of inputs that are read on the host
  std::string key;                                   // the same where a recorded graph does the same
  cuda::Stream* stream = nullptr;                    // null: on the host
  bool is_captured = false;                          // by the caller
};

// Inputs and outputs have places of their own, which the graph knows.
struct WrappedEngine::Recording {
  std::string key;
  std::vector<DeviceMemory> inputs, outputs;
  std::vector<Run::Tensor> output_sizes;
  DeviceMemory workspace;
  std::unique_ptr<cuda::CudaGraph> graph;  // null: such runs cannot be recorded
};

std::string dims_text(const nv::Dims& dims);  // "[4, 3]"
// Of a dense tensor; fails where a size is not known, or there are too many.
Result<size_t> bytes_of_tensor(const std::string& name, nv::DataType type, const nv::Dims& dims);

}  // namespace lathe::wrapper
