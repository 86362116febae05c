// SPDX-License-Identifier: Apache-2.0
#include "api/builder/direct_io.h"

#include <algorithm>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // the flag, in generation 11

namespace lathe::api {
namespace {

constexpr nv::TensorFormats kAll = (1U << nv::EnumMax<nv::TensorFormat>()) - 1;

// Steps of the builder's own, which come from no layer, reorder what a layer reads or what an output takes.
const plan::Step* reformat_of(const plan::Plan& plan, const std::string& name) {
  const auto touches = [&](const std::vector<plan::TensorId>& ids) {
    return std::any_of(ids.begin(), ids.end(), [&](plan::TensorId id) {
      return id != plan::kNoTensor && plan.tensors[id].storage == plan::StorageKind::binding &&
             plan.bindings[plan.tensors[id].index].name == name;
    });
  };
  const auto found = std::find_if(plan.steps.begin(), plan.steps.end(), [&](const plan::Step& step) {
    return step.origin.empty() && (touches(step.inputs) || touches(step.outputs));
  });
  return found == plan.steps.end() ? nullptr : &*found;
}

}  // namespace

Result<> check_direct_io(const NetworkDefinition& network, const BuilderConfig& settings, const plan::Plan& plan) {
  if (!settings.has(nv::BuilderFlag::kDIRECT_IO)) return {};
  const nv::INetworkDefinition& definition = network;
  std::string reformatted;
  const auto check = [&](const nv::ITensor& tensor) {
    const plan::Step* step = tensor.getAllowedFormats() == kAll ? nullptr : reformat_of(plan, tensor.getName());
    if (step)
      reformatted += fmt::format("{}'{}' (step '{}')", reformatted.empty() ? "" : ", ", tensor.getName(), step->name);
  };
  for (int32_t i = 0; i < definition.getNbInputs(); ++i) check(*definition.getInput(i));
  for (int32_t i = 0; i < definition.getNbOutputs(); ++i) check(*definition.getOutput(i));
  if (reformatted.empty()) return {};
  return fail(
      ErrorCode::config_invalid,
      "BuilderFlag::kDIRECT_IO is set, but what the network's layers read or write needs another order of {}: allow "
      "the format that they compute in (kHWC or kHWC8 for convolutions), or clear the flag",
      reformatted);
}

}  // namespace lathe::api
