// SPDX-License-Identifier: Apache-2.0
#include "api/network/layer.h"

#include <algorithm>

#include "api/network/network.h"

namespace lathe::api {

Layer::Layer(NetworkDefinition& network, nv::LayerType type, const char* kind, std::vector<TensorView*> inputs)
    : network_(network), type_(type), inputs_(std::move(inputs)) {
  name_ = fmt::format("(Unnamed Layer* {}) [{}]", network.num_layers(), kind);
}

Layer::~Layer() noexcept = default;

Entry Layer::entry(Exclusive::Call call) const { return network_.entry(call); }

bool Layer::uses(const TensorView* tensor) const {
  return std::find(inputs_.begin(), inputs_.end(), tensor) != inputs_.end();
}

bool Layer::is_lowered_from(const TensorView* tensor) const {
  const auto end = inputs_.begin() + static_cast<ptrdiff_t>(std::min(inputs_.size(), num_read_inputs()));
  return std::find(inputs_.begin(), end, tensor) != end;
}

// The outputs that lower() gives, none of them a value that somebody else made.
Result<std::vector<ir::Value*>> Layer::run(LayerLowering& lowering) {
  Result<std::vector<ir::Value*>> values = lower(lowering);
  for (size_t i = 0; values && i < values->size(); ++i) {
    ir::Value*& value = (*values)[i];
    const bool repeated = std::find(values->begin(), values->begin() + static_cast<ptrdiff_t>(i), value) !=
                          values->begin() + static_cast<ptrdiff_t>(i);
    if (lowering.made(value) && !repeated) continue;
    value = lowering.identity(value);
  }
  if (lowering.failed()) return in_layer(*lowering.error());
  if (!values) return in_layer(std::move(values).error());
  return values;
}

tl::unexpected<Error> Layer::in_layer(Error error) const {
  return fail(with_context(std::move(error), fmt::format("layer '{}'", name_)));
}

std::optional<int> Layer::rank_of_input(size_t i) const {
  return guarded(entry(Exclusive::Call::looks), "ILayer", std::optional<int>(), [&]() -> Result<std::optional<int>> {
    if (!has(i) || !inputs_[i]->resolve()) return std::nullopt;
    return inputs_[i]->value()->rank();
  });
}

void Layer::create() {
  for (size_t i = 0; i < num_outputs(); ++i) {
    std::string name = fmt::format("{}_output{}", name_, i == 0 ? std::string() : fmt::format("_{}", i));
    outputs_.push_back(std::make_unique<TensorView>(network_, nullptr, this, std::move(name)));
  }
  touch();
}

void Layer::adopt(ir::Node* node) {
  std::vector<const ir::Value*> inputs;
  for (size_t i = 0; i < node->num_inputs(); ++i) inputs.push_back(node->input(i));
  adopt(node, inputs);
}

void Layer::adopt(ir::Node* node, const std::vector<const ir::Value*>& inputs) {
  name_ = node->name();
  metadata_ = node->metadata;
  nodes_ = {node};
  inputs_.clear();
  for (const ir::Value* input : inputs) inputs_.push_back(input ? network_.view_of(input) : nullptr);
  for (size_t i = 0; i < node->num_outputs(); ++i)
    outputs_.push_back(
        std::make_unique<TensorView>(network_, node->output(i), this, network_.public_name(node->output(i))));
}

void Layer::name_values(const std::vector<ir::Value*>& values, const char* suffix) {
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (values[i]) network_.graph().rename(values[i], outputs_[i]->name() + suffix);
}

void Layer::touch() {
  dirty_ = true;
  network_.unsettle();
}

void Layer::update() {
  if (!dirty_ || updating_) return;
  updating_ = true;
  const Result<> result = relower();
  if (error_)  // its readers could not be lowered either
    for (const auto& output : outputs_) network_.touch_readers(output.get());
  error_.reset();
  if (!result) error_ = result.error();
  updating_ = dirty_ = false;
}

Result<> Layer::relower() {
  for (size_t i = 0; i < std::min(inputs_.size(), num_read_inputs()); ++i) {
    Layer* producer = has(i) ? inputs_[i]->producer() : nullptr;
    if (!producer) continue;
    if (producer->updating_) return fail(ErrorCode::graph_invalid, "layer '{}' depends on its own output", name_);
    producer->update();
    if (producer->error_) return fail(*producer->error_);
  }
  std::vector<ir::Value*> old;
  for (const auto& output : outputs_) old.push_back(output->value());
  name_values(old, "~");
  LayerLowering lowering(network_.graph(), name_);
  Result<std::vector<ir::Value*>> values = run(lowering);
  if (values && values->size() != outputs_.size())
    values = fail(ErrorCode::invalid_state, "layer '{}': its number of outputs cannot change", name_);
  if (!values) {
    lowering.undo();
    name_values(old, "");
    return fail(std::move(values).error());
  }
  replace(lowering, *values);
  return {};
}

void Layer::replace(LayerLowering& lowering, const std::vector<ir::Value*>& values) {
  ir::Graph& graph = network_.graph();
  for (size_t i = 0; i < outputs_.size(); ++i) {
    ir::Value* old = outputs_[i]->value();
    outputs_[i]->set_value(values[i]);
    if (!old) continue;
    // Readers may depend on the type, or on elements that are known.
    const bool changed = old->dtype() != values[i]->dtype() || old->shape() != values[i]->shape() || old->elements() ||
                         values[i]->elements();
    if (!old->uses().empty()) network_.moved(outputs_[i].get(), changed);
    graph.redirect_uses(old, values[i]);
  }
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) graph.erase(*node);
  nodes_ = lowering.take_nodes();
  if (!nodes_.empty()) nodes_.back()->metadata = metadata_;
  name_values(values, "");
}

