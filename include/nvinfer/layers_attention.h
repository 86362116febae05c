// SPDX-License-Identifier: Apache-2.0
// Attention, caches, experts and collectives. Include NvInfer.h instead.
#ifndef NVINFER_LAYERS_ATTENTION_H
#define NVINFER_LAYERS_ATTENTION_H

#include "nvinfer/tensor.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {

// Base of the layers at the edge of an attention.
class IAttentionBoundaryLayer : public ILayer {
 public:
  IAttention* getAttention() const noexcept { return mBoundary->getAttention(); }

 protected:
  virtual ~IAttentionBoundaryLayer() noexcept = 0;
  apiv::VAttentionBoundaryLayer* mBoundary;
};
inline IAttentionBoundaryLayer::~IAttentionBoundaryLayer() noexcept = default;

// Query, key and value enter an attention here.
class IAttentionInputLayer : public IAttentionBoundaryLayer {
 public:
  using ILayer::setInput;

 protected:
  virtual ~IAttentionInputLayer() noexcept = 0;
  apiv::VAttentionInputLayer* mImpl;
};
inline IAttentionInputLayer::~IAttentionInputLayer() noexcept = default;

// The result of an attention.
class IAttentionOutputLayer : public IAttentionBoundaryLayer {
 protected:
  virtual ~IAttentionOutputLayer() noexcept = 0;
  apiv::VAttentionOutputLayer* mImpl;
};
inline IAttentionOutputLayer::~IAttentionOutputLayer() noexcept = default;

// normalize(query * key^T + mask) * value per head, as one unit. The caller scales the query. Tensors are [B, H, S,
// D], or packed [tokens, H, D] with lengths. Owned by the network. Setters return false when the value is not allowed.
class IAttention : public INoCopy {
 public:
  bool setNormalizationOperation(AttentionNormalizationOp op) noexcept { return mImpl->setNormalizationOperation(op); }
  AttentionNormalizationOp getNormalizationOperation() const noexcept { return mImpl->getNormalizationOperation(); }

  // kBOOL (true keeps a score) or added to the scores; repeated to [B, H, Sq, Sk].
  bool setMask(ITensor& mask) noexcept { return mImpl->setMask(mask); }
  ITensor* getMask() noexcept { return mImpl->getMask(); }

  // Deprecated: setCausalKind().
  TRT_DEPRECATED bool setCausal(bool isCausal) noexcept { return mImpl->setCausal(isCausal); }
  TRT_DEPRECATED bool getCausal() const noexcept { return mImpl->getCausal(); }

  // Which scores above the diagonal are masked. Not together with setMask().
  bool setCausalKind(CausalMaskKind kind) noexcept { return mImpl->setCausalKind(kind); }
  CausalMaskKind getCausalKind() const noexcept { return mImpl->getCausalKind(); }

  // Whether it may be split into several kernels when no fused one exists; false by default.
  bool setDecomposable(bool decomposable) noexcept { return mImpl->setDecomposable(decomposable); }
  bool getDecomposable() const noexcept { return mImpl->getDecomposable(); }

  // 0 query, 1 key, 2 value; further ones as the setters below add them.
  bool setInput(int32_t index, ITensor& input) noexcept { return mImpl->setInput(index, input); }

  int32_t getNbInputs() const noexcept { return mImpl->getNbInputs(); }

  ITensor* getInput(int32_t index) const noexcept { return mImpl->getInput(index); }

  int32_t getNbOutputs() const noexcept { return mImpl->getNbOutputs(); }

  ITensor* getOutput(int32_t index) const noexcept { return mImpl->getOutput(index); }

  // Copied.
  bool setName(const char* name) noexcept { return mImpl->setName(name); }
  const char* getName() const noexcept { return mImpl->getName(); }

  // Quantizes the normalized scores with this scale, to this type.
  bool setNormalizationQuantizeScale(ITensor& tensor) noexcept { return mImpl->setNormalizationQuantizeScale(tensor); }
  ITensor* getNormalizationQuantizeScale() const noexcept { return mImpl->getNormalizationQuantizeScale(); }

