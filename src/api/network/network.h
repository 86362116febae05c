// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "api/network/builder_core.h"
#include "api/network/conditional.h"
#include "api/network/layer.h"
#include "api/network/loop.h"
#include "onnx/model.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // plugins of the V2 family

namespace lathe::api {

class AttentionDefinition;
class PluginImport;

// The network definition is a graph, seen through tensors and layers.
class NetworkDefinition final : public nv::INetworkDefinition, public nv::apiv::VNetworkDefinition {
 public:
  // `builder_stand_in` is what getBuilder() gives once the application has deleted the builder.
  NetworkDefinition(std::shared_ptr<BuilderCore> core, nv::NetworkDefinitionCreationFlags flags,
                    std::unique_ptr<nv::IBuilder> builder_stand_in);
  ~NetworkDefinition() noexcept override;

  const Reporter& reporter() const { return *reporter_; }
  Exclusive& use() const { return use_; }
  Entry entry(Exclusive::Call call = Exclusive::Call::changes) const { return {*reporter_, use_, call}; }
  ir::Graph& graph() { return graph_; }
  const std::shared_ptr<BuilderCore>& core() const { return core_; }
  // What settings.def says of a setting of the network, its tensors and layers: one warning for all of them.
  template <class Key>
  Result<> consult(Key setting) {
    return notices_.consult(setting, reporter_->log());
  }

  // The tensor behind an argument; fails when it belongs to another network.
  Result<TensorView*> own(nv::ITensor* tensor);
  // For nodes that an importer added to graph() behind our back: gives them layers and tensors.
  void adopt_imported_nodes();
  // The parsed model imported anew with these branches (onnx/branches.h), and which it has then; null unless there is
  // an If whose branches yield tensors of different ranks. Without any it is imported as it was parsed.
  struct Imported {
    ir::Graph graph;
    std::map<std::string, bool> branches;
  };
  using Reimport = std::function<Result<Imported>(const std::map<std::string, bool>& branches)>;
  // Files that a parser has mapped and weights lie in. Builds are done with what they have read of them.
  void add_files(const onnx::Model& model) {
    files_.insert(files_.end(), model.files.begin(), model.files.end());
    copies_.push_back(model.copies);
  }
  const std::vector<std::shared_ptr<onnx::AlignedCopies>>& copies() const { return copies_; }
  void forget_pages() const {
    for (const auto& file : files_) file->forget_pages();
  }
  void set_reimport(Reimport reimport) { reimport_ = std::move(reimport); }
  const Reimport& reimport() const { return reimport_; }
  // What holds the plugins of a parsed model; null where none was parsed.
  void set_plugins(std::shared_ptr<PluginImport> plugins) { plugins_ = std::move(plugins); }
  const std::shared_ptr<PluginImport>& plugins() const { return plugins_; }
  // Brings the nodes of layers whose settings changed up to date.
  Result<> settle();
  void unsettle() noexcept { settled_ = false; }
  // A tensor's value was replaced by one made later; if it also `changed`, its readers must follow.
  void moved(const TensorView* tensor, bool changed);
  void touch_readers(const TensorView* tensor);
  // settle(), and checks that each layer is consistent.
  Result<> resolve_all();

  // What assertions say of the graph's symbols; after resolve_all().
  Result<std::vector<Constraint>> asserted() const;

  // A copy of the graph, in which loops have their ends; after resolve_all().
  Result<ir::Graph> whole_graph() const;

  // Makes a layer of class L over `inputs` with further constructor arguments; null and one report on failure.
  template <class L, class... Args>
  L* add(const char* where, std::span<nv::ITensor* const> inputs, Args&&... args) noexcept;
  template <class L, class... Args>
  L* add(const char* where, std::initializer_list<nv::ITensor*> inputs, Args&&... args) noexcept {
    return add<L>(where, std::span<nv::ITensor* const>(inputs.begin(), inputs.size()), std::forward<Args>(args)...);
  }
  // The same, and keeps the layer in a list of its kind.
  template <class L, class... Args>
  L* add_to(std::vector<L*>& list, const char* where, std::initializer_list<nv::ITensor*> inputs,
            Args&&... args) noexcept;
  template <class L>
  L* refuse(const char* where) noexcept;
  // Makes the nodes of a new layer, and owns it.
  template <class L>
  L* keep(std::unique_ptr<L> layer);
  size_t num_layers() const { return layers_.size(); }
  const std::vector<std::unique_ptr<Layer>>& layers() const { return layers_; }
  const std::vector<std::unique_ptr<AttentionDefinition>>& attentions() const { return attentions_; }
  // For refitting: names that the application gave to weights, which of all names it marked, and whether a constant
  // came with a model.
  const std::unordered_map<std::string, nv::Weights>& weights_names() const { return weights_names_; }
  bool is_marked(const std::string& name) const { return refittable_.contains(name); }
  bool is_of_model(const std::string& value) const { return model_weights_.contains(value); }
  // Of the first layer of that name.
  Result<TensorView*> output_of(const std::string& layer, int64_t index) const;
  // The tensor of the graph's value of that name; null where there is none.
  TensorView* tensor_of(const std::string& value) const;
  TensorView* view_of(const ir::Value* value) const;
  std::string public_name(const ir::Value* value) const;
  // Makes the graph's outputs those that are marked, called as their tensors are.
  void refresh_outputs();
  void rename_tensor(TensorView& tensor, std::string& name, std::string wanted);
  const std::vector<TensorView*>& output_views() const { return outputs_; }

