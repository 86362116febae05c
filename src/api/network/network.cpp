// SPDX-License-Identifier: Apache-2.0
#include "api/network/network.h"

#include <algorithm>

#include "api/network/attention.h"
#include "api/network/imported_layer.h"
#include "api/network/network_add.h"

namespace lathe::api {
namespace {

Result<size_t> check_index(int32_t index, size_t count, const char* what) {
  if (index >= 0 && static_cast<size_t>(index) < count) return static_cast<size_t>(index);
  return fail(ErrorCode::invalid_argument, "there is no {} {}: the network has {}", what, index, count);
}

// Applications find inputs and outputs by name.
Result<> check_names(const std::vector<std::unique_ptr<TensorView>>& inputs, const std::vector<TensorView*>& outputs) {
  std::unordered_set<std::string_view> taken;
  const auto take = [&](const TensorView& tensor) -> Result<> {
    if (taken.insert(tensor.name()).second) return {};
    return fail(ErrorCode::graph_invalid, "two inputs or outputs are called '{}'; give one another name",
                tensor.name());
  };
  for (const auto& input : inputs) LATHE_TRY(take(*input));
  for (const TensorView* output : outputs) LATHE_TRY(take(*output));
  return {};
}

}  // namespace

NetworkDefinition::NetworkDefinition(std::shared_ptr<BuilderCore> core, nv::NetworkDefinitionCreationFlags flags,
                                     std::unique_ptr<nv::IBuilder> builder_stand_in)
    : core_(std::move(core)),
      reporter_(std::make_shared<Reporter>(std::shared_ptr<const Reporter>(core_->reporter))),
      flags_(flags),
      graph_(""),
      builder_stand_in_(std::move(builder_stand_in)) {
  mImpl = this;
}

NetworkDefinition::~NetworkDefinition() noexcept = default;

Result<TensorView*> NetworkDefinition::own(nv::ITensor* tensor) {
  if (!tensor) return fail(ErrorCode::invalid_argument, "an input tensor is null");
  auto* view = static_cast<TensorView*>(tensor);
  if (&view->network() != this)
    return fail(ErrorCode::invalid_argument, "tensor '{}' belongs to another network", view->name());
  return view;
}

Layer* add_layer(NetworkDefinition& network, const char* where, std::span<nv::ITensor* const> inputs,
                 FunctionRef<Result<>()> check_arguments,
                 FunctionRef<std::unique_ptr<Layer>(std::vector<TensorView*>)> make) noexcept {
  return guarded(network.entry(), where, static_cast<Layer*>(nullptr), [&]() -> Result<Layer*> {
    LATHE_TRY(check_arguments());
    std::vector<TensorView*> views;
    for (nv::ITensor* input : inputs) {
      LATHE_ASSIGN(TensorView * view, network.own(input));
      views.push_back(view);
    }
    return network.keep(make(std::move(views)));
  });
}

TensorView* NetworkDefinition::view_of(const ir::Value* value) const {
  const auto it = imported_.find(value);
  return it == imported_.end() ? nullptr : it->second;
}

Result<TensorView*> NetworkDefinition::output_of(const std::string& layer, int64_t index) const {
  const auto it = std::find_if(layers_.begin(), layers_.end(), [&](const auto& l) { return l->name() == layer; });
  if (it == layers_.end()) return fail(ErrorCode::invalid_argument, "the network has no layer '{}'", layer);
  TensorView* output = index >= 0 ? (*it)->output(static_cast<size_t>(index)) : nullptr;
  if (!output) return fail(ErrorCode::invalid_argument, "layer '{}' has no output {}", layer, index);
  return output;
}

TensorView* NetworkDefinition::tensor_of(const std::string& value) const {
  for (const auto& input : inputs_)
    if (input->value()->name() == value) return input.get();
  for (const auto& layer : layers_)
    for (size_t i = 0; TensorView* output = layer->output(i); ++i)
      if (output->value()->name() == value) return output;
  return nullptr;
}

std::string NetworkDefinition::public_name(const ir::Value* value) const {
  for (const ir::Output& output : graph_.outputs())
    if (output.value == value) return output.name;
  return value->name();
}

void NetworkDefinition::adopt_imported_nodes() {
  std::unordered_set<const ir::Node*> known;
  imported_.clear();
  for (const auto& input : inputs_) imported_.emplace(input->value(), input.get());
  for (const auto& layer : layers_) {
    known.insert(layer->nodes().begin(), layer->nodes().end());
    for (size_t i = 0; layer->output(i); ++i) imported_.emplace(layer->output(i)->value(), layer->output(i));
  }
  for (ir::Value* value : graph_.inputs()) {
    if (imported_.contains(value)) continue;
    inputs_.push_back(std::make_unique<TensorView>(*this, value, nullptr, value->name()));
    imported_.emplace(value, inputs_.back().get());
  }
  for (const auto& node : graph_.nodes()) {
    if (known.contains(node.get())) continue;
    if (node->is(OpKind::constant)) model_weights_.insert(node->output()->name());
    layers_.push_back(make_imported_layer(*this, node.get()));
    Layer& layer = *layers_.back();
    for (size_t i = 0; layer.output(i); ++i) imported_.emplace(layer.output(i)->value(), layer.output(i));
  }
  outputs_.clear();
  for (const ir::Output& output : graph_.outputs()) {
    TensorView* view = imported_.at(output.value);
    view->set_output(true);
    outputs_.push_back(view);
  }
  imported_.clear();
}

Result<> NetworkDefinition::settle() {
  while (!settled_) {
    settled_ = true;
    for (const auto& layer : layers_) layer->update();
    for (const auto& loop : loops_) loop->widen();
  }
  if (!outputs_settled_) refresh_outputs();
  if (sorted_) return {};
  LATHE_TRY(graph_.sort());
  sorted_ = true;
  return {};
}

void NetworkDefinition::moved(const TensorView* tensor, bool changed) {
  sorted_ = false;
  if (changed) touch_readers(tensor);
}

void NetworkDefinition::touch_readers(const TensorView* tensor) {
  for (const auto& layer : layers_)
    if (layer->is_lowered_from(tensor)) layer->touch();
}

Result<> NetworkDefinition::resolve_all() {
  LATHE_TRY(settle());
  for (const auto& layer : layers_) {
    if (layer->error()) return fail(*layer->error());
  }
  for (const auto& loop : loops_) LATHE_TRY(loop->check());
  LATHE_TRY(check_names(inputs_, outputs_));
  return graph_.infer_all();
}

Result<std::vector<Constraint>> NetworkDefinition::asserted() const {
  std::vector<Constraint> all;
  for (const auto& layer : layers_) {
    LATHE_ASSIGN(const std::vector<Constraint> constraints, layer->asserted());
    all.insert(all.end(), constraints.begin(), constraints.end());
  }
  return all;
}

Result<ir::Graph> NetworkDefinition::whole_graph() const {
  ir::Graph copy = graph_.clone();
  for (const auto& loop : loops_) LATHE_TRY(loop->close(copy));
  if (!loops_.empty()) LATHE_TRY(copy.sort());
  return copy;
}

nv::ITensor* NetworkDefinition::addInput(const char* name, nv::DataType type, const nv::Dims& dimensions) noexcept {
  return guarded(entry(), "INetworkDefinition::addInput", static_cast<nv::ITensor*>(nullptr),
                 [&]() -> Result<nv::ITensor*> {
                   LATHE_ASSIGN(std::string text, to_string(name, "input name"));
                   LATHE_ASSIGN(const DType dtype, to_dtype(type));
                   if (!is_valid(dimensions))
                     return fail(ErrorCode::invalid_argument, "dims of input '{}' are invalid", text);
                   LATHE_ASSIGN(const Dims dims, to_dims(dimensions));
                   LATHE_ASSIGN(ir::Value * value, graph_.add_input(text, dtype, dims));
                   inputs_.push_back(std::make_unique<TensorView>(*this, value, nullptr, std::move(text)));
                   return inputs_.back().get();
                 });
}

Result<> NetworkDefinition::set_output(nv::ITensor& tensor, bool output) {
  LATHE_ASSIGN(TensorView * view, own(&tensor));
  if (view->isNetworkInput() && output)
    return fail(ErrorCode::invalid_argument,
                "network input '{}' cannot be an output; add an identity layer and mark its output", view->name());
  if (view->is_output() == output) return {};
  view->set_output(output);
  if (output) {
    outputs_.push_back(view);
  } else {
    std::erase(outputs_, view);
  }
  settled_ = outputs_settled_ = false;
  return {};
}

void NetworkDefinition::refresh_outputs() {
  while (!graph_.outputs().empty()) graph_.remove_output(graph_.outputs().size() - 1);
  outputs_settled_ = true;
  for (const TensorView* output : outputs_) {
    if (output->value()) graph_.add_output(output->value(), output->name());
    outputs_settled_ = outputs_settled_ && output->value();  // else its layer cannot be lowered yet
  }
}

void NetworkDefinition::rename_tensor(TensorView& tensor, std::string& name, std::string wanted) {
  name = std::move(wanted);
  if (tensor.value()) graph_.rename(tensor.value(), name);
  if (tensor.is_output()) outputs_settled_ = false;
}

void NetworkDefinition::markOutput(nv::ITensor& tensor) noexcept {
  guarded(entry(), "INetworkDefinition::markOutput", [&] { return set_output(tensor, true); });
}

void NetworkDefinition::unmarkOutput(nv::ITensor& tensor) noexcept {
  guarded(entry(), "INetworkDefinition::unmarkOutput", [&] { return set_output(tensor, false); });
}

bool NetworkDefinition::markOutputForShapes(nv::ITensor& tensor) noexcept {
  return guarded(entry(), "INetworkDefinition::markOutputForShapes", [&] { return set_output(tensor, true); });
}

bool NetworkDefinition::unmarkOutputForShapes(nv::ITensor& tensor) noexcept {
  return guarded(entry(), "INetworkDefinition::unmarkOutputForShapes", [&] { return set_output(tensor, false); });
}

void NetworkDefinition::removeTensor(nv::ITensor& tensor) noexcept {
  guarded(entry(), "INetworkDefinition::removeTensor", [&]() -> Result<> {
    LATHE_ASSIGN(TensorView * view, own(&tensor));
    const bool read = std::any_of(layers_.begin(), layers_.end(), [&](const auto& layer) { return layer->uses(view); });
    if (read || view->is_output()) return fail(ErrorCode::invalid_state, "tensor '{}' is still in use", view->name());
    if (!view->isNetworkInput()) return {};  // goes with its layer
    LATHE_TRY(settle());
    graph_.remove_input(view->value());
    std::erase_if(inputs_, [&](const auto& input) { return input.get() == view; });
    return {};
  });
}

nv::ILayer* NetworkDefinition::getLayer(int32_t index) const noexcept {
  return guarded(entry(Exclusive::Call::looks), "INetworkDefinition::getLayer", static_cast<nv::ILayer*>(nullptr),
                 [&]() -> Result<nv::ILayer*> {
                   LATHE_ASSIGN(const size_t i, check_index(index, layers_.size(), "layer"));
                   return layers_[i]->public_layer();
                 });
}

nv::ITensor* NetworkDefinition::getInput(int32_t index) const noexcept {
  return guarded(entry(Exclusive::Call::looks), "INetworkDefinition::getInput", static_cast<nv::ITensor*>(nullptr),
                 [&]() -> Result<nv::ITensor*> {
                   LATHE_ASSIGN(const size_t i, check_index(index, inputs_.size(), "input"));
                   return inputs_[i].get();
                 });
}

nv::ITensor* NetworkDefinition::getOutput(int32_t index) const noexcept {
  return guarded(entry(Exclusive::Call::looks), "INetworkDefinition::getOutput", static_cast<nv::ITensor*>(nullptr),
                 [&]() -> Result<nv::ITensor*> {
                   LATHE_ASSIGN(const size_t i, check_index(index, outputs_.size(), "output"));
                   return outputs_[i];
                 });
}

void NetworkDefinition::setName(const char* name) noexcept {
  guarded(entry(), "INetworkDefinition::setName", [&]() -> Result<> {
    LATHE_ASSIGN(std::string text, to_string(name, "network name"));
    graph_.set_name(std::move(text));
    return {};
  });
}

bool NetworkDefinition::getFlag(nv::NetworkDefinitionCreationFlag flag) const noexcept {
  return (flags_ & bit_of(flag)) != 0;
}

nv::IBuilder& NetworkDefinition::getBuilder() const noexcept {
  nv::IBuilder* builder = core_->builder;
  return builder ? *builder : *builder_stand_in_;
}

bool NetworkDefinition::setWeightsName(nv::Weights weights, const char* name) noexcept {
  return guarded(entry(), "INetworkDefinition::setWeightsName", [&]() -> Result<> {
    LATHE_ASSIGN(std::string text, to_string(name, "weights name"));
    LATHE_TRY(consult(SettingId::INetworkDefinition_setWeightsName));
    const auto [it, fresh] = weights_names_.emplace(std::move(text), weights);
    if (!fresh && (it->second.values != weights.values || it->second.count != weights.count))
      return fail(ErrorCode::invalid_argument, "weights name '{}' is taken", it->first);
    return {};
  });
}

bool NetworkDefinition::markWeightsRefittable(const char* name) noexcept {
  return guarded(entry(), "INetworkDefinition::markWeightsRefittable", [&]() -> Result<> {
    LATHE_ASSIGN(std::string text, to_string(name, "weights name"));
    if (!weights_names_.contains(text) && !model_weights_.contains(text))
      return fail(ErrorCode::invalid_argument, "no weights are called '{}'; call setWeightsName() first", text);
    LATHE_TRY(consult(SettingId::INetworkDefinition_markWeightsRefittable));
    refittable_.insert(std::move(text));
    return {};
  });
}

bool NetworkDefinition::unmarkWeightsRefittable(const char* name) noexcept {
  return guarded(entry(), "INetworkDefinition::unmarkWeightsRefittable", [&]() -> Result<> {
    LATHE_ASSIGN(const std::string text, to_string(name, "weights name"));
    if (refittable_.erase(text) == 0) return fail(ErrorCode::invalid_argument, "weights '{}' are not marked", text);
    return {};
  });
}

bool NetworkDefinition::areWeightsMarkedRefittable(const char* name) const noexcept {
  return guarded(entry(), "INetworkDefinition::areWeightsMarkedRefittable", false, [&]() -> Result<bool> {
    LATHE_ASSIGN(const std::string text, to_string(name, "weights name"));
    return refittable_.contains(text);
  });
}

bool NetworkDefinition::markDebug(nv::ITensor& tensor) noexcept {
  return guarded(entry(), "INetworkDefinition::markDebug", [&]() -> Result<> {
    LATHE_ASSIGN(TensorView * view, own(&tensor));
    if (view->isNetworkInput())
      return fail(ErrorCode::invalid_argument, "network input '{}' cannot be a debug tensor: its content is yours",
                  view->name());
    LATHE_TRY(consult(SettingId::INetworkDefinition_markDebug));
    view->set_debug(true);
    return {};
  });
}

bool NetworkDefinition::unmarkDebug(nv::ITensor& tensor) noexcept {
  return guarded(entry(), "INetworkDefinition::unmarkDebug", [&]() -> Result<> {
    LATHE_ASSIGN(TensorView * view, own(&tensor));
    view->set_debug(false);
    return {};
  });
}

bool NetworkDefinition::markUnfusedTensorsAsDebugTensors() noexcept {
  return guarded(entry(), "INetworkDefinition::markUnfusedTensorsAsDebugTensors", [&]() -> Result<> {
    LATHE_TRY(consult(SettingId::INetworkDefinition_markUnfusedTensorsAsDebugTensors));
    unfused_are_debug_ = true;
    return {};
  });
}

bool NetworkDefinition::unmarkUnfusedTensorsAsDebugTensors() noexcept {
  unfused_are_debug_ = false;
  return true;
}

bool NetworkDefinition::isDebugTensor(const nv::ITensor& tensor) const noexcept {
  return guarded(entry(Exclusive::Call::looks), "INetworkDefinition::isDebugTensor", false, [&]() -> Result<bool> {
    auto& network = const_cast<NetworkDefinition&>(*this);
    LATHE_ASSIGN(const TensorView* view, network.own(&const_cast<nv::ITensor&>(tensor)));
    return view->is_debug();
  });
}

}  // namespace lathe::api
