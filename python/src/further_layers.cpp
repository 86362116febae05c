// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/variant.h>

#include "bind.h"

using namespace nvinfer1;

namespace lathe::python {

static void bind_loop_layers(nb::module_& m) {
  nb::class_<IParametricReLULayer, ILayer>(
      m, "IParametricReLULayer",
      "x where it is at least 0, else x * slope. Input 1 is the slope, repeated to the shape of x.");
  nb::class_<IResizeLayer, ILayer>(
      m, "IResizeLayer",
      "Resamples a tensor to a shape or by scales, whichever is set last. Input 1, where it is set, gives the shape.")
      .def_prop_rw(
          "scales",
          [](const IResizeLayer& self) {
            std::vector<float> scales(static_cast<size_t>(std::max(self.getScales(0, nullptr), 0)));
            self.getScales(static_cast<int32_t>(scales.size()), scales.data());
            return scales;
          },
          [](IResizeLayer& self, const std::vector<float>& scales) {
            self.setScales(scales.data(), static_cast<int32_t>(scales.size()));
          },
          "A factor for each dimension; empty where the shape is given.")
      .def_prop_rw("shape", &IResizeLayer::getOutputDimensions, &IResizeLayer::setOutputDimensions, kInside,
                   "The shape of the output. Of unknown rank where scales or input 1 give it.")
      .def_prop_rw("resize_mode", &IResizeLayer::getResizeMode, &IResizeLayer::setResizeMode, kInside,
                   "How values between elements are found: an InterpolationMode.")
      .def_prop_rw("coordinate_transformation", &IResizeLayer::getCoordinateTransformation,
                   &IResizeLayer::setCoordinateTransformation, kInside,
                   "How positions of the output are positions of the input.")
      .def_prop_rw("selector_for_single_pixel", &IResizeLayer::getSelectorForSinglePixel,
                   &IResizeLayer::setSelectorForSinglePixel, kInside, "Which element an output of size 1 takes.")
      .def_prop_rw("nearest_rounding", &IResizeLayer::getNearestRounding, &IResizeLayer::setNearestRounding, kInside,
                   "How positions are rounded where the mode is NEAREST.")
      .def_prop_rw("exclude_outside", &IResizeLayer::getExcludeOutside, &IResizeLayer::setExcludeOutside, kInside,
                   "Whether elements beyond the tensor get weight 0 rather than that of the edge.")
      .def_prop_rw("cubic_coeff", &IResizeLayer::getCubicCoeff, &IResizeLayer::setCubicCoeff, kInside,
                   "The coefficient of cubic interpolation; -0.75 unless set.")
      .def("set_input", &IResizeLayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside,
           "Replaces input 0, or gives the shape as input 1, a shape tensor.");
  nb::class_<IRecurrenceLayer, ILoopBoundaryLayer>(
      m, "IRecurrenceLayer", "A value carried from one iteration to the next: input 0 at first, input 1 afterwards.")
      .def("set_input", &IRecurrenceLayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside,
           "Replaces the first value, or gives as input 1 the value for the next iteration, which lies in the loop.");
  nb::class_<ILoopOutputLayer, ILoopBoundaryLayer>(m, "ILoopOutputLayer", "A value that leaves a loop.")
      .def("set_input", &ILoopOutputLayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside,
           "Replaces the value, or gives as input 1 the number of iterations that are joined, for CONCATENATE and "
           "REVERSE.")
      .def_prop_rw("axis", &ILoopOutputLayer::getAxis, &ILoopOutputLayer::setAxis, kInside,
                   "The dimension along which values of iterations are joined.")
      .def_prop_ro("kind", &ILoopOutputLayer::getLoopOutput, kInside, "Which values leave: a LoopOutput.");
  nb::class_<ITripLimitLayer, ILoopBoundaryLayer>(m, "ITripLimitLayer", "Says how often a loop runs.")
      .def_prop_ro("kind", &ITripLimitLayer::getTripLimit, kInside, "Whether it is a count or a condition.");
  nb::class_<IIteratorLayer, ILoopBoundaryLayer>(m, "IIteratorLayer",
                                                 "A slice of a tensor in each iteration of a loop.")
      .def_prop_rw("axis", &IIteratorLayer::getAxis, &IIteratorLayer::setAxis, kInside,
                   "The dimension that is walked along.")
      .def_prop_rw("reverse", &IIteratorLayer::getReverse, &IIteratorLayer::setReverse, kInside,
                   "Whether it is walked from the last slice to the first.");
  nb::class_<ILoop>(m, "ILoop", "A loop in a network, made of its boundary layers. The network owns it.")
      .def("add_recurrence", &ILoop::addRecurrence, nb::arg("initial_value"), kInside,
           "A value carried from iteration to iteration; set_input(1, ...) of the layer says what the next one gets.")
      .def("add_trip_limit", &ILoop::addTripLimit, nb::arg("tensor"), nb::arg("kind"), kInside,
           "Says how often the loop runs; at most one of each kind. COUNT takes an integer, WHILE a BOOL, both without "
           "dimensions.")
      .def("add_iterator", &ILoop::addIterator, nb::arg("tensor"), nb::arg("axis") = 0, nb::arg("reverse") = false,
           kInside, "A slice of the tensor along axis in each iteration, from the last one on where reverse is set.")
      .def("add_loop_output", &ILoop::addLoopOutput, nb::arg("tensor"), nb::arg("kind"), nb::arg("axis") = 0, kInside,
           "A value that leaves the loop: the last one, or those of all iterations joined along axis.")
      .def_prop_rw("name", &ILoop::getName, &ILoop::setName, kInside, "By which reports call it. Copied.");
}

static void bind_choice_layers(nb::module_& m) {
  nb::class_<ISelectLayer, ILayer>(
      m, "ISelectLayer",
      "Elements of input 1 where input 0 is True, and of input 2 elsewhere; sizes of 1 are repeated.");
  nb::class_<IAssertionLayer, ILayer>(
      m, "IAssertionLayer",
      "Ends a run or a build with an error where its condition does not hold. A build checks what it can decide.")
      .def_prop_rw("message", &IAssertionLayer::getMessage, &IAssertionLayer::setMessage, kInside,
                   "What the error says. Copied.");
  nb::class_<IGridSampleLayer, ILayer>(m, "IGridSampleLayer",
                                       "Values of input 0, images, at the positions in input 1, which lie in [-1, 1].")
      .def_prop_rw("interpolation_mode", &IGridSampleLayer::getInterpolationMode,
                   &IGridSampleLayer::setInterpolationMode, kInside, "How values between elements are found.")
      .def_prop_rw("align_corners", &IGridSampleLayer::getAlignCorners, &IGridSampleLayer::setAlignCorners, kInside,
                   "Whether -1 and 1 are the centres of the corner elements rather than their outer edges.")
      .def_prop_rw("sample_mode", &IGridSampleLayer::getSampleMode, &IGridSampleLayer::setSampleMode, kInside,
                   "What values beyond the image are.");
  nb::class_<INMSLayer, ILayer>(m, "INMSLayer",
                                "Non-maximum suppression of boxes: inputs boxes, scores, most boxes of a class. "
                                "Outputs [n, 3] of batch, class and box, and n.")
      .def_prop_rw("bounding_box_format", &INMSLayer::getBoundingBoxFormat, &INMSLayer::setBoundingBoxFormat, kInside,
                   "What the four numbers of a box are; CORNER_PAIRS unless set.")
      .def_prop_rw("topk_box_limit", &INMSLayer::getTopKBoxLimit, &INMSLayer::setTopKBoxLimit, kInside,
                   "Boxes of a class that are looked at, the best ones first; 5000 unless set.")
      .def("set_input", &INMSLayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside,
           "Replaces an input: 0 boxes, 1 scores, 2 most boxes, 3 the threshold of overlap, 4 that of scores.")
      .def_prop_rw("indices_type", &INMSLayer::getIndicesType, &INMSLayer::setIndicesType, kInside,
                   "INT32, which it is unless set, or INT64.");
}

static void bind_conditional_layers(nb::module_& m) {
  nb::class_<IFillLayer, ILayer>(m, "IFillLayer", "A tensor of values that follow a rule: a ramp, or random numbers.")
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
          },
          "The start of a ramp, the least random number or the mean. Without meaning where input 1 gives it.")
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
          },
          "The step of a ramp, the greatest random number or the deviation. Without meaning where input 2 gives it.")
      .def_prop_rw("shape", &IFillLayer::getDimensions, &IFillLayer::setDimensions, kInside,
                   "The shape. Of unknown rank where input 0 gives it.")
      .def_prop_rw("operation", &IFillLayer::getOperation, &IFillLayer::setOperation, kInside,
                   "The rule: a FillOperation.")
      .def_prop_rw("to_type", &IFillLayer::getToType, &IFillLayer::setToType, kInside, "The type of the output.")
      .def("set_input", &IFillLayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside,
           "Gives as a tensor 0 the shape, 1 alpha, 2 beta.")
      .def("is_alpha_beta_int64", &IFillLayer::isAlphaBetaInt64, kInside, "Whether alpha and beta are integers.");
  nb::class_<IIfConditionalOutputLayer, IIfConditionalBoundaryLayer>(m, "IIfConditionalOutputLayer",
                                                                     "One of its two inputs, as the condition says.");
  nb::class_<IIfConditionalInputLayer, IIfConditionalBoundaryLayer>(m, "IIfConditionalInputLayer",
                                                                    "Takes a tensor from outside into a conditional.");
  nb::class_<IConditionLayer, IIfConditionalBoundaryLayer>(m, "IConditionLayer",
                                                           "Holds the condition of a conditional.");
  nb::class_<IIfConditional>(m, "IIfConditional",
                             "A choice in a network between two computations, of which one runs. The network owns it.")
      .def("set_condition", &IIfConditional::setCondition, nb::arg("condition"), kInside,
           "The condition: a BOOL without dimensions.")
      .def("add_output", &IIfConditional::addOutput, nb::arg("True_subgraph_output"), nb::arg("False_subgraph_output"),
           kInside, "A result: one of two tensors, of one type and rank, as the condition says.")
      .def("add_input", &IIfConditional::addInput, nb::arg("input"), kInside,
           "Takes a tensor from outside into the conditional.")
      .def_prop_rw("name", &IIfConditional::getName, &IIfConditional::setName, kInside,
                   "By which reports call it. Copied.");
}

