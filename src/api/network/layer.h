// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "api/network/layer_lowering.h"
#include "api/network/tensor_view.h"
#include "api/report.h"

namespace lathe::api {

// What all layers share. A layer is a record of settings that stands for one or more nodes of the graph. Adding it and
// its setters only change the record; the nodes follow when somebody looks (NetworkDefinition::settle), so that a layer
// may be described in any order, and pass through combinations that make no sense.
class Layer : public nv::apiv::VLayer {
 public:
  Layer(NetworkDefinition& network, nv::LayerType type, const char* kind, std::vector<TensorView*> inputs);
  ~Layer() noexcept override;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  // Gives a new layer its tensors, which have no values yet.
  void create();
  // Lowers the layer where touch() has marked it; an error stays until a setter is called, or what it reads changes.
  void update();
  const std::optional<Error>& error() const { return error_; }
  // Adopts a node that exists already (from an importer) instead of create(). The layer has the node's inputs, or those
  // that are given (null = omitted), and its settings stand for the others.
  void adopt(ir::Node* node);
  void adopt(ir::Node* node, const std::vector<const ir::Value*>& inputs);
  void set_public(nv::ILayer* layer) { public_ = layer; }
  nv::ILayer* public_layer() const { return public_; }
  const std::string& name() const { return name_; }
  const std::vector<ir::Node*>& nodes() const { return nodes_; }
  bool uses(const TensorView* tensor) const;
  bool is_lowered_from(const TensorView* tensor) const;
  void touch();
  TensorView* input(size_t i) const { return i < inputs_.size() ? inputs_[i] : nullptr; }
  TensorView* output(size_t i) const { return i < outputs_.size() ? outputs_[i].get() : nullptr; }

  nv::LayerType getType() const noexcept override { return type_; }
  void setName(const char* name) noexcept override;
  const char* getName() const noexcept override { return name_.c_str(); }
  int32_t getNbInputs() const noexcept override { return static_cast<int32_t>(inputs_.size()); }
  nv::ITensor* getInput(int32_t index) const noexcept override;
  int32_t getNbOutputs() const noexcept override { return static_cast<int32_t>(outputs_.size()); }
  nv::ITensor* getOutput(int32_t index) const noexcept override;
  void setInput(int32_t index, nv::ITensor& tensor) noexcept override;
  nv::DataType getOutputType(int32_t index) const noexcept override;
  void setMetadata(const char* metadata) noexcept override;
  const char* getMetadata() const noexcept override { return metadata_.c_str(); }
  bool setNbRanks(int32_t nbRanks) noexcept override;
  int32_t getNbRanks() const noexcept override { return nb_ranks_; }
#if NV_TENSORRT_MAJOR < 11
  void setPrecision(nv::DataType dataType) noexcept override;
  nv::DataType getPrecision() const noexcept override { return precision_.value_or(nv::DataType::kFLOAT); }
  bool precisionIsSet() const noexcept override { return precision_.has_value(); }
  void resetPrecision() noexcept override { precision_.reset(); }
  void setOutputType(int32_t index, nv::DataType dataType) noexcept override;
  bool outputTypeIsSet(int32_t index) const noexcept override { return output_types_.contains(index); }
  void resetOutputType(int32_t index) noexcept override { output_types_.erase(index); }
  const std::map<int32_t, nv::DataType>& output_types() const { return output_types_; }
#endif

  // What an assertion says of the graph's symbols; after update().
  virtual Result<std::vector<Constraint>> asserted() const { return std::vector<Constraint>(); }

 protected:
  friend class NetworkDefinition;
  // The layer's outputs, from its inputs and settings.
  virtual Result<std::vector<ir::Value*>> lower(LayerLowering& lowering) = 0;
  virtual size_t num_outputs() const { return 1; }
  // How many inputs lower() looks at; those behind have their part only when the network is whole.
  virtual size_t num_read_inputs() const { return inputs_.size(); }
  // How many inputs setInput() may reach.
  virtual int32_t max_inputs() const { return static_cast<int32_t>(inputs_.size()); }

  bool has(size_t i) const { return i < inputs_.size() && inputs_[i]; }
  void read(size_t i, TensorView* tensor);  // as input i
  // For lower(): all inputs that are there have values then.
  ir::Value* in(size_t i) const { return has(i) ? inputs_[i]->value() : nullptr; }
  // For getters of settings whose default depends on it; none while what makes the input is not consistent.
  std::optional<int> rank_of_input(size_t i) const;
  Entry entry(Exclusive::Call call = Exclusive::Call::changes) const;
  // A setter's work: one report, and nothing changes, where check_argument() refuses the value, or while another thread
  // is at work on the network. What an optional input may give instead drops that input: the last call wins.
  static constexpr size_t kNoInput = SIZE_MAX;
  template <class T, class Change>
  void change(const T& value, Change&& change, size_t instead_of = kNoInput,
              const char* where = __builtin_FUNCTION()) noexcept {
    guarded(entry(), where, [&]() -> Result<> {
      if (Result<> checked = check_argument(value); !checked) return in_layer(std::move(checked).error());
      change();
      if (instead_of < inputs_.size()) inputs_[instead_of] = nullptr;
      touch();
      return {};
    });
  }
  template <class T>
  void set(T& setting, const T& value, size_t instead_of = kNoInput,
           const char* where = __builtin_FUNCTION()) noexcept {
    change(
        value, [&] { setting = value; }, instead_of, where);
  }
  tl::unexpected<Error> in_layer(Error error) const;

  NetworkDefinition& network_;

 private:
  Result<TensorView*> output_at(int32_t index) const;
  Result<std::vector<ir::Value*>> run(LayerLowering& lowering);
  Result<> relower();
  void replace(LayerLowering& lowering, const std::vector<ir::Value*>& values);
  void name_values(const std::vector<ir::Value*>& values, const char* suffix);

  nv::LayerType type_;
  nv::ILayer* public_ = nullptr;
  std::string name_;
  std::string metadata_;
  int32_t nb_ranks_ = 1;
#if NV_TENSORRT_MAJOR < 11
  std::optional<nv::DataType> precision_;
  std::map<int32_t, nv::DataType> output_types_;  // by output
#endif
  std::vector<TensorView*> inputs_;  // null = omitted
  std::vector<std::unique_ptr<TensorView>> outputs_;
  std::vector<ir::Node*> nodes_;
  bool dirty_ = false;
  bool updating_ = false;
  std::optional<Error> error_;
};

// A layer class of the public interface: Interface forwards to Layer and, if it has one, to Table.
template <class Interface, class Table>
class LayerOf : public Interface, public Layer, public Table {
 protected:
  template <class... Args>
  explicit LayerOf(Args&&... args) : Layer(std::forward<Args>(args)...) {
    this->mLayer = this;
    this->mImpl = this;
    set_public(this);
  }
};

}  // namespace lathe::api
