// SPDX-License-Identifier: Apache-2.0
// Descriptors of the stand-in for cuDNN, and what it makes of them. Its engines:
//  0  everything, in f32; the fallback heuristic's
//  1  channels-last images, on tensor cores; knob 3 (0 or 1) takes workspace
//  2  everything, with other bits each time
// None has ELU.
#pragma once

#include <map>
#include <vector>

#include "base/dtype.h"
#include "device/cuda/cuda_types.h"
#include "device/cuda/cudnn_types.h"
#include "fake_cuda/libraries/library_state.h"

namespace fake_cudnn {

using namespace lathe::cuda;  // NOLINT: the library's own names

struct Descriptor {
  cudnnBackendDescriptorType_t type{};
  bool finalized = false;
  std::map<int, std::vector<int64_t>> numbers;  // addresses too
  std::map<int, std::vector<double>> reals;

  int64_t number(int name) const {
    const auto found = numbers.find(name);
    return found == numbers.end() || found->second.empty() ? 0 : found->second[0];
  }
  double real(int name, double otherwise) const {
    const auto found = reals.find(name);
    return found == reals.end() ? otherwise : found->second[0];
  }
  const std::vector<int64_t>& list(int name) const {
    static const std::vector<int64_t> none;
    const auto found = numbers.find(name);
    return found == numbers.end() ? none : found->second;
  }
  const Descriptor* descriptor(int name) const { return reinterpret_cast<const Descriptor*>(number(name)); }
};

struct Tensor {
  int64_t name = 0;
  lathe::DType dtype{};
  bool is_virtual = false;
  std::vector<int64_t> dims, strides;
};
struct Stage {
  int64_t mode = 0;
  bool has_operand = false;
  Tensor operand, result;
  double lower_slope = 0, upper = 0, alpha = 0;
};
// An operation graph in plain words: a convolution, and stages that each take the result before them.
struct Graph {
  Tensor x, w, y;
  std::vector<int64_t> strides, dilations, pad;
  std::vector<Stage> stages;
};
cudnnStatus_t read_graph(const Descriptor& graph, Graph& out);

// Whether the engine does it, and the workspace that it takes.
bool accepts(const Graph& graph, int64_t engine);
int64_t workspace_of(int64_t engine, int64_t knob);

// `addresses` by the tensors' names.
void run(const Graph& graph, const std::map<int64_t, void*>& addresses);

}  // namespace fake_cudnn