  nv::ITensor* addInput(const char* name, nv::DataType type, const nv::Dims& dimensions) noexcept override;
  void markOutput(nv::ITensor& tensor) noexcept override;
  nv::IActivationLayer* addActivation(nv::ITensor& input, nv::ActivationType type) noexcept override;
  nv::ILRNLayer* addLRN(nv::ITensor& input, int64_t window, float alpha, float beta, float k) noexcept override;
  nv::IScaleLayer* addScale(nv::ITensor& input, nv::ScaleMode mode, nv::Weights shift, nv::Weights scale,
                            nv::Weights power) noexcept override;
  nv::ISoftMaxLayer* addSoftMax(nv::ITensor& input) noexcept override;
  nv::IConcatenationLayer* addConcatenation(nv::ITensor* const* inputs, int32_t nbInputs) noexcept override;
  nv::IElementWiseLayer* addElementWise(nv::ITensor& input1, nv::ITensor& input2,
                                        nv::ElementWiseOperation op) noexcept override;
  nv::IUnaryLayer* addUnary(nv::ITensor& input, nv::UnaryOperation operation) noexcept override;
  nv::IShuffleLayer* addShuffle(nv::ITensor& input) noexcept override;
  int32_t getNbLayers() const noexcept override { return static_cast<int32_t>(layers_.size()); }
  nv::ILayer* getLayer(int32_t index) const noexcept override;
  int32_t getNbInputs() const noexcept override { return static_cast<int32_t>(inputs_.size()); }
  nv::ITensor* getInput(int32_t index) const noexcept override;
  int32_t getNbOutputs() const noexcept override { return static_cast<int32_t>(outputs_.size()); }
  nv::ITensor* getOutput(int32_t index) const noexcept override;
  nv::IReduceLayer* addReduce(nv::ITensor& input, nv::ReduceOperation operation, uint32_t reduceAxes,
                              bool keepDimensions) noexcept override;
  nv::ITopKLayer* addTopK(nv::ITensor& input, nv::TopKOperation op, int32_t k, uint32_t reduceAxes) noexcept override;
  nv::IGatherLayer* addGather(nv::ITensor& data, nv::ITensor& indices, int32_t axis) noexcept override;
  nv::IRaggedSoftMaxLayer* addRaggedSoftMax(nv::ITensor& input, nv::ITensor& bounds) noexcept override;
  nv::IMatrixMultiplyLayer* addMatrixMultiply(nv::ITensor& input0, nv::MatrixOperation op0, nv::ITensor& input1,
                                              nv::MatrixOperation op1) noexcept override;
  nv::IConstantLayer* addConstant(const nv::Dims& dimensions, nv::Weights weights) noexcept override;
  nv::IIdentityLayer* addIdentity(nv::ITensor& input) noexcept override;
  void removeTensor(nv::ITensor& tensor) noexcept override;
  void unmarkOutput(nv::ITensor& tensor) noexcept override;
  nv::IPluginV2Layer* addPluginV2(nv::ITensor* const* inputs, int32_t nbInputs,
                                  nv::IPluginV2& plugin) noexcept override;
  nv::IPluginV3Layer* addPluginV3(nv::ITensor* const* inputs, int32_t nbInputs, nv::ITensor* const* shapeInputs,
                                  int32_t nbShapeInputs, nv::IPluginV3& plugin) noexcept override;
  nv::ISliceLayer* addSlice(nv::ITensor& input, const nv::Dims& start, const nv::Dims& size,
                            const nv::Dims& stride) noexcept override;
  void setName(const char* name) noexcept override;
  const char* getName() const noexcept override { return graph_.name().c_str(); }
  nv::IShapeLayer* addShape(nv::ITensor& input) noexcept override;
  bool hasImplicitBatchDimension() const noexcept override { return false; }
  bool markOutputForShapes(nv::ITensor& tensor) noexcept override;
  bool unmarkOutputForShapes(nv::ITensor& tensor) noexcept override;
  nv::IParametricReLULayer* addParametricReLU(nv::ITensor& input, nv::ITensor& slope) noexcept override;
  nv::IConvolutionLayer* addConvolutionNd(nv::ITensor& input, int64_t nbOutputMaps, const nv::Dims& kernelSize,
                                          nv::Weights kernelWeights, nv::Weights biasWeights) noexcept override;
  nv::IPoolingLayer* addPoolingNd(nv::ITensor& input, nv::PoolingType type,
                                  const nv::Dims& windowSize) noexcept override;
  nv::IDeconvolutionLayer* addDeconvolutionNd(nv::ITensor& input, int64_t nbOutputMaps, const nv::Dims& kernelSize,
                                              nv::Weights kernelWeights, nv::Weights biasWeights) noexcept override;
  nv::IScaleLayer* addScaleNd(nv::ITensor& input, nv::ScaleMode mode, nv::Weights shift, nv::Weights scale,
                              nv::Weights power, int32_t channelAxis) noexcept override;
  nv::IResizeLayer* addResize(nv::ITensor& input) noexcept override;
  nv::ILoop* addLoop() noexcept override;
  nv::ISelectLayer* addSelect(nv::ITensor& condition, nv::ITensor& thenInput, nv::ITensor& elseInput) noexcept override;
  nv::IPaddingLayer* addPaddingNd(nv::ITensor& input, const nv::Dims& prePadding,
                                  const nv::Dims& postPadding) noexcept override;
  bool setWeightsName(nv::Weights weights, const char* name) noexcept override;
  void setErrorRecorder(nv::IErrorRecorder* recorder) noexcept override { reporter_->set_recorder(recorder); }
  nv::IErrorRecorder* getErrorRecorder() const noexcept override { return reporter_->recorder(); }
  nv::IGatherLayer* addGatherV2(nv::ITensor& data, nv::ITensor& indices, nv::GatherMode mode) noexcept override;
  nv::IIfConditional* addIfConditional() noexcept override;
  nv::IScatterLayer* addScatter(nv::ITensor& data, nv::ITensor& indices, nv::ITensor& updates,
                                nv::ScatterMode mode) noexcept override;
  nv::IEinsumLayer* addEinsum(nv::ITensor* const* inputs, int32_t nbInputs, const char* equation) noexcept override;
  nv::IAssertionLayer* addAssertion(nv::ITensor& condition, const char* message) noexcept override;
  nv::IOneHotLayer* addOneHot(nv::ITensor& indices, nv::ITensor& values, nv::ITensor& depth,
                              int32_t axis) noexcept override;
  nv::INonZeroLayer* addNonZero(nv::ITensor& input) noexcept override;
  nv::IGridSampleLayer* addGridSample(nv::ITensor& input, nv::ITensor& grid) noexcept override;
  nv::INMSLayer* addNMS(nv::ITensor& boxes, nv::ITensor& scores, nv::ITensor& maxOutputBoxesPerClass) noexcept override;
  nv::IReverseSequenceLayer* addReverseSequence(nv::ITensor& input, nv::ITensor& sequenceLens) noexcept override;
  nv::INormalizationLayer* addNormalization(nv::ITensor& input, nv::ITensor& scale, nv::ITensor& bias,
                                            uint32_t axesMask) noexcept override;
  nv::ICastLayer* addCast(nv::ITensor& input, nv::DataType toType) noexcept override;
  nv::IBuilder& getBuilder() const noexcept override;
  nv::NetworkDefinitionCreationFlags getFlags() const noexcept override { return flags_; }
  bool getFlag(nv::NetworkDefinitionCreationFlag flag) const noexcept override;
  nv::IQuantizeLayer* addQuantizeV2(nv::ITensor& input, nv::ITensor& scale, nv::DataType outputType) noexcept override;
  nv::IDequantizeLayer* addDequantizeV2(nv::ITensor& input, nv::ITensor& scale,
                                        nv::DataType outputType) noexcept override;
  nv::IFillLayer* addFillV2(const nv::Dims& dimensions, nv::FillOperation op,
                            nv::DataType outputType) noexcept override;
  bool markDebug(nv::ITensor& tensor) noexcept override;
  bool unmarkDebug(nv::ITensor& tensor) noexcept override;
  bool isDebugTensor(const nv::ITensor& tensor) const noexcept override;
  bool markWeightsRefittable(const char* name) noexcept override;
  bool unmarkWeightsRefittable(const char* name) noexcept override;
  bool areWeightsMarkedRefittable(const char* name) const noexcept override;
  nv::ISqueezeLayer* addSqueeze(nv::ITensor& input, nv::ITensor& axes) noexcept override;
  nv::IUnsqueezeLayer* addUnsqueeze(nv::ITensor& input, nv::ITensor& axes) noexcept override;
  nv::IDynamicQuantizeLayer* addDynamicQuantize(nv::ITensor& input, int32_t axis, int32_t blockSize,
                                                nv::DataType outputType, nv::DataType scaleType) noexcept override;
  nv::ICumulativeLayer* addCumulative(nv::ITensor& input, nv::ITensor& axis, nv::CumulativeOperation operation,
                                      bool exclusive, bool reverse) noexcept override;
  bool markUnfusedTensorsAsDebugTensors() noexcept override;
  bool unmarkUnfusedTensorsAsDebugTensors() noexcept override;
  bool unfused_are_debug() const { return unfused_are_debug_; }
  nv::ITopKLayer* addTopKV2(nv::ITensor& input, nv::TopKOperation op, int32_t k, uint32_t reduceAxes,
                            nv::DataType indicesType) noexcept override;
  nv::INonZeroLayer* addNonZeroV2(nv::ITensor& input, nv::DataType indicesType) noexcept override;
  nv::INMSLayer* addNMSV2(nv::ITensor& boxes, nv::ITensor& scores, nv::ITensor& maxOutputBoxesPerClass,
                          nv::DataType indicesType) noexcept override;
  nv::IAttention* addAttention(nv::ITensor& query, nv::ITensor& key, nv::ITensor& value,
                               nv::AttentionNormalizationOp normOp, bool causal) noexcept override;
  nv::IRotaryEmbeddingLayer* addRotaryEmbedding(nv::ITensor& input, nv::ITensor& cosCache, nv::ITensor& sinCache,
                                                bool interleaved, int32_t rotaryEmbeddingDim) noexcept override;
  nv::IDynamicQuantizeLayer* addDynamicQuantizeV2(nv::ITensor& input, const nv::Dims& blockShape,
                                                  nv::DataType outputType, nv::DataType scaleType) noexcept override;
  nv::IKVCacheUpdateLayer* addKVCacheUpdate(nv::ITensor& cache, nv::ITensor& update, nv::ITensor& writeIndices,
                                            nv::KVCacheMode cacheMode) noexcept override;
  nv::INormalizationLayer* addNormalizationV2(nv::ITensor& input, nv::ITensor& scale, nv::ITensor& bias,
                                              uint32_t axesMask) noexcept override;
  nv::IMoELayer* addMoE(nv::ITensor& hiddenStates, nv::ITensor& selectedExpertsForTokens,
                        nv::ITensor& scoresForSelectedExperts) noexcept override;
  nv::IDistCollectiveLayer* addDistCollective(nv::ITensor& input, nv::CollectiveOperation distCollectiveOp,
                                              nv::ReduceOperation reduceOp, int64_t root, int64_t* groups,
                                              int64_t groupSize) noexcept override;
  nv::IAttention* addAttentionV2(nv::ITensor& query, nv::ITensor& key, nv::ITensor& value,
                                 nv::AttentionNormalizationOp normOp, nv::CausalMaskKind causalKind) noexcept override;

#if NV_TENSORRT_MAJOR < 11
  nv::IFillLayer* addFill(const nv::Dims& dimensions, nv::FillOperation op) noexcept override;
  nv::IDequantizeLayer* addDequantize(nv::ITensor& input, nv::ITensor& scale) noexcept override;
  nv::IQuantizeLayer* addQuantize(nv::ITensor& input, nv::ITensor& scale) noexcept override;
#endif

