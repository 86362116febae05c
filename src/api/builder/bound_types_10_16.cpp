// SPDX-License-Identifier: Apache-2.0
#include "api/builder/bound_types.h"

#include <algorithm>

#include "api/builder/boundary.h"
#include "api/builder/calibration.h"

namespace lathe::api {
namespace {

Result<float> scale_of(const TensorScales& scales, const std::string& tensor) {
  const auto scale = scales.find(tensor);
  if (scale != scales.end() && scale->second > 0) return scale->second;
  return fail(ErrorCode::config_invalid,
              "tensor '{}' is of kINT8 in memory and of floats in the network, and has no range to convert it by: call "
              "ITensor::setDynamicRange(), or use quantize layers",
              tensor);
}

Result<Conversion> reading(DType memory, DType network, const TensorScales& scales, const std::string& tensor) {
  if (memory != DType::i8) return [=](ir::GraphBuilder& b, ir::Value* x) { return b.cast(x, network); };
  LATHE_ASSIGN(const float scale, scale_of(scales, tensor));
  return [=](ir::GraphBuilder& b, ir::Value* x) {
    DequantizeAttrs attributes;
    attributes.to = network;
    return b.add(attributes, {x, b.scalar(scale, network)});
  };
}

Result<Conversion> writing(DType memory, DType network, const TensorScales& scales, const std::string& tensor) {
  if (memory != DType::i8) return [=](ir::GraphBuilder& b, ir::Value* x) { return b.cast(x, memory); };
  LATHE_ASSIGN(const float scale, scale_of(scales, tensor));
  return [=](ir::GraphBuilder& b, ir::Value* x) { return b.add(QuantizeAttrs{}, {x, b.scalar(scale, network)}); };
}

}  // namespace

Result<> apply_bound_types(const NetworkDefinition& network, ir::Graph& graph) {
  const nv::INetworkDefinition& definition = network;
  const TensorScales scales = given_scales(network);
  for (int32_t i = 0; i < definition.getNbInputs(); ++i) {
    const auto& tensor = static_cast<const TensorView&>(*definition.getInput(i));
    const auto input = std::ranges::find(graph.inputs(), tensor.name(), &ir::Value::name);
    if (input == graph.inputs().end() || (*input)->dtype() == tensor.bound_type()) continue;
    LATHE_ASSIGN(const Conversion convert, reading(tensor.bound_type(), (*input)->dtype(), scales, tensor.name()));
    LATHE_TRY(convert_input(graph, *input, {tensor.bound_type(), (*input)->shape()}, convert));
  }
  for (int32_t i = 0; i < definition.getNbOutputs(); ++i) {
    const auto& tensor = static_cast<const TensorView&>(*definition.getOutput(i));
    const auto output = std::ranges::find(graph.outputs(), tensor.name(), &ir::Output::name);
    if (output == graph.outputs().end() || output->value->dtype() == tensor.bound_type()) continue;
    LATHE_ASSIGN(const Conversion convert, writing(tensor.bound_type(), output->value->dtype(), scales, tensor.name()));
    LATHE_TRY(convert_output(graph, static_cast<size_t>(output - graph.outputs().begin()), convert));
  }
  return {};
}

}  // namespace lathe::api