  bool setNormalizationQuantizeToType(DataType type) noexcept { return mImpl->setNormalizationQuantizeToType(type); }
  DataType getNormalizationQuantizeToType() const noexcept { return mImpl->getNormalizationQuantizeToType(); }

  // Copied.
  bool setMetadata(const char* metadata) noexcept { return mImpl->setMetadata(metadata); }
  const char* getMetadata() const noexcept { return mImpl->getMetadata(); }

  bool setNbRanks(int32_t nbRanks) noexcept { return mImpl->setNbRanks(nbRanks); }
  int32_t getNbRanks() const noexcept { return mImpl->getNbRanks(); }

  // kPADDED_BHND by default.
  bool setQueryForm(AttentionIOForm form) noexcept { return mImpl->setQueryForm(form); }
  AttentionIOForm getQueryForm() const noexcept { return mImpl->getQueryForm(); }

  bool setKeyValueForm(AttentionIOForm form) noexcept { return mImpl->setKeyValueForm(form); }
  AttentionIOForm getKeyValueForm() const noexcept { return mImpl->getKeyValueForm(); }

  // Start of each sequence, for packed tensors: a 1-D INT32 tensor. nullptr removes it.
  bool setQueryLengths(ITensor* lengths) noexcept { return mImpl->setQueryLengths(lengths); }
  ITensor* getQueryLengths() const noexcept { return mImpl->getQueryLengths(); }

  bool setKeyValueLengths(ITensor* lengths) noexcept { return mImpl->setKeyValueLengths(lengths); }
  ITensor* getKeyValueLengths() const noexcept { return mImpl->getKeyValueLengths(); }

 protected:
  virtual ~IAttention() noexcept = 0;
  apiv::VAttention* mImpl;
};
inline IAttention::~IAttention() noexcept = default;

// Rotary position embedding. Inputs: x, cosines, sines; optional 3: position ids.
class IRotaryEmbeddingLayer : public ILayer {
 public:
  // Whether pairs are neighbours, or the halves of a head.
  void setInterleaved(bool interleaved) noexcept { mImpl->setInterleaved(interleaved); }
  bool getInterleaved() const noexcept { return mImpl->getInterleaved(); }

  // How many leading elements of a head are rotated; 0 means all.
  bool setRotaryEmbeddingDim(int32_t rotaryEmbeddingDim) noexcept {
    return mImpl->setRotaryEmbeddingDim(rotaryEmbeddingDim);
  }
  int32_t getRotaryEmbeddingDim() const noexcept { return mImpl->getRotaryEmbeddingDim(); }

  using ILayer::setInput;

 protected:
  virtual ~IRotaryEmbeddingLayer() noexcept = 0;
  apiv::VRotaryEmbeddingLayer* mImpl;
};
inline IRotaryEmbeddingLayer::~IRotaryEmbeddingLayer() noexcept = default;

// Writes rows into a cache: row r of sequence b goes to writeIndices[b] + r. Where the cache is an input of the network
// that nothing else reads, and the output one of its outputs, both may be one memory:
// ICudaEngine::getAliasedInputTensor().
class IKVCacheUpdateLayer : public ILayer {
 public:
  bool setCacheMode(KVCacheMode cacheMode) noexcept { return mImpl->setCacheMode(cacheMode); }
  KVCacheMode getCacheMode() const noexcept { return mImpl->getCacheMode(); }

  bool setUpdateForm(AttentionIOForm form) noexcept { return mImpl->setUpdateForm(form); }
  AttentionIOForm getUpdateForm() const noexcept { return mImpl->getUpdateForm(); }

  // For packed updates: start of each sequence. nullptr removes it.
  bool setUpdateLengths(ITensor* lengths) noexcept { return mImpl->setUpdateLengths(lengths); }
  ITensor* getUpdateLengths() const noexcept { return mImpl->getUpdateLengths(); }

  using ILayer::setInput;

