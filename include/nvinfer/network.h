// SPDX-License-Identifier: Apache-2.0
// The network definition. Include NvInfer.h instead.
#ifndef NVINFER_NETWORK_H
#define NVINFER_NETWORK_H

#include "nvinfer/layers_attention.h"
#include "nvinfer/layers_basic.h"
#include "nvinfer/layers_control.h"
#include "nvinfer/layers_quantize.h"
#include "nvinfer/layers_select.h"
#include "nvinfer/layers_shape.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {

// A network under construction. Adders return a layer that the network owns, or nullptr when the arguments are
// invalid. Weights are referenced, not copied, until the build is done. One thread at a time. The caller deletes it.
class INetworkDefinition : public INoCopy {
 public:
  virtual ~INetworkDefinition() noexcept = 0;

  // nullptr when the name is taken or the dims are invalid. -1 in dims is a size known at run time.
  ITensor* addInput(const char* name, DataType type, const Dims& dimensions) noexcept {
    return mImpl->addInput(name, type, dimensions);
  }

  void markOutput(ITensor& tensor) noexcept { mImpl->markOutput(tensor); }

  // Debug tensors reach the context's IDebugListener.
  bool markDebug(ITensor& tensor) noexcept { return mImpl->markDebug(tensor); }
  bool unmarkDebug(ITensor& tensor) noexcept { return mImpl->unmarkDebug(tensor); }
  bool isDebugTensor(const ITensor& tensor) const noexcept { return mImpl->isDebugTensor(tensor); }

  // All tensors that survive fusion.
  bool markUnfusedTensorsAsDebugTensors() noexcept { return mImpl->markUnfusedTensorsAsDebugTensors(); }
  bool unmarkUnfusedTensorsAsDebugTensors() noexcept { return mImpl->unmarkUnfusedTensorsAsDebugTensors(); }

  IActivationLayer* addActivation(ITensor& input, ActivationType type) noexcept {
    return mImpl->addActivation(input, type);
  }

  ILRNLayer* addLRN(ITensor& input, int64_t window, float alpha, float beta, float k) noexcept {
    return mImpl->addLRN(input, window, alpha, beta, k);
  }

  // For rank >= 4; channels are dimension 1.
  IScaleLayer* addScale(ITensor& input, ScaleMode mode, Weights shift, Weights scale, Weights power) noexcept {
    return mImpl->addScale(input, mode, shift, scale, power);
  }

  ISoftMaxLayer* addSoftMax(ITensor& input) noexcept { return mImpl->addSoftMax(input); }

  IConcatenationLayer* addConcatenation(ITensor* const* inputs, int32_t nbInputs) noexcept {
    return mImpl->addConcatenation(inputs, nbInputs);
  }

  IElementWiseLayer* addElementWise(ITensor& input1, ITensor& input2, ElementWiseOperation op) noexcept {
    return mImpl->addElementWise(input1, input2, op);
  }

  IUnaryLayer* addUnary(ITensor& input, UnaryOperation operation) noexcept { return mImpl->addUnary(input, operation); }

  IShuffleLayer* addShuffle(ITensor& input) noexcept { return mImpl->addShuffle(input); }

  IOneHotLayer* addOneHot(ITensor& indices, ITensor& values, ITensor& depth, int32_t axis) noexcept {
    return mImpl->addOneHot(indices, values, depth, axis);
  }

  // nullptr when the index is out of range, here and below.
  int32_t getNbLayers() const noexcept { return mImpl->getNbLayers(); }
  ILayer* getLayer(int32_t index) const noexcept { return mImpl->getLayer(index); }

  int32_t getNbInputs() const noexcept { return mImpl->getNbInputs(); }
  ITensor* getInput(int32_t index) const noexcept { return mImpl->getInput(index); }

  int32_t getNbOutputs() const noexcept { return mImpl->getNbOutputs(); }
  ITensor* getOutput(int32_t index) const noexcept { return mImpl->getOutput(index); }

  IReduceLayer* addReduce(ITensor& input, ReduceOperation operation, uint32_t reduceAxes,
                          bool keepDimensions) noexcept {
    return mImpl->addReduce(input, operation, reduceAxes, keepDimensions);
  }

  TRT_DEPRECATED ITopKLayer* addTopK(ITensor& input, TopKOperation op, int32_t k, uint32_t reduceAxes) noexcept {
    return mImpl->addTopK(input, op, k, reduceAxes);
  }

