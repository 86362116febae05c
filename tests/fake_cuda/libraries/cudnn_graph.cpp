// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <functional>
#include <limits>

#include "fake_cuda/libraries/cudnn_state.h"

namespace fake_cudnn {
namespace {

bool read_tensor(const Descriptor* from, Tensor& to) {
  if (!from || !from->finalized || from->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR) return false;
  const int64_t type = from->number(CUDNN_ATTR_TENSOR_DATA_TYPE);
  to.name = from->number(CUDNN_ATTR_TENSOR_UNIQUE_ID);
  to.dtype = type == CUDNN_DATA_HALF       ? lathe::DType::f16
             : type == CUDNN_DATA_BFLOAT16 ? lathe::DType::bf16
                                           : lathe::DType::f32;
  to.is_virtual = from->number(CUDNN_ATTR_TENSOR_IS_VIRTUAL) != 0;
  to.dims = from->list(CUDNN_ATTR_TENSOR_DIMENSIONS);
  to.strides = from->list(CUDNN_ATTR_TENSOR_STRIDES);
  return to.dims.size() == to.strides.size() && to.dims.size() >= 4;
}

bool read_convolution(const Descriptor& operation, Graph& graph) {
  if (operation.type != CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR) return false;
  const Descriptor* window = operation.descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
  if (!window || !window->finalized || window->number(CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION ||
      !read_tensor(operation.descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X), graph.x) ||
      !read_tensor(operation.descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W), graph.w) ||
      !read_tensor(operation.descriptor(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y), graph.y))
    return false;
  graph.strides = window->list(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  graph.dilations = window->list(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  graph.pad = window->list(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  const std::vector<int64_t>& end = window->list(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  const size_t spatial = graph.x.dims.size() - 2;
  if (graph.strides.size() != spatial || graph.pad.size() != spatial || end.size() != spatial) return false;
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t reach = (graph.w.dims[2 + d] - 1) * graph.dilations[d] + 1;
    if ((graph.x.dims[2 + d] + graph.pad[d] + end[d] - reach) / graph.strides[d] + 1 != graph.y.dims[2 + d])
      return false;
  }
  return graph.x.dims[1] % graph.w.dims[1] == 0 && graph.w.dims[0] == graph.y.dims[1];
}

bool read_stage(const Descriptor& operation, int64_t takes, Stage& stage) {
  const Descriptor* mode = operation.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  Tensor x;
  if (operation.type != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR || !mode || !mode->finalized ||
      !read_tensor(operation.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_XDESC), x) || x.name != takes ||
      !read_tensor(operation.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC), stage.result))
    return false;
  stage.mode = mode->number(CUDNN_ATTR_POINTWISE_MODE);
  stage.lower_slope = mode->real(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, 0);
  stage.upper = mode->real(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, std::numeric_limits<double>::infinity());
  stage.alpha = mode->real(CUDNN_ATTR_POINTWISE_ELU_ALPHA, 1);
  const Descriptor* operand = operation.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
  stage.has_operand = operand != nullptr;
  return !operand || read_tensor(operand, stage.operand);
}

int64_t offset_of(const Tensor& tensor, const std::vector<int64_t>& at) {
  int64_t offset = 0;
  for (size_t d = 0; d < at.size(); ++d)
    if (tensor.dims[d] != 1) offset += at[d] * tensor.strides[d];
  return offset;
}

// Calls `visit` with each index of the dims.
void each_index(const std::vector<int64_t>& dims, const std::function<void(const std::vector<int64_t>&)>& visit) {
  std::vector<int64_t> at(dims.size());
  for (const int64_t dim : dims)
    if (dim == 0) return;
  for (;;) {
    visit(at);
    size_t d = dims.size();
    while (d > 0 && ++at[d - 1] == dims[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

float sum_at(const Graph& graph, const void* x, const void* w, const std::vector<int64_t>& at) {
  const int64_t channels = graph.w.dims[1], groups = graph.x.dims[1] / channels;
  const int64_t group = at[1] / (graph.w.dims[0] / groups);
  float sum = 0;
  std::vector<int64_t> window(graph.w.dims.begin() + 1, graph.w.dims.end());
  each_index(window, [&](const std::vector<int64_t>& tap) {
    std::vector<int64_t> from = {at[0], group * channels + tap[0]}, weight = {at[1], tap[0]};
    for (size_t d = 0; d + 1 < tap.size(); ++d) {
      from.push_back(at[2 + d] * graph.strides[d] - graph.pad[d] + tap[1 + d] * graph.dilations[d]);
      weight.push_back(tap[1 + d]);
      if (from.back() < 0 || from.back() >= graph.x.dims[2 + d]) return;
    }
    sum += fake_library::load(graph.x.dtype, x, offset_of(graph.x, from)) *
           fake_library::load(graph.w.dtype, w, offset_of(graph.w, weight));
  });
  return sum;
}

double apply(const Stage& stage, double v, double operand) {
  switch (stage.mode) {
    case CUDNN_POINTWISE_ADD:
      return v + operand;
    case CUDNN_POINTWISE_MUL:
      return v * operand;
    case CUDNN_POINTWISE_RELU_FWD:
      return v < 0 ? v * stage.lower_slope : std::min(v, stage.upper);
    case CUDNN_POINTWISE_TANH_FWD:
      return std::tanh(v);
    case CUDNN_POINTWISE_SIGMOID_FWD:
      return 1 / (1 + std::exp(-v));
    case CUDNN_POINTWISE_SWISH_FWD:
      return v / (1 + std::exp(-v));
    case CUDNN_POINTWISE_GELU_FWD:
      return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0)));
    default:
      return 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
  }
}

}  // namespace

cudnnStatus_t read_graph(const Descriptor& from, Graph& graph) {
  const std::vector<int64_t>& operations = from.list(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (operations.empty() || from.number(CUDNN_ATTR_OPERATIONGRAPH_HANDLE) == 0) return CUDNN_STATUS_BAD_PARAM;
  if (!read_convolution(*reinterpret_cast<const Descriptor*>(operations[0]), graph)) return CUDNN_STATUS_BAD_PARAM;
  const Tensor* value = &graph.y;
  for (size_t i = 1; i < operations.size(); ++i) {
    Stage stage;
    if (!value->is_virtual || !read_stage(*reinterpret_cast<const Descriptor*>(operations[i]), value->name, stage))
      return CUDNN_STATUS_BAD_PARAM;
    if (stage.mode == CUDNN_POINTWISE_ELU_FWD) return CUDNN_STATUS_NOT_SUPPORTED;
    graph.stages.push_back(stage);
    value = &graph.stages.back().result;
  }
  return value->is_virtual ? CUDNN_STATUS_BAD_PARAM : CUDNN_STATUS_SUCCESS;
}

bool accepts(const Graph& graph, int64_t engine) {
  return engine == 0 || engine == 2 || (engine == 1 && (graph.x.strides[1] == 1 || graph.x.dims[1] == 1));
}

int64_t workspace_of(int64_t engine, int64_t knob) { return engine == 1 ? knob * 4096 : 0; }

void run(const Graph& graph, const std::map<int64_t, void*>& addresses) {
  const auto at_name = [&](int64_t name) { return addresses.at(name); };
  const Tensor& result = graph.stages.empty() ? graph.y : graph.stages.back().result;
  each_index(result.dims, [&](const std::vector<int64_t>& at) {
    double value = sum_at(graph, at_name(graph.x.name), at_name(graph.w.name), at);
    for (const Stage& stage : graph.stages) {
      const double operand = stage.has_operand ? fake_library::load(stage.operand.dtype, at_name(stage.operand.name),
                                                                    offset_of(stage.operand, at))
                                               : 0;
      value = static_cast<float>(apply(stage, value, operand));
    }
    fake_library::store(result.dtype, at_name(result.name), offset_of(result, at), static_cast<float>(value));
  });
}

}  // namespace fake_cudnn
