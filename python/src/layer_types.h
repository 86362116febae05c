// SPDX-License-Identifier: Apache-2.0
// Which class a layer has in Python, by its type. To be seen wherever layers are returned.
#ifndef LATHE_PYTHON_LAYER_TYPES_H
#define LATHE_PYTHON_LAYER_TYPES_H

#include <utility>

#include "bind.h"

namespace lathe::python {

inline const std::pair<nvinfer1::LayerType, const std::type_info*> kLayerClasses[] = {
    {nvinfer1::LayerType::kCONVOLUTION, &typeid(nvinfer1::IConvolutionLayer)},
    {nvinfer1::LayerType::kACTIVATION, &typeid(nvinfer1::IActivationLayer)},
    {nvinfer1::LayerType::kPOOLING, &typeid(nvinfer1::IPoolingLayer)},
    {nvinfer1::LayerType::kLRN, &typeid(nvinfer1::ILRNLayer)},
    {nvinfer1::LayerType::kSCALE, &typeid(nvinfer1::IScaleLayer)},
    {nvinfer1::LayerType::kSOFTMAX, &typeid(nvinfer1::ISoftMaxLayer)},
    {nvinfer1::LayerType::kDECONVOLUTION, &typeid(nvinfer1::IDeconvolutionLayer)},
    {nvinfer1::LayerType::kCONCATENATION, &typeid(nvinfer1::IConcatenationLayer)},
    {nvinfer1::LayerType::kELEMENTWISE, &typeid(nvinfer1::IElementWiseLayer)},
    {nvinfer1::LayerType::kUNARY, &typeid(nvinfer1::IUnaryLayer)},
    {nvinfer1::LayerType::kPADDING, &typeid(nvinfer1::IPaddingLayer)},
    {nvinfer1::LayerType::kSHUFFLE, &typeid(nvinfer1::IShuffleLayer)},
    {nvinfer1::LayerType::kREDUCE, &typeid(nvinfer1::IReduceLayer)},
    {nvinfer1::LayerType::kTOPK, &typeid(nvinfer1::ITopKLayer)},
    {nvinfer1::LayerType::kGATHER, &typeid(nvinfer1::IGatherLayer)},
    {nvinfer1::LayerType::kMATRIX_MULTIPLY, &typeid(nvinfer1::IMatrixMultiplyLayer)},
    {nvinfer1::LayerType::kRAGGED_SOFTMAX, &typeid(nvinfer1::IRaggedSoftMaxLayer)},
    {nvinfer1::LayerType::kCONSTANT, &typeid(nvinfer1::IConstantLayer)},
    {nvinfer1::LayerType::kIDENTITY, &typeid(nvinfer1::IIdentityLayer)},
    {nvinfer1::LayerType::kCAST, &typeid(nvinfer1::ICastLayer)},
    {nvinfer1::LayerType::kSLICE, &typeid(nvinfer1::ISliceLayer)},
    {nvinfer1::LayerType::kSHAPE, &typeid(nvinfer1::IShapeLayer)},
    {nvinfer1::LayerType::kPARAMETRIC_RELU, &typeid(nvinfer1::IParametricReLULayer)},
    {nvinfer1::LayerType::kRESIZE, &typeid(nvinfer1::IResizeLayer)},
    {nvinfer1::LayerType::kTRIP_LIMIT, &typeid(nvinfer1::ITripLimitLayer)},
    {nvinfer1::LayerType::kRECURRENCE, &typeid(nvinfer1::IRecurrenceLayer)},
    {nvinfer1::LayerType::kITERATOR, &typeid(nvinfer1::IIteratorLayer)},
    {nvinfer1::LayerType::kLOOP_OUTPUT, &typeid(nvinfer1::ILoopOutputLayer)},
    {nvinfer1::LayerType::kSELECT, &typeid(nvinfer1::ISelectLayer)},
    {nvinfer1::LayerType::kFILL, &typeid(nvinfer1::IFillLayer)},
    {nvinfer1::LayerType::kQUANTIZE, &typeid(nvinfer1::IQuantizeLayer)},
    {nvinfer1::LayerType::kDEQUANTIZE, &typeid(nvinfer1::IDequantizeLayer)},
    {nvinfer1::LayerType::kCONDITIONAL_INPUT, &typeid(nvinfer1::IIfConditionalInputLayer)},
    {nvinfer1::LayerType::kCONDITIONAL_OUTPUT, &typeid(nvinfer1::IIfConditionalOutputLayer)},
    {nvinfer1::LayerType::kSCATTER, &typeid(nvinfer1::IScatterLayer)},
    {nvinfer1::LayerType::kEINSUM, &typeid(nvinfer1::IEinsumLayer)},
    {nvinfer1::LayerType::kASSERTION, &typeid(nvinfer1::IAssertionLayer)},
    {nvinfer1::LayerType::kONE_HOT, &typeid(nvinfer1::IOneHotLayer)},
    {nvinfer1::LayerType::kNON_ZERO, &typeid(nvinfer1::INonZeroLayer)},
    {nvinfer1::LayerType::kGRID_SAMPLE, &typeid(nvinfer1::IGridSampleLayer)},
    {nvinfer1::LayerType::kNMS, &typeid(nvinfer1::INMSLayer)},
    {nvinfer1::LayerType::kREVERSE_SEQUENCE, &typeid(nvinfer1::IReverseSequenceLayer)},
    {nvinfer1::LayerType::kNORMALIZATION, &typeid(nvinfer1::INormalizationLayer)},
    {nvinfer1::LayerType::kSQUEEZE, &typeid(nvinfer1::ISqueezeLayer)},
    {nvinfer1::LayerType::kUNSQUEEZE, &typeid(nvinfer1::IUnsqueezeLayer)},
    {nvinfer1::LayerType::kCUMULATIVE, &typeid(nvinfer1::ICumulativeLayer)},
    {nvinfer1::LayerType::kDYNAMIC_QUANTIZE, &typeid(nvinfer1::IDynamicQuantizeLayer)},
    {nvinfer1::LayerType::kROTARY_EMBEDDING, &typeid(nvinfer1::IRotaryEmbeddingLayer)},
    {nvinfer1::LayerType::kKVCACHE_UPDATE, &typeid(nvinfer1::IKVCacheUpdateLayer)},
    {nvinfer1::LayerType::kMOE, &typeid(nvinfer1::IMoELayer)},
    {nvinfer1::LayerType::kDIST_COLLECTIVE, &typeid(nvinfer1::IDistCollectiveLayer)},
    {nvinfer1::LayerType::kATTENTION_INPUT, &typeid(nvinfer1::IAttentionInputLayer)},
    {nvinfer1::LayerType::kATTENTION_OUTPUT, &typeid(nvinfer1::IAttentionOutputLayer)},
};

}  // namespace lathe::python

namespace nanobind::detail {

template <>
struct type_hook<nvinfer1::ILayer> {
  static const std::type_info* get(const nvinfer1::ILayer* layer) {
    if (layer == nullptr) return &typeid(nvinfer1::ILayer);
    const nvinfer1::LayerType type = layer->getType();
    for (const auto& [each, bound] : lathe::python::kLayerClasses)
      if (each == type) return bound;
    return &typeid(nvinfer1::ILayer);
  }
};

}  // namespace nanobind::detail

#endif  // LATHE_PYTHON_LAYER_TYPES_H