  ITopKLayer* addTopK(ITensor& input, TopKOperation op, int32_t k, uint32_t reduceAxes, DataType indicesType) noexcept {
    return mImpl->addTopKV2(input, op, k, reduceAxes, indicesType);
  }

  IGatherLayer* addGather(ITensor& data, ITensor& indices, int32_t axis) noexcept {
    return mImpl->addGather(data, indices, axis);
  }

  IGatherLayer* addGatherV2(ITensor& data, ITensor& indices, GatherMode mode) noexcept {
    return mImpl->addGatherV2(data, indices, mode);
  }

  IRaggedSoftMaxLayer* addRaggedSoftMax(ITensor& input, ITensor& bounds) noexcept {
    return mImpl->addRaggedSoftMax(input, bounds);
  }

  IMatrixMultiplyLayer* addMatrixMultiply(ITensor& input0, MatrixOperation op0, ITensor& input1,
                                          MatrixOperation op1) noexcept {
    return mImpl->addMatrixMultiply(input0, op0, input1, op1);
  }

  TRT_DEPRECATED INonZeroLayer* addNonZero(ITensor& input) noexcept { return mImpl->addNonZero(input); }

  INonZeroLayer* addNonZero(ITensor& input, DataType indicesType) noexcept {
    return mImpl->addNonZeroV2(input, indicesType);
  }

  IConstantLayer* addConstant(const Dims& dimensions, Weights weights) noexcept {
    return mImpl->addConstant(dimensions, weights);
  }

  IIdentityLayer* addIdentity(ITensor& input) noexcept { return mImpl->addIdentity(input); }

  ICastLayer* addCast(ITensor& input, DataType toType) noexcept { return mImpl->addCast(input, toType); }

  // Only when nothing uses it.
  void removeTensor(ITensor& tensor) noexcept { mImpl->removeTensor(tensor); }

  void unmarkOutput(ITensor& tensor) noexcept { mImpl->unmarkOutput(tensor); }

  // The network keeps a clone of the plugin.
  TRT_DEPRECATED IPluginV2Layer* addPluginV2(ITensor* const* inputs, int32_t nbInputs, IPluginV2& plugin) noexcept {
    return mImpl->addPluginV2(inputs, nbInputs, plugin);
  }

  IPluginV3Layer* addPluginV3(ITensor* const* inputs, int32_t nbInputs, ITensor* const* shapeInputs,
                              int32_t nbShapeInputs, IPluginV3& plugin) noexcept {
    return mImpl->addPluginV3(inputs, nbInputs, shapeInputs, nbShapeInputs, plugin);
  }

  ISliceLayer* addSlice(ITensor& input, const Dims& start, const Dims& size, const Dims& stride) noexcept {
    return mImpl->addSlice(input, start, size, stride);
  }

  // Stored in the engine. Copied.
  void setName(const char* name) noexcept { mImpl->setName(name); }
  const char* getName() const noexcept { return mImpl->getName(); }

  IShapeLayer* addShape(ITensor& input) noexcept { return mImpl->addShape(input); }

  // Always false.
  TRT_DEPRECATED bool hasImplicitBatchDimension() const noexcept { return mImpl->hasImplicitBatchDimension(); }

  // What IBuilder::createNetworkV2() was given.
  NetworkDefinitionCreationFlags getFlags() const noexcept { return mImpl->getFlags(); }
  bool getFlag(NetworkDefinitionCreationFlag networkDefinitionCreationFlag) const noexcept {
    return mImpl->getFlag(networkDefinitionCreationFlag);
  }

  // The tensor's values become a host output, computed with the shapes.
  bool markOutputForShapes(ITensor& tensor) noexcept { return mImpl->markOutputForShapes(tensor); }
  bool unmarkOutputForShapes(ITensor& tensor) noexcept { return mImpl->unmarkOutputForShapes(tensor); }

  IParametricReLULayer* addParametricReLU(ITensor& input, ITensor& slope) noexcept {
    return mImpl->addParametricReLU(input, slope);
  }

  IConvolutionLayer* addConvolutionNd(ITensor& input, int64_t nbOutputMaps, const Dims& kernelSize,
                                      Weights kernelWeights, Weights biasWeights) noexcept {
    return mImpl->addConvolutionNd(input, nbOutputMaps, kernelSize, kernelWeights, biasWeights);
  }