static void bind_tensor_layers(nb::module_& m) {
  nb::class_<IEinsumLayer, ILayer>(m, "IEinsumLayer", "A sum of products in Einstein's notation.")
      .def_prop_rw(
          "equation", &IEinsumLayer::getEquation, &IEinsumLayer::setEquation, kInside,
          "Lower-case letters, as in 'ij,jk->ik'; the part behind the arrow and an ellipsis may be there. Copied.");
  nb::class_<IOneHotLayer, ILayer>(
      m, "IOneHotLayer",
      "Vectors of one value for each index: inputs are indices, the values [off, on], and the depth.")
      .def_prop_rw("axis", &IOneHotLayer::getAxis, &IOneHotLayer::setAxis, kInside,
                   "Where the new dimension is inserted.");
  nb::class_<INonZeroLayer, ILayer>(
      m, "INonZeroLayer", "The coordinates of elements that are not zero: [rank, n], in the order of the elements.")
      .def_prop_rw("indices_type", &INonZeroLayer::getIndicesType, &INonZeroLayer::setIndicesType, kInside,
                   "INT32, which it is unless set, or INT64.");
  nb::class_<IReverseSequenceLayer, ILayer>(m, "IReverseSequenceLayer",
                                            "Reverses the first elements of each sequence; input 1 says how many.")
      .def_prop_rw("batch_axis", &IReverseSequenceLayer::getBatchAxis, &IReverseSequenceLayer::setBatchAxis, kInside,
                   "The dimension of the batch; 1 unless set.")
      .def_prop_rw("sequence_axis", &IReverseSequenceLayer::getSequenceAxis, &IReverseSequenceLayer::setSequenceAxis,
                   kInside, "The dimension that is reversed; 0 unless set.");
  nb::class_<INormalizationLayer, ILayer>(
      m, "INormalizationLayer",
      "(x - mean) / sqrt(variance + epsilon) * scale + bias. Inputs 1 and 2 are scale and bias.")
      .def_prop_rw("epsilon", &INormalizationLayer::getEpsilon, &INormalizationLayer::setEpsilon, kInside,
                   "What is added to the variance; 1e-5 unless set.")
      .def_prop_rw("axes", &INormalizationLayer::getAxes, &INormalizationLayer::setAxes, kInside,
                   "The dimensions that mean and variance are of: bit i stands for dimension i.")
      .def_prop_rw("num_groups", &INormalizationLayer::getNbGroups, &INormalizationLayer::setNbGroups, kInside,
                   "Groups of channels that are normalized apart; 1 unless set.")
      .def_prop_ro("is_v2", &INormalizationLayer::isV2, kInside,
                   "Whether scale and bias are as add_normalization_v2() takes them.");
  nb::class_<ISqueezeLayer, ILayer>(m, "ISqueezeLayer", "Removes dimensions of size 1.")
      .def("set_input", &ISqueezeLayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside,
           "Replaces input 0, or the axes, input 1, which are constant.");
  nb::class_<IUnsqueezeLayer, ILayer>(m, "IUnsqueezeLayer", "Inserts dimensions of size 1.")
      .def("set_input", &IUnsqueezeLayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside,
           "Replaces input 0, or the axes, input 1, which are constant.");
  nb::class_<IDistCollectiveLayer, ILayer>(m, "IDistCollectiveLayer",
                                           "Exchanges data with other processes by the context's communicator.");
  nb::class_<ICumulativeLayer, ILayer>(m, "ICumulativeLayer",
                                       "Running sums along the axis in input 1, a constant integer without dimensions.")
      .def_prop_rw("op", &ICumulativeLayer::getOperation, &ICumulativeLayer::setOperation, kInside,
                   "Which function accumulates: a CumulativeOperation.")
      .def_prop_rw("exclusive", &ICumulativeLayer::getExclusive, &ICumulativeLayer::setExclusive, kInside,
                   "Whether element i is left out of result i.")
      .def_prop_rw("reverse", &ICumulativeLayer::getReverse, &ICumulativeLayer::setReverse, kInside,
                   "Whether it runs from the last element to the first.");
}