 private:
  Result<> set_output(nv::ITensor& tensor, bool output);

  std::shared_ptr<BuilderCore> core_;
  std::shared_ptr<Reporter> reporter_;
  mutable Exclusive use_{"network"};
  nv::NetworkDefinitionCreationFlags flags_;
  SettingNotices notices_;
  ir::Graph graph_;
  Reimport reimport_;
  std::shared_ptr<PluginImport> plugins_;
  std::vector<std::shared_ptr<const MappedFile>> files_;
  std::vector<std::shared_ptr<onnx::AlignedCopies>> copies_;
  std::vector<std::unique_ptr<TensorView>> inputs_;
  std::vector<TensorView*> outputs_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<std::unique_ptr<Loop>> loops_;
  std::vector<std::unique_ptr<Conditional>> conditionals_;
  std::vector<std::unique_ptr<AttentionDefinition>> attentions_;
  std::unordered_map<const ir::Value*, TensorView*> imported_;  // while adopting only
  bool settled_ = true;
  bool sorted_ = true;
  bool outputs_settled_ = true;  // the graph's outputs are outputs_
  bool unfused_are_debug_ = false;
  std::unordered_map<std::string, nv::Weights> weights_names_;
  std::unordered_set<std::string> refittable_;
  std::unordered_set<std::string> model_weights_;  // names of values
  std::unique_ptr<nv::IBuilder> builder_stand_in_;
};

}  // namespace lathe::api

#pragma GCC diagnostic pop