  IPoolingLayer* addPoolingNd(ITensor& input, PoolingType type, const Dims& windowSize) noexcept {
    return mImpl->addPoolingNd(input, type, windowSize);
  }

  IDeconvolutionLayer* addDeconvolutionNd(ITensor& input, int64_t nbOutputMaps, Dims kernelSize, Weights kernelWeights,
                                          Weights biasWeights) noexcept {
    return mImpl->addDeconvolutionNd(input, nbOutputMaps, kernelSize, kernelWeights, biasWeights);
  }

  IScaleLayer* addScaleNd(ITensor& input, ScaleMode mode, Weights shift, Weights scale, Weights power,
                          int32_t channelAxis) noexcept {
    return mImpl->addScaleNd(input, mode, shift, scale, power, channelAxis);
  }

  IResizeLayer* addResize(ITensor& input) noexcept { return mImpl->addResize(input); }

  ILoop* addLoop() noexcept { return mImpl->addLoop(); }

  IIfConditional* addIfConditional() noexcept { return mImpl->addIfConditional(); }

  ISelectLayer* addSelect(ITensor& condition, ITensor& thenInput, ITensor& elseInput) noexcept {
    return mImpl->addSelect(condition, thenInput, elseInput);
  }

  IAssertionLayer* addAssertion(ITensor& condition, const char* message) noexcept {
    return mImpl->addAssertion(condition, message);
  }

  IFillLayer* addFill(const Dims& dimensions, FillOperation op, DataType outputType) noexcept {
    return mImpl->addFillV2(dimensions, op, outputType);
  }

  IPaddingLayer* addPaddingNd(ITensor& input, const Dims& prePadding, const Dims& postPadding) noexcept {
    return mImpl->addPaddingNd(input, prePadding, postPadding);
  }

  // A name for refitting. False when no layer uses these weights or the name is taken. Copied.
  bool setWeightsName(Weights weights, const char* name) noexcept { return mImpl->setWeightsName(weights, name); }

  // nullptr detaches.
  void setErrorRecorder(IErrorRecorder* recorder) noexcept { mImpl->setErrorRecorder(recorder); }
  IErrorRecorder* getErrorRecorder() const noexcept { return mImpl->getErrorRecorder(); }

  IDequantizeLayer* addDequantize(ITensor& input, ITensor& scale, DataType outputType) noexcept {
    return mImpl->addDequantizeV2(input, scale, outputType);
  }

  IScatterLayer* addScatter(ITensor& data, ITensor& indices, ITensor& updates, ScatterMode mode) noexcept {
    return mImpl->addScatter(data, indices, updates, mode);
  }

  IQuantizeLayer* addQuantize(ITensor& input, ITensor& scale, DataType outputType) noexcept {
    return mImpl->addQuantizeV2(input, scale, outputType);
  }

  TRT_DEPRECATED IDynamicQuantizeLayer* addDynamicQuantize(ITensor& input, int32_t axis, int32_t blockSize,
                                                           DataType outputType, DataType scaleType) noexcept {
    return mImpl->addDynamicQuantize(input, axis, blockSize, outputType, scaleType);
  }

  IDynamicQuantizeLayer* addDynamicQuantizeV2(ITensor& input, const Dims& blockShape, DataType outputType,
                                              DataType scaleType) noexcept {
    return mImpl->addDynamicQuantizeV2(input, blockShape, outputType, scaleType);
  }

  IEinsumLayer* addEinsum(ITensor* const* inputs, int32_t nbInputs, const char* equation) noexcept {
    return mImpl->addEinsum(inputs, nbInputs, equation);
  }

  IGridSampleLayer* addGridSample(ITensor& input, ITensor& grid) noexcept { return mImpl->addGridSample(input, grid); }

  TRT_DEPRECATED INMSLayer* addNMS(ITensor& boxes, ITensor& scores, ITensor& maxOutputBoxesPerClass) noexcept {
    return mImpl->addNMS(boxes, scores, maxOutputBoxesPerClass);
  }

  INMSLayer* addNMS(ITensor& boxes, ITensor& scores, ITensor& maxOutputBoxesPerClass, DataType indicesType) noexcept {
    return mImpl->addNMSV2(boxes, scores, maxOutputBoxesPerClass, indicesType);
  }

  IReverseSequenceLayer* addReverseSequence(ITensor& input, ITensor& sequenceLens) noexcept {
    return mImpl->addReverseSequence(input, sequenceLens);
  }