static void bind_attention_layers(nb::module_& m) {
  nb::class_<IAttention>(
      m, "IAttention",
      "normalize(query * key^T + mask) * value for each head, as one unit. The query is scaled already. Tensors are "
      "[batch, heads, sequence, depth], or packed [tokens, heads, depth] with lengths.")
      .def_prop_rw("mask", &IAttention::getMask, &IAttention::setMask, kInside,
                   "BOOL, where True keeps a score, or numbers that are added to the scores; repeated to [batch, "
                   "heads, queries, keys].")
      .def_prop_rw("norm_op", &IAttention::getNormalizationOperation, &IAttention::setNormalizationOperation, kInside,
                   "How scores are normalized.")
      .def_prop_rw("decomposable", &IAttention::getDecomposable, &IAttention::setDecomposable, kInside,
                   "Whether several kernels may compute it where no fused one does; False unless set.")
      .def_prop_rw("causal", &IAttention::getCausal, &IAttention::setCausal, kInside,
                   "Whether scores above the diagonal are masked. causal_kind replaces it.")
      .def_prop_rw("causal_kind", &IAttention::getCausalKind, &IAttention::setCausalKind, kInside,
                   "Which scores above the diagonal are masked. Not together with mask.")
      .def_prop_rw("name", &IAttention::getName, &IAttention::setName, kInside, "By which reports call it. Copied.")
      .def_prop_rw("metadata", &IAttention::getMetadata, &IAttention::setMetadata, kInside,
                   "A text of the program's own, which the engine inspector shows. Copied.")
      .def_prop_rw("normalization_quantize_scale", &IAttention::getNormalizationQuantizeScale,
                   &IAttention::setNormalizationQuantizeScale, kInside,
                   "A scale by which normalized scores are quantized; None for none.")
      .def_prop_rw("normalization_quantize_to_type", &IAttention::getNormalizationQuantizeToType,
                   &IAttention::setNormalizationQuantizeToType, kInside,
                   "The type that normalized scores are quantized to.")
      .def_prop_ro("num_inputs", &IAttention::getNbInputs, kInside, "How many inputs it has.")
      .def_prop_ro("num_outputs", &IAttention::getNbOutputs, kInside, "How many outputs it has.")
      .def("set_input", &IAttention::setInput, nb::arg("index"), nb::arg("tensor"), kInside,
           "Replaces an input: 0 query, 1 key, 2 value, then those that properties have added. False where there is no "
           "such input.")
      .def("get_input", &IAttention::getInput, nb::arg("index"), kInside, "Input index; None where there is none.")
      .def("get_output", &IAttention::getOutput, nb::arg("index"), kInside, "Output index; None where there is none.")
      .def_prop_rw("num_ranks", &IAttention::getNbRanks, &IAttention::setNbRanks, kInside,
                   "How many devices take part; 1.")
      .def_prop_rw("query_form", &IAttention::getQueryForm, &IAttention::setQueryForm, kInside,
                   "How query and output lie: padded, which they are unless set, or packed.")
      .def_prop_rw("key_value_form", &IAttention::getKeyValueForm, &IAttention::setKeyValueForm, kInside,
                   "How key and value lie: padded, which they are unless set, or packed.")
      .def_prop_rw("query_lengths", &IAttention::getQueryLengths, &IAttention::setQueryLengths, kInside,
                   "Where each sequence of packed queries starts: INT32 of one dimension. None: they are not packed.")
      .def_prop_rw("key_value_lengths", &IAttention::getKeyValueLengths, &IAttention::setKeyValueLengths, kInside,
                   "Where each sequence of packed keys starts: INT32 of one dimension. None: they are not packed.");
  nb::class_<IAttentionInputLayer, IAttentionBoundaryLayer>(m, "IAttentionInputLayer",
                                                            "Query, key and value enter an attention here.");
  nb::class_<IAttentionOutputLayer, IAttentionBoundaryLayer>(m, "IAttentionOutputLayer", "The result of an attention.");
  nb::class_<IRotaryEmbeddingLayer, ILayer>(
      m, "IRotaryEmbeddingLayer",
      "Rotates pairs of elements by their positions. Inputs are x, cosines and sines; input 3, if any, positions.")
      .def_prop_rw("interleaved", &IRotaryEmbeddingLayer::getInterleaved, &IRotaryEmbeddingLayer::setInterleaved,
                   kInside, "Whether the elements of a pair are neighbours rather than of the two halves of a head.")
      .def_prop_rw("rotary_embedding_dim", &IRotaryEmbeddingLayer::getRotaryEmbeddingDim,
                   &IRotaryEmbeddingLayer::setRotaryEmbeddingDim, kInside,
                   "Leading elements of a head that are rotated; 0 for all.")
      .def("set_input", &IRotaryEmbeddingLayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside,
           "Replaces an input: 0 x, 1 cosines, 2 sines, 3 positions.");
  nb::class_<IKVCacheUpdateLayer, ILayer>(
      m, "IKVCacheUpdateLayer",
      "Writes rows into a cache: row r of sequence b goes to write_indices[b] + r. Cache and output may share their "
      "memory: ICudaEngine.get_aliased_input_tensor().")
      .def_prop_rw("cache_mode", &IKVCacheUpdateLayer::getCacheMode, &IKVCacheUpdateLayer::setCacheMode, kInside,
                   "How rows follow one another in the cache: a KVCacheMode.")
      .def_prop_rw("update_form", &IKVCacheUpdateLayer::getUpdateForm, &IKVCacheUpdateLayer::setUpdateForm, kInside,
                   "How updates lie: padded, or packed.")
      .def_prop_rw("update_lengths", &IKVCacheUpdateLayer::getUpdateLengths, &IKVCacheUpdateLayer::setUpdateLengths,
                   kInside, "Where each sequence of packed updates starts. None: they are not packed.")
      .def("set_input", &IKVCacheUpdateLayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside,
           "Replaces an input: 0 cache, 1 update, 2 indices.");
}