void Layer::setName(const char* name) noexcept {
  guarded(entry(), "ILayer::setName", [&]() -> Result<> {
    LATHE_ASSIGN(name_, to_string(name, "layer name"));
    touch();
    return {};
  });
}

nv::ITensor* Layer::getInput(int32_t index) const noexcept {
  return guarded(entry(Exclusive::Call::looks), "ILayer::getInput", static_cast<nv::ITensor*>(nullptr),
                 [&]() -> Result<nv::ITensor*> {
                   if (index < 0 || index >= max_inputs())
                     return fail(ErrorCode::invalid_argument, "layer '{}' has no input {}; the largest is {}", name_,
                                 index, max_inputs() - 1);
                   return has(static_cast<size_t>(index)) ? inputs_[static_cast<size_t>(index)] : nullptr;
                 });
}

nv::ITensor* Layer::getOutput(int32_t index) const noexcept {
  return guarded(entry(Exclusive::Call::looks), "ILayer::getOutput", static_cast<nv::ITensor*>(nullptr),
                 [&]() -> Result<nv::ITensor*> { return output_at(index); });
}

void Layer::setInput(int32_t index, nv::ITensor& tensor) noexcept {
  guarded(entry(), "ILayer::setInput", [&]() -> Result<> {
    if (index < 0 || index >= max_inputs())
      return fail(ErrorCode::invalid_argument, "layer '{}' has no input {}; the largest is {}", name_, index,
                  max_inputs() - 1);
    LATHE_ASSIGN(TensorView * view, network_.own(&tensor));
    read(static_cast<size_t>(index), view);
    return {};
  });
}

void Layer::read(size_t i, TensorView* tensor) {
  if (i >= inputs_.size()) inputs_.resize(i + 1);
  inputs_[i] = tensor;
  touch();
}

Result<TensorView*> Layer::output_at(int32_t index) const {
  if (index >= 0 && index < getNbOutputs()) return output(static_cast<size_t>(index));
  return fail(ErrorCode::invalid_argument, "layer '{}' has no output {}; the largest is {}", name_, index,
              getNbOutputs() - 1);
}

nv::DataType Layer::getOutputType(int32_t index) const noexcept {
  return guarded(entry(Exclusive::Call::looks), "ILayer::getOutputType", nv::DataType::kFLOAT,
                 [&]() -> Result<nv::DataType> {
                   LATHE_ASSIGN(const TensorView* view, output_at(index));
                   LATHE_TRY(view->resolve());
                   return to_nv(view->value()->dtype());
                 });
}

void Layer::setMetadata(const char* metadata) noexcept {
  guarded(entry(), "ILayer::setMetadata", [&]() -> Result<> {
    LATHE_ASSIGN(std::string text, to_string(metadata, "metadata"));
    if (!text.empty()) LATHE_TRY(network_.consult(SettingId::ILayer_setMetadata));
    metadata_ = std::move(text);
    if (!nodes_.empty()) nodes_.back()->metadata = metadata_;
    return {};
  });
}

bool Layer::setNbRanks(int32_t nbRanks) noexcept {
  return guarded(entry(), "ILayer::setNbRanks", [&]() -> Result<> {
    if (nbRanks < 1) return fail(ErrorCode::invalid_argument, "number of ranks is {}; at least 1 is needed", nbRanks);
    if (nbRanks != 1) LATHE_TRY(network_.consult(SettingId::ILayer_setNbRanks));
    nb_ranks_ = nbRanks;
    return {};
  });
}

}  // namespace lathe::api