  TRT_DEPRECATED INormalizationLayer* addNormalization(ITensor& input, ITensor& scale, ITensor& bias,
                                                       uint32_t axesMask) noexcept {
    return mImpl->addNormalization(input, scale, bias, axesMask);
  }

  ICumulativeLayer* addCumulative(ITensor& input, ITensor& axis, CumulativeOperation operation, bool exclusive,
                                  bool reverse) noexcept {
    return mImpl->addCumulative(input, axis, operation, exclusive, reverse);
  }

  TRT_DEPRECATED IAttention* addAttention(ITensor& query, ITensor& key, ITensor& value, AttentionNormalizationOp normOp,
                                          bool causal) noexcept {
    return mImpl->addAttention(query, key, value, normOp, causal);
  }

#if NV_TENSORRT_MAJOR >= 11
  IAttention* addAttentionV2(ITensor& query, ITensor& key, ITensor& value, AttentionNormalizationOp normOp,
                             CausalMaskKind causalKind) noexcept {
    return mImpl->addAttentionV2(query, key, value, normOp, causalKind);
  }
#endif

  IRotaryEmbeddingLayer* addRotaryEmbedding(ITensor& input, ITensor& cosCache, ITensor& sinCache, bool interleaved,
                                            int32_t rotaryEmbeddingDim) noexcept {
    return mImpl->addRotaryEmbedding(input, cosCache, sinCache, interleaved, rotaryEmbeddingDim);
  }

  IKVCacheUpdateLayer* addKVCacheUpdate(ITensor& cache, ITensor& update, ITensor& writeIndices,
                                        KVCacheMode cacheMode) noexcept {
    return mImpl->addKVCacheUpdate(cache, update, writeIndices, cacheMode);
  }

  IMoELayer* addMoE(ITensor& hiddenStates, ITensor& selectedExpertsForTokens,
                    ITensor& scoresForSelectedExperts) noexcept {
    return mImpl->addMoE(hiddenStates, selectedExpertsForTokens, scoresForSelectedExperts);
  }

  IDistCollectiveLayer* addDistCollective(ITensor& input, CollectiveOperation distCollectiveOp,
                                          ReduceOperation reduceOp, int64_t root, int64_t* groups,
                                          int64_t groupSize) noexcept {
    return mImpl->addDistCollective(input, distCollectiveOp, reduceOp, root, groups, groupSize);
  }

  virtual IBuilder& getBuilder() const noexcept { return mImpl->getBuilder(); }

  // With BuilderFlag::kREFIT_INDIVIDUAL: which named weights may be refitted.
  bool markWeightsRefittable(const char* name) noexcept { return mImpl->markWeightsRefittable(name); }
  bool unmarkWeightsRefittable(const char* name) noexcept { return mImpl->unmarkWeightsRefittable(name); }
  bool areWeightsMarkedRefittable(const char* name) const noexcept { return mImpl->areWeightsMarkedRefittable(name); }

  ISqueezeLayer* addSqueeze(ITensor& input, ITensor& axes) noexcept { return mImpl->addSqueeze(input, axes); }

  IUnsqueezeLayer* addUnsqueeze(ITensor& input, ITensor& axes) noexcept { return mImpl->addUnsqueeze(input, axes); }

  INormalizationLayer* addNormalizationV2(ITensor& input, ITensor& scale, ITensor& bias, uint32_t axesMask) noexcept {
    return mImpl->addNormalizationV2(input, scale, bias, axesMask);
  }

#if NV_TENSORRT_MAJOR < 11
  // Results are floats.
  TRT_DEPRECATED IFillLayer* addFill(const Dims& dimensions, FillOperation op) noexcept {
    return mImpl->addFill(dimensions, op);
  }

  // Float results, int8 ones.
  TRT_DEPRECATED IDequantizeLayer* addDequantize(ITensor& input, ITensor& scale) noexcept {
    return mImpl->addDequantize(input, scale);
  }
  TRT_DEPRECATED IQuantizeLayer* addQuantize(ITensor& input, ITensor& scale) noexcept {
    return mImpl->addQuantize(input, scale);
  }
#endif

 protected:
  apiv::VNetworkDefinition* mImpl;
};
inline INetworkDefinition::~INetworkDefinition() noexcept = default;

}  // namespace nvinfer1

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif  // NVINFER_NETWORK_H