static void bind_expert_layers(nb::module_& m) {
  nb::class_<IMoELayer, ILayer>(
      m, "IMoELayer",
      "A mixture of experts: tokens go through the experts chosen for them, and results are added by their scores.")
      .def("set_gated_weights", &IMoELayer::setGatedWeights, nb::arg("fc_gate_weights"), nb::arg("fc_up_weights"),
           nb::arg("fc_down_weights"), nb::arg("activation_type"), kInside,
           "Weights of the gate, up and down projections, [experts, ...] each, and the activation between them.")
      .def("set_gated_biases", &IMoELayer::setGatedBiases, nb::arg("fc_gate_biases"), nb::arg("fc_up_biases"),
           nb::arg("fc_down_biases"), kInside, "Biases of the gate, up and down projections.")
      .def_prop_rw("activation_type", &IMoELayer::getActivationType, &IMoELayer::setActivationType, kInside,
                   "The activation of the gate.")
      .def("set_quantization_static", &IMoELayer::setQuantizationStatic, nb::arg("fc_down_activation_scale"),
           nb::arg("data_type"), kInside, "Quantizes the input of the down projection, by a scale that is given.")
      .def("set_quantization_dynamic_dbl_q", &IMoELayer::setQuantizationDynamicDblQ,
           nb::arg("fc_down_activation_dbl_q_scale"), nb::arg("data_type"), nb::arg("block_shape"),
           nb::arg("dyn_q_output_scale_type"), kInside,
           "Quantizes the input of the down projection, by scales that are found at run time for blocks.")
      .def_prop_rw("quantization_to_type", &IMoELayer::getQuantizationToType, &IMoELayer::setQuantizationToType,
                   kInside, "The type that the input of the down projection is quantized to.")
      .def_prop_rw("quantization_block_shape", &IMoELayer::getQuantizationBlockShape,
                   &IMoELayer::setQuantizationBlockShape, kInside, "Elements that share a scale found at run time.")
      .def_prop_rw("dyn_q_output_scale_type", &IMoELayer::getDynQOutputScaleType, &IMoELayer::setDynQOutputScaleType,
                   kInside, "The type of scales found at run time.")
      .def("set_swiglu_params", &IMoELayer::setSwigluParams, nb::arg("limit"), nb::arg("alpha"), nb::arg("beta"),
           kInside, "Of min(gate, limit) * sigmoid(alpha * gate) * (clamp(up, limit) + beta).")
      .def_prop_rw("swiglu_param_limit", &IMoELayer::getSwigluParamLimit, &IMoELayer::setSwigluParamLimit, kInside,
                   "The limit of gate and up.")
      .def_prop_rw("swiglu_param_alpha", &IMoELayer::getSwigluParamAlpha, &IMoELayer::setSwigluParamAlpha, kInside,
                   "The factor of the gate.")
      .def_prop_rw("swiglu_param_beta", &IMoELayer::getSwigluParamBeta, &IMoELayer::setSwigluParamBeta, kInside,
                   "What is added to up.")
      .def("set_input", &IMoELayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside,
           "Replaces an input: 0 hidden states, 1 chosen experts, 2 their scores.");
}

void bind_further_layers(nb::module_& m) {
  nb::class_<IPluginV3Layer, ILayer>(m, "IPluginV3Layer", "A plugin's layer.")
      .def_prop_ro("plugin", &plugin_of_layer, "The plugin: the object of Python where it is written in Python.");
  bind_loop_layers(m);
  bind_choice_layers(m);
  bind_conditional_layers(m);
  bind_tensor_layers(m);
  bind_attention_layers(m);
  bind_expert_layers(m);
}

}  // namespace lathe::python
