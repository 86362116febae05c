// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/variant.h>

#include "bind.h"

using namespace nvinfer1;

namespace lathe::python {

static void bind_loop_layers(nb::module_& m) {
  nb::class_<IParametricReLULayer, ILayer>(m, "IParametricReLULayer");
  nb::class_<IResizeLayer, ILayer>(m, "IResizeLayer")
      .def_prop_rw(
          "scales",
          [](const IResizeLayer& self) {
            std::vector<float> scales(static_cast<size_t>(std::max(self.getScales(0, nullptr), 0)));
            self.getScales(static_cast<int32_t>(scales.size()), scales.data());
            return scales;
          },
          [](IResizeLayer& self, const std::vector<float>& scales) {
            self.setScales(scales.data(), static_cast<int32_t>(scales.size()));
          })
      .def_prop_rw("shape", &IResizeLayer::getOutputDimensions, &IResizeLayer::setOutputDimensions, kInside)
      .def_prop_rw("resize_mode", &IResizeLayer::getResizeMode, &IResizeLayer::setResizeMode, kInside)
      .def_prop_rw("coordinate_transformation", &IResizeLayer::getCoordinateTransformation,
                   &IResizeLayer::setCoordinateTransformation, kInside)
      .def_prop_rw("selector_for_single_pixel", &IResizeLayer::getSelectorForSinglePixel,
                   &IResizeLayer::setSelectorForSinglePixel, kInside)
      .def_prop_rw("nearest_rounding", &IResizeLayer::getNearestRounding, &IResizeLayer::setNearestRounding, kInside)
      .def_prop_rw("exclude_outside", &IResizeLayer::getExcludeOutside, &IResizeLayer::setExcludeOutside, kInside)
      .def_prop_rw("cubic_coeff", &IResizeLayer::getCubicCoeff, &IResizeLayer::setCubicCoeff, kInside)
      .def("set_input", &IResizeLayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside);
  nb::class_<IRecurrenceLayer, ILoopBoundaryLayer>(m, "IRecurrenceLayer")
      .def("set_input", &IRecurrenceLayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside);
  nb::class_<ILoopOutputLayer, ILoopBoundaryLayer>(m, "ILoopOutputLayer")
      .def("set_input", &ILoopOutputLayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside)
      .def_prop_rw("axis", &ILoopOutputLayer::getAxis, &ILoopOutputLayer::setAxis, kInside)
      .def_prop_ro("kind", &ILoopOutputLayer::getLoopOutput, kInside);
  nb::class_<ITripLimitLayer, ILoopBoundaryLayer>(m, "ITripLimitLayer")
      .def_prop_ro("kind", &ITripLimitLayer::getTripLimit, kInside);
  nb::class_<IIteratorLayer, ILoopBoundaryLayer>(m, "IIteratorLayer")
      .def_prop_rw("axis", &IIteratorLayer::getAxis, &IIteratorLayer::setAxis, kInside)
      .def_prop_rw("reverse", &IIteratorLayer::getReverse, &IIteratorLayer::setReverse, kInside);
  nb::class_<ILoop>(m, "ILoop")
      .def("add_recurrence", &ILoop::addRecurrence, nb::arg("initial_value"), kInside)
      .def("add_trip_limit", &ILoop::addTripLimit, nb::arg("tensor"), nb::arg("kind"), kInside)
      .def("add_iterator", &ILoop::addIterator, nb::arg("tensor"), nb::arg("axis") = 0, nb::arg("reverse") = false,
           kInside)
      .def("add_loop_output", &ILoop::addLoopOutput, nb::arg("tensor"), nb::arg("kind"), nb::arg("axis") = 0, kInside)
      .def_prop_rw("name", &ILoop::getName, &ILoop::setName, kInside);
  nb::class_<ISelectLayer, ILayer>(m, "ISelectLayer");
  nb::class_<IAssertionLayer, ILayer>(m, "IAssertionLayer")
      .def_prop_rw("message", &IAssertionLayer::getMessage, &IAssertionLayer::setMessage, kInside);
  nb::class_<IGridSampleLayer, ILayer>(m, "IGridSampleLayer")
      .def_prop_rw("interpolation_mode", &IGridSampleLayer::getInterpolationMode,
                   &IGridSampleLayer::setInterpolationMode, kInside)
      .def_prop_rw("align_corners", &IGridSampleLayer::getAlignCorners, &IGridSampleLayer::setAlignCorners, kInside)
      .def_prop_rw("sample_mode", &IGridSampleLayer::getSampleMode, &IGridSampleLayer::setSampleMode, kInside);
  nb::class_<INMSLayer, ILayer>(m, "INMSLayer")
      .def_prop_rw("bounding_box_format", &INMSLayer::getBoundingBoxFormat, &INMSLayer::setBoundingBoxFormat, kInside)
      .def_prop_rw("topk_box_limit", &INMSLayer::getTopKBoxLimit, &INMSLayer::setTopKBoxLimit, kInside)
      .def("set_input", &INMSLayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside)
      .def_prop_rw("indices_type", &INMSLayer::getIndicesType, &INMSLayer::setIndicesType, kInside);
}

static void bind_conditional_layers(nb::module_& m) {
  nb::class_<IFillLayer, ILayer>(m, "IFillLayer")
      .def_prop_rw(
          "alpha",
          [](const IFillLayer& self) {
            return self.isAlphaBetaInt64() ? nb::object(nb::int_(self.getAlphaInt64()))
                                           : nb::object(nb::float_(self.getAlpha()));
          },
          [](IFillLayer& self, const std::variant<int64_t, double>& value) {
            if (const auto* whole = std::get_if<int64_t>(&value))
              self.setAlphaInt64(*whole);
            else
              self.setAlpha(std::get<double>(value));
          })
      .def_prop_rw(
          "beta",
          [](const IFillLayer& self) {
            return self.isAlphaBetaInt64() ? nb::object(nb::int_(self.getBetaInt64()))
                                           : nb::object(nb::float_(self.getBeta()));
          },
          [](IFillLayer& self, const std::variant<int64_t, double>& value) {
            if (const auto* whole = std::get_if<int64_t>(&value))
              self.setBetaInt64(*whole);
            else
              self.setBeta(std::get<double>(value));
          })
      .def_prop_rw("shape", &IFillLayer::getDimensions, &IFillLayer::setDimensions, kInside)
      .def_prop_rw("operation", &IFillLayer::getOperation, &IFillLayer::setOperation, kInside)
      .def_prop_rw("to_type", &IFillLayer::getToType, &IFillLayer::setToType, kInside)
      .def("set_input", &IFillLayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside)
      .def("is_alpha_beta_int64", &IFillLayer::isAlphaBetaInt64, kInside);
  nb::class_<IIfConditionalOutputLayer, IIfConditionalBoundaryLayer>(m, "IIfConditionalOutputLayer");
  nb::class_<IIfConditionalInputLayer, IIfConditionalBoundaryLayer>(m, "IIfConditionalInputLayer");
  nb::class_<IConditionLayer, IIfConditionalBoundaryLayer>(m, "IConditionLayer");
  nb::class_<IIfConditional>(m, "IIfConditional")
      .def("set_condition", &IIfConditional::setCondition, nb::arg("condition"), kInside)
      .def("add_output", &IIfConditional::addOutput, nb::arg("True_subgraph_output"), nb::arg("False_subgraph_output"),
           kInside)
      .def("add_input", &IIfConditional::addInput, nb::arg("input"), kInside)
      .def_prop_rw("name", &IIfConditional::getName, &IIfConditional::setName, kInside);
  nb::class_<IEinsumLayer, ILayer>(m, "IEinsumLayer")
      .def_prop_rw("equation", &IEinsumLayer::getEquation, &IEinsumLayer::setEquation, kInside);
  nb::class_<IOneHotLayer, ILayer>(m, "IOneHotLayer")
      .def_prop_rw("axis", &IOneHotLayer::getAxis, &IOneHotLayer::setAxis, kInside);
  nb::class_<INonZeroLayer, ILayer>(m, "INonZeroLayer")
      .def_prop_rw("indices_type", &INonZeroLayer::getIndicesType, &INonZeroLayer::setIndicesType, kInside);
  nb::class_<IReverseSequenceLayer, ILayer>(m, "IReverseSequenceLayer")
      .def_prop_rw("batch_axis", &IReverseSequenceLayer::getBatchAxis, &IReverseSequenceLayer::setBatchAxis, kInside)
      .def_prop_rw("sequence_axis", &IReverseSequenceLayer::getSequenceAxis, &IReverseSequenceLayer::setSequenceAxis,
                   kInside);
  nb::class_<INormalizationLayer, ILayer>(m, "INormalizationLayer")
      .def_prop_rw("epsilon", &INormalizationLayer::getEpsilon, &INormalizationLayer::setEpsilon, kInside)
      .def_prop_rw("axes", &INormalizationLayer::getAxes, &INormalizationLayer::setAxes, kInside)
      .def_prop_rw("num_groups", &INormalizationLayer::getNbGroups, &INormalizationLayer::setNbGroups, kInside)
      .def_prop_ro("is_v2", &INormalizationLayer::isV2, kInside);
  nb::class_<ISqueezeLayer, ILayer>(m, "ISqueezeLayer")
      .def("set_input", &ISqueezeLayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside);
  nb::class_<IUnsqueezeLayer, ILayer>(m, "IUnsqueezeLayer")
      .def("set_input", &IUnsqueezeLayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside);
  nb::class_<IDistCollectiveLayer, ILayer>(m, "IDistCollectiveLayer");
  nb::class_<ICumulativeLayer, ILayer>(m, "ICumulativeLayer")
      .def_prop_rw("op", &ICumulativeLayer::getOperation, &ICumulativeLayer::setOperation, kInside)
      .def_prop_rw("exclusive", &ICumulativeLayer::getExclusive, &ICumulativeLayer::setExclusive, kInside)
      .def_prop_rw("reverse", &ICumulativeLayer::getReverse, &ICumulativeLayer::setReverse, kInside);
}

static void bind_attention_layers(nb::module_& m) {
  nb::class_<IAttention>(m, "IAttention")
      .def_prop_rw("mask", &IAttention::getMask, &IAttention::setMask, kInside)
      .def_prop_rw("norm_op", &IAttention::getNormalizationOperation, &IAttention::setNormalizationOperation, kInside)
      .def_prop_rw("decomposable", &IAttention::getDecomposable, &IAttention::setDecomposable, kInside)
      .def_prop_rw("causal", &IAttention::getCausal, &IAttention::setCausal, kInside)
      .def_prop_rw("causal_kind", &IAttention::getCausalKind, &IAttention::setCausalKind, kInside)
      .def_prop_rw("name", &IAttention::getName, &IAttention::setName, kInside)
      .def_prop_rw("metadata", &IAttention::getMetadata, &IAttention::setMetadata, kInside)
      .def_prop_rw("normalization_quantize_scale", &IAttention::getNormalizationQuantizeScale,
                   &IAttention::setNormalizationQuantizeScale, kInside)
      .def_prop_rw("normalization_quantize_to_type", &IAttention::getNormalizationQuantizeToType,
                   &IAttention::setNormalizationQuantizeToType, kInside)
      .def_prop_ro("num_inputs", &IAttention::getNbInputs, kInside)
      .def_prop_ro("num_outputs", &IAttention::getNbOutputs, kInside)
      .def("set_input", &IAttention::setInput, nb::arg("index"), nb::arg("tensor"), kInside)
      .def("get_input", &IAttention::getInput, nb::arg("index"), kInside)
      .def("get_output", &IAttention::getOutput, nb::arg("index"), kInside)
      .def_prop_rw("num_ranks", &IAttention::getNbRanks, &IAttention::setNbRanks, kInside)
      .def_prop_rw("query_form", &IAttention::getQueryForm, &IAttention::setQueryForm, kInside)
      .def_prop_rw("key_value_form", &IAttention::getKeyValueForm, &IAttention::setKeyValueForm, kInside)
      .def_prop_rw("query_lengths", &IAttention::getQueryLengths, &IAttention::setQueryLengths, kInside)
      .def_prop_rw("key_value_lengths", &IAttention::getKeyValueLengths, &IAttention::setKeyValueLengths, kInside);
  nb::class_<IAttentionInputLayer, IAttentionBoundaryLayer>(m, "IAttentionInputLayer");
  nb::class_<IAttentionOutputLayer, IAttentionBoundaryLayer>(m, "IAttentionOutputLayer");
  nb::class_<IRotaryEmbeddingLayer, ILayer>(m, "IRotaryEmbeddingLayer")
      .def_prop_rw("interleaved", &IRotaryEmbeddingLayer::getInterleaved, &IRotaryEmbeddingLayer::setInterleaved,
                   kInside)
      .def_prop_rw("rotary_embedding_dim", &IRotaryEmbeddingLayer::getRotaryEmbeddingDim,
                   &IRotaryEmbeddingLayer::setRotaryEmbeddingDim, kInside)
      .def("set_input", &IRotaryEmbeddingLayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside);
  nb::class_<IKVCacheUpdateLayer, ILayer>(m, "IKVCacheUpdateLayer")
      .def_prop_rw("cache_mode", &IKVCacheUpdateLayer::getCacheMode, &IKVCacheUpdateLayer::setCacheMode, kInside)
      .def_prop_rw("update_form", &IKVCacheUpdateLayer::getUpdateForm, &IKVCacheUpdateLayer::setUpdateForm, kInside)
      .def_prop_rw("update_lengths", &IKVCacheUpdateLayer::getUpdateLengths, &IKVCacheUpdateLayer::setUpdateLengths,
                   kInside)
      .def("set_input", &IKVCacheUpdateLayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside);
}

static void bind_expert_layers(nb::module_& m) {
  nb::class_<IMoELayer, ILayer>(m, "IMoELayer")
      .def("set_gated_weights", &IMoELayer::setGatedWeights, nb::arg("fc_gate_weights"), nb::arg("fc_up_weights"),
           nb::arg("fc_down_weights"), nb::arg("activation_type"), kInside)
      .def("set_gated_biases", &IMoELayer::setGatedBiases, nb::arg("fc_gate_biases"), nb::arg("fc_up_biases"),
           nb::arg("fc_down_biases"), kInside)
      .def_prop_rw("activation_type", &IMoELayer::getActivationType, &IMoELayer::setActivationType, kInside)
      .def("set_quantization_static", &IMoELayer::setQuantizationStatic, nb::arg("fc_down_activation_scale"),
           nb::arg("data_type"), kInside)
      .def("set_quantization_dynamic_dbl_q", &IMoELayer::setQuantizationDynamicDblQ,
           nb::arg("fc_down_activation_dbl_q_scale"), nb::arg("data_type"), nb::arg("block_shape"),
           nb::arg("dyn_q_output_scale_type"), kInside)
      .def_prop_rw("quantization_to_type", &IMoELayer::getQuantizationToType, &IMoELayer::setQuantizationToType,
                   kInside)
      .def_prop_rw("quantization_block_shape", &IMoELayer::getQuantizationBlockShape,
                   &IMoELayer::setQuantizationBlockShape, kInside)
      .def_prop_rw("dyn_q_output_scale_type", &IMoELayer::getDynQOutputScaleType, &IMoELayer::setDynQOutputScaleType,
                   kInside)
      .def("set_swiglu_params", &IMoELayer::setSwigluParams, nb::arg("limit"), nb::arg("alpha"), nb::arg("beta"),
           kInside)
      .def_prop_rw("swiglu_param_limit", &IMoELayer::getSwigluParamLimit, &IMoELayer::setSwigluParamLimit, kInside)
      .def_prop_rw("swiglu_param_alpha", &IMoELayer::getSwigluParamAlpha, &IMoELayer::setSwigluParamAlpha, kInside)
      .def_prop_rw("swiglu_param_beta", &IMoELayer::getSwigluParamBeta, &IMoELayer::setSwigluParamBeta, kInside)
      .def("set_input", &IMoELayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside);
}

void bind_further_layers(nb::module_& m) {
  nb::class_<IPluginV3Layer, ILayer>(m, "IPluginV3Layer").def_prop_ro("plugin", &plugin_of_layer);
  bind_loop_layers(m);
  bind_conditional_layers(m);
  bind_attention_layers(m);
  bind_expert_layers(m);
}

}  // namespace lathe::python
