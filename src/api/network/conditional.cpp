// SPDX-License-Identifier: Apache-2.0
#include "api/network/conditional.h"

#include "api/network/network_add.h"

namespace lathe::api {

Result<std::vector<ir::Value*>> ConditionLayer::lower(LayerLowering& lowering) {
  if (in(0)->dtype() != DType::boolean || in(0)->rank() != 0)
    return fail(ErrorCode::type_mismatch, "a condition is a BOOL without dimensions, but '{}' is {}{}", in(0)->name(),
                name_of(in(0)->dtype()), to_string(in(0)->shape()));
  return std::vector{lowering.identity(in(0))};
}

Result<std::vector<ir::Value*>> ConditionalInputLayer::lower(LayerLowering& lowering) {
  return std::vector{lowering.identity(in(0))};
}

Result<std::vector<ir::Value*>> ConditionalOutputLayer::lower(LayerLowering& lowering) {
  if (!in(2))
    return fail(ErrorCode::graph_invalid, "conditional '{}' has no condition; call setCondition()",
                getConditional()->getName());
  ChooseAttrs attributes;
  attributes.lazy = true;
  return std::vector{lowering.add(attributes, {in(2), in(0), in(1)})};
}

nv::IConditionLayer* Conditional::setCondition(nv::ITensor& condition) noexcept {
  if (condition_) {
    static_cast<Layer*>(condition_)->setInput(0, condition);
    return condition_;
  }
  constexpr const char* kWhere = "IIfConditional::setCondition";
  condition_ = network_.add<ConditionLayer>(kWhere, {&condition}, this);
  return condition_ && give_condition(kWhere) ? condition_ : nullptr;
}

// To the outputs that there are, if there is one.
bool Conditional::give_condition(const char* where) noexcept {
  return guarded(network_.entry(), where, [&]() -> Result<> {
    for (ConditionalOutputLayer* output : outputs_)
      if (condition_) output->set_condition(*condition_);
    return {};
  });
}

nv::IIfConditionalInputLayer* Conditional::addInput(nv::ITensor& input) noexcept {
  return network_.add<ConditionalInputLayer>("IIfConditional::addInput", {&input}, this);
}

nv::IIfConditionalOutputLayer* Conditional::addOutput(nv::ITensor& trueSubgraphOutput,
                                                      nv::ITensor& falseSubgraphOutput) noexcept {
  constexpr const char* kWhere = "IIfConditional::addOutput";
  auto* layer = network_.add_to(outputs_, kWhere, {&trueSubgraphOutput, &falseSubgraphOutput}, this);
  return layer && give_condition(kWhere) ? layer : nullptr;
}

void Conditional::setName(const char* name) noexcept {
  guarded(network_.entry(), "IIfConditional::setName", [&]() -> Result<> {
    LATHE_ASSIGN(name_, to_string(name, "conditional name"));
    return {};
  });
}

nv::IIfConditional* NetworkDefinition::addIfConditional() noexcept {
  return guarded(entry(), "INetworkDefinition::addIfConditional", static_cast<nv::IIfConditional*>(nullptr),
                 [&]() -> Result<nv::IIfConditional*> {
                   std::string name = fmt::format("(Unnamed Conditional* {})", conditionals_.size());
                   conditionals_.push_back(std::make_unique<Conditional>(*this, std::move(name)));
                   return conditionals_.back().get();
                 });
}

}  // namespace lathe::api
