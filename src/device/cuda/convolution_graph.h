// SPDX-License-Identifier: Apache-2.0
// A convolution and its stages as cuDNN's graph of operations, and the engines and plans that the library makes of it.
#pragma once

#include "device/cuda/convolution_call.h"

namespace lathe::cuda::convolution {

// Refuses numbers that a graph cannot be made of.
Result<> check(const Values& values);
bool is_empty(const Values& values);  // whether the output has no elements

// Names of the graph's tensors, for the pack of addresses.
inline constexpr int64_t kXName = 1, kWeightsName = 2, kYName = 3, kFirstOperandName = 10, kFirstVirtualName = 20;

// Null where the library declines the graph.
Result<std::unique_ptr<Assembly>> make_graph(const CudnnHandle& handle, const Values& values);

// Engine configurations for the graph, best first, that keep to the precision and give the same bits each time.
Result<std::vector<Assembly>> ask(const CudnnHandle& handle, const CudnnDescriptor& graph, const Values& values,
                                  size_t count);
// The stored choice as an engine configuration; null where this library does not know it.
Result<std::unique_ptr<Assembly>> stored(const CudnnHandle& handle, const CudnnDescriptor& graph, const Values& values);
Result<CudnnEngine> describe(const CudnnHandle& handle, const CudnnDescriptor& config);

}  // namespace lathe::cuda::convolution