 protected:
  virtual ~IKVCacheUpdateLayer() noexcept = 0;
  apiv::VKVCacheUpdateLayer* mImpl;
};
inline IKVCacheUpdateLayer::~IKVCacheUpdateLayer() noexcept = default;

// Mixture of experts: each token goes through its chosen experts, and the results are weighted by their scores.
class IMoELayer : public ILayer {
 public:
  // Gate, up and down projections, [experts, ...] each.
  void setGatedWeights(ITensor& fcGateWeights, ITensor& fcUpWeights, ITensor& fcDownWeights,
                       MoEActType activationType) noexcept {
    mImpl->setGatedWeights(fcGateWeights, fcUpWeights, fcDownWeights, activationType);
  }

  void setGatedBiases(ITensor& fcGateBiases, ITensor& fcUpBiases, ITensor& fcDownBiases) noexcept {
    mImpl->setGatedBiases(fcGateBiases, fcUpBiases, fcDownBiases);
  }

  void setActivationType(MoEActType activationType) noexcept { mImpl->setActivationType(activationType); }
  MoEActType getActivationType() const noexcept { return mImpl->getActivationType(); }

  // Quantizes the input of the down projection: with a given scale, or with scales found at run time.
  void setQuantizationStatic(ITensor& fcDownActivationScale, DataType dataType) noexcept {
    mImpl->setQuantizationStatic(fcDownActivationScale, dataType);
  }
  void setQuantizationDynamicDblQ(ITensor& fcDownActivationDblQScale, DataType dataType, const Dims& blockShape,
                                  DataType dynQOutputScaleType) noexcept {
    mImpl->setQuantizationDynamicDblQ(fcDownActivationDblQScale, dataType, blockShape, dynQOutputScaleType);
  }

  void setQuantizationToType(DataType type) noexcept { mImpl->setQuantizationToType(type); }
  DataType getQuantizationToType() const noexcept { return mImpl->getQuantizationToType(); }

  void setQuantizationBlockShape(const Dims& blockShape) noexcept { mImpl->setQuantizationBlockShape(blockShape); }
  Dims getQuantizationBlockShape() const noexcept { return mImpl->getQuantizationBlockShape(); }

  void setDynQOutputScaleType(DataType type) noexcept { mImpl->setDynQOutputScaleType(type); }
  DataType getDynQOutputScaleType() const noexcept { return mImpl->getDynQOutputScaleType(); }

  // min(gate, limit) * sigmoid(alpha * gate) * (clamp(up, limit) + beta).
  void setSwigluParams(float limit, float alpha, float beta) noexcept { mImpl->setSwigluParams(limit, alpha, beta); }

  void setSwigluParamLimit(float limit) noexcept { mImpl->setSwigluParamLimit(limit); }
  float getSwigluParamLimit() const noexcept { return mImpl->getSwigluParamLimit(); }

  void setSwigluParamAlpha(float alpha) noexcept { mImpl->setSwigluParamAlpha(alpha); }
  float getSwigluParamAlpha() const noexcept { return mImpl->getSwigluParamAlpha(); }

  void setSwigluParamBeta(float beta) noexcept { mImpl->setSwigluParamBeta(beta); }
  float getSwigluParamBeta() const noexcept { return mImpl->getSwigluParamBeta(); }

  // 0 hidden states, 1 chosen experts, 2 their scores.
  void setInput(int32_t index, ITensor& tensor) noexcept { mImpl->setInput(index, tensor); }

  using ILayer::setInput;

 protected:
  virtual ~IMoELayer() noexcept = 0;
  apiv::VMoELayer* mImpl;
};
inline IMoELayer::~IMoELayer() noexcept = default;

// Exchanges data with other processes through the context's communicator.
class IDistCollectiveLayer : public ILayer {
 protected:
  virtual ~IDistCollectiveLayer() noexcept = 0;
  apiv::VDistCollectiveLayer* mImpl;
};
inline IDistCollectiveLayer::~IDistCollectiveLayer() noexcept = default;

}  // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif  // NVINFER_LAYERS_ATTENTION_H
