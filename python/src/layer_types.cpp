// SPDX-License-Identifier: Apache-2.0
#include "layer_types.h"

#include <utility>

using namespace nvinfer1;

namespace lathe::python {
namespace {

template <typename Layer>
nb::object as(ILayer* layer, nb::handle network) {
  return nb::cast(static_cast<Layer*>(layer), kInside, network);
}

constexpr std::pair<LayerType, nb::object (*)(ILayer*, nb::handle)> kClasses[] = {
    {LayerType::kCONVOLUTION, &as<IConvolutionLayer>},
    {LayerType::kACTIVATION, &as<NetworkActivationLayer>},
    {LayerType::kPOOLING, &as<NetworkPoolingLayer>},
    {LayerType::kLRN, &as<ILRNLayer>},
    {LayerType::kSCALE, &as<IScaleLayer>},
    {LayerType::kSOFTMAX, &as<ISoftMaxLayer>},
    {LayerType::kDECONVOLUTION, &as<IDeconvolutionLayer>},
    {LayerType::kCONCATENATION, &as<IConcatenationLayer>},
    {LayerType::kELEMENTWISE, &as<IElementWiseLayer>},
    {LayerType::kUNARY, &as<IUnaryLayer>},
    {LayerType::kPADDING, &as<IPaddingLayer>},
    {LayerType::kSHUFFLE, &as<IShuffleLayer>},
    {LayerType::kREDUCE, &as<IReduceLayer>},
    {LayerType::kTOPK, &as<ITopKLayer>},
    {LayerType::kGATHER, &as<IGatherLayer>},
    {LayerType::kMATRIX_MULTIPLY, &as<IMatrixMultiplyLayer>},
    {LayerType::kRAGGED_SOFTMAX, &as<IRaggedSoftMaxLayer>},
    {LayerType::kCONSTANT, &as<IConstantLayer>},
    {LayerType::kIDENTITY, &as<IIdentityLayer>},
    {LayerType::kCAST, &as<ICastLayer>},
    {LayerType::kSLICE, &as<ISliceLayer>},
    {LayerType::kSHAPE, &as<IShapeLayer>},
    {LayerType::kPARAMETRIC_RELU, &as<IParametricReLULayer>},
    {LayerType::kRESIZE, &as<IResizeLayer>},
    {LayerType::kTRIP_LIMIT, &as<ITripLimitLayer>},
    {LayerType::kRECURRENCE, &as<IRecurrenceLayer>},
    {LayerType::kITERATOR, &as<IIteratorLayer>},
    {LayerType::kLOOP_OUTPUT, &as<ILoopOutputLayer>},
    {LayerType::kSELECT, &as<ISelectLayer>},
    {LayerType::kFILL, &as<IFillLayer>},
    {LayerType::kQUANTIZE, &as<IQuantizeLayer>},
    {LayerType::kDEQUANTIZE, &as<IDequantizeLayer>},
    {LayerType::kCONDITIONAL_INPUT, &as<IIfConditionalInputLayer>},
    {LayerType::kCONDITIONAL_OUTPUT, &as<IIfConditionalOutputLayer>},
    {LayerType::kSCATTER, &as<IScatterLayer>},
    {LayerType::kEINSUM, &as<IEinsumLayer>},
    {LayerType::kASSERTION, &as<IAssertionLayer>},
    {LayerType::kONE_HOT, &as<IOneHotLayer>},
    {LayerType::kNON_ZERO, &as<INonZeroLayer>},
    {LayerType::kGRID_SAMPLE, &as<IGridSampleLayer>},
    {LayerType::kNMS, &as<INMSLayer>},
    {LayerType::kREVERSE_SEQUENCE, &as<IReverseSequenceLayer>},
    {LayerType::kNORMALIZATION, &as<INormalizationLayer>},
    {LayerType::kSQUEEZE, &as<ISqueezeLayer>},
    {LayerType::kUNSQUEEZE, &as<IUnsqueezeLayer>},
    {LayerType::kCUMULATIVE, &as<ICumulativeLayer>},
    {LayerType::kDYNAMIC_QUANTIZE, &as<IDynamicQuantizeLayer>},
    {LayerType::kROTARY_EMBEDDING, &as<IRotaryEmbeddingLayer>},
    {LayerType::kKVCACHE_UPDATE, &as<IKVCacheUpdateLayer>},
    {LayerType::kMOE, &as<IMoELayer>},
    {LayerType::kDIST_COLLECTIVE, &as<IDistCollectiveLayer>},
    {LayerType::kATTENTION_INPUT, &as<IAttentionInputLayer>},
    {LayerType::kATTENTION_OUTPUT, &as<IAttentionOutputLayer>},
    {LayerType::kPLUGIN_V3, &as<IPluginV3Layer>},
};

}  // namespace

nb::object layer_of(nb::handle network, ILayer* layer) {
  if (layer == nullptr) return nb::none();
  for (const auto& [type, cast] : kClasses)
    if (type == layer->getType()) return cast(layer, network);
  return as<ILayer>(layer, network);
}

}  // namespace lathe::python
