// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include "layer_types.h"

using namespace nvinfer1;

namespace lathe::python {

// No weights where Python gave None.
static Weights given(const Weights* weights) {
  return weights == nullptr ? Weights{DataType::kFLOAT, nullptr, 0} : *weights;
}

static void addNetworkDefinition1(nb::class_<INetworkDefinition>& bound) {
  bound
      .def_prop_rw("name", &INetworkDefinition::getName, &INetworkDefinition::setName, kInside,
                   "Stored in the engine. Copied.")
      .def_prop_ro("num_layers", &INetworkDefinition::getNbLayers, kInside,
                   "How many layers there are; len() of the network.")
      .def_prop_ro("num_inputs", &INetworkDefinition::getNbInputs, kInside, "How many inputs there are.")
      .def_prop_ro("num_outputs", &INetworkDefinition::getNbOutputs, kInside, "How many tensors are marked as outputs.")
      .def_prop_ro("has_implicit_batch_dimension", &INetworkDefinition::hasImplicitBatchDimension, kInside,
                   "Always False.")
      .def_prop_rw("error_recorder", &INetworkDefinition::getErrorRecorder, &INetworkDefinition::setErrorRecorder,
                   kInside, kept(), or_none(), "Told of errors instead of the logger; None for none.")
      .def("mark_output", &INetworkDefinition::markOutput, nb::arg("tensor"), kInside,
           "Makes a tensor an output of engines.")
      .def("mark_weights_refittable", &INetworkDefinition::markWeightsRefittable, nb::arg("name"), kInside,
           "With BuilderFlag.REFIT_INDIVIDUAL: engines can be given other weights of this name. False for unknown "
           "names.")
      .def("are_weights_marked_refittable", &INetworkDefinition::areWeightsMarkedRefittable, nb::arg("name"), kInside,
           "Whether weights of this name are marked by mark_weights_refittable().")
      .def("add_input", &INetworkDefinition::addInput, nb::arg("name"), nb::arg("dtype"), nb::arg("shape"), kInside,
           "A new input; -1 in shape is a size known at run time. None where the name is taken or the shape is none.")
      .def("add_activation", &INetworkDefinition::addActivation, nb::arg("input"), nb::arg("type"), kInside,
           "A function of each element of input.")
      .def("add_pooling_nd", &INetworkDefinition::addPoolingNd, nb::arg("input"), nb::arg("type"),
           nb::arg("window_size"), kInside, "The maximum or average over windows of this size.")
      .def("add_lrn", &INetworkDefinition::addLRN, nb::arg("input"), nb::arg("window"), nb::arg("alpha"),
           nb::arg("beta"), nb::arg("k"), kInside,
           "Local response normalization across channels: x / (k + alpha * mean of squares over the window) ** beta.")
      .def("add_softmax", &INetworkDefinition::addSoftMax, nb::arg("input"), kInside,
           "Soft-max along one dimension, at first max(0, rank - 3).")
      .def("add_elementwise", &INetworkDefinition::addElementWise, nb::arg("input1"), nb::arg("input2"), nb::arg("op"),
           kInside, "A function of two tensors of one rank and type; sizes of 1 are repeated.")
      .def("add_unary", &INetworkDefinition::addUnary, nb::arg("input"), nb::arg("op"), kInside,
           "A function of each element of input.")
      .def("add_padding_nd", &INetworkDefinition::addPaddingNd, nb::arg("input"), nb::arg("pre_padding"),
           nb::arg("post_padding"), kInside,
           "Adds zeros around the last two dimensions, or cuts off for negative numbers.")
      .def("add_shuffle", &INetworkDefinition::addShuffle, nb::arg("input"), kInside,
           "Transposes and reshapes, as the layer is told.")
      .def("add_slice", &INetworkDefinition::addSlice, nb::arg("input"), nb::arg("start"), nb::arg("shape"),
           nb::arg("stride"), kInside, "A regular selection: start + i * stride, shape elements of each dimension.")
      .def("add_reduce", &INetworkDefinition::addReduce, nb::arg("input"), nb::arg("op"), nb::arg("axes"),
           nb::arg("keep_dims"), kInside,
           "Reduces the dimensions of axes, bit i for dimension i; keep_dims: whether they stay, with size 1.")
      .def("add_gather", &INetworkDefinition::addGather, nb::arg("input"), nb::arg("indices"), nb::arg("axis"), kInside,
           "Slices of input along axis, by their indices.")
      .def("add_scatter", &INetworkDefinition::addScatter, nb::arg("data"), nb::arg("indices"), nb::arg("updates"),
           nb::arg("mode"), kInside, "A copy of data with updates written at the indices, as mode says.")
      .def("add_gather_v2", &INetworkDefinition::addGatherV2, nb::arg("input"), nb::arg("indices"), nb::arg("mode"),
           kInside, "Slices or elements of input by their indices, as mode says.")
      .def("add_ragged_softmax", &INetworkDefinition::addRaggedSoftMax, nb::arg("input"), nb::arg("bounds"), kInside,
           "Soft-max over the first elements of each row, as many as bounds says.")
      .def("add_constant", &INetworkDefinition::addConstant, nb::arg("shape"), nb::arg("weights"),
           nb::keep_alive<1, 3>(), kInside, "Values that are part of the network; as many as shape says.");
}

static void add_further_layers(nb::class_<INetworkDefinition>& bound) {
  bound.def("add_identity", &INetworkDefinition::addIdentity, nb::arg("input"), kInside, "A copy of input.")
      .def("add_cast", &INetworkDefinition::addCast, nb::arg("input"), nb::arg("to_type"), kInside,
           "Converts elements to a type.")
      .def("add_parametric_relu", &INetworkDefinition::addParametricReLU, nb::arg("input"), nb::arg("slopes"), kInside,
           "input where it is at least 0, else input * slopes; slopes are repeated.")
      .def("add_resize", &INetworkDefinition::addResize, nb::arg("input"), kInside,
           "Resamples input, to the shape or by the scales that the layer is given.")
      .def("add_loop", &INetworkDefinition::addLoop, kInside, "A loop without layers yet.")
      .def("add_shape", &INetworkDefinition::addShape, nb::arg("input"), kInside, "The shape of input, INT64.")
      .def("add_select", &INetworkDefinition::addSelect, nb::arg("condition"), nb::arg("then_input"),
           nb::arg("else_input"), kInside,
           "Elements of then_input where condition, BOOL, is True, and of else_input elsewhere.")
      .def("add_assertion", &INetworkDefinition::addAssertion, nb::arg("condition"), nb::arg("message"), kInside,
           "An error, with this message, where an element of condition, BOOL, is False.")
      .def("add_grid_sample", &INetworkDefinition::addGridSample, nb::arg("input"), nb::arg("grid"), kInside,
           "Values of images [N, C, H, W] at the positions of grid, [N, H', W', 2], in [-1, 1].")
      .def("add_if_conditional", &INetworkDefinition::addIfConditional, kInside, "A conditional without condition yet.")
      .def("add_one_hot", &INetworkDefinition::addOneHot, nb::arg("indices"), nb::arg("values"), nb::arg("depth"),
           nb::arg("axis"), kInside,
           "Vectors of values [off, on] along a new dimension, of depth elements, which is on where the index says.")
      .def("add_reverse_sequence", &INetworkDefinition::addReverseSequence, nb::arg("input"), nb::arg("sequence_lens"),
           kInside, "Reverses the first elements of each sequence, as many as sequence_lens says.")
      .def("add_normalization", &INetworkDefinition::addNormalization, nb::arg("input"), nb::arg("scale"),
           nb::arg("bias"), nb::arg("axesMask"), kInside,
           "(x - mean) / sqrt(variance + epsilon) * scale + bias; scale and bias have the rank of input. Bit i of "
           "axesMask stands for dimension i.")
      .def("add_cumulative", &INetworkDefinition::addCumulative, nb::arg("input"), nb::arg("axis"), nb::arg("op"),
           nb::arg("exclusive"), nb::arg("reverse"), kInside,
           "Running sums along axis, a constant integer without dimensions.")
      .def("add_rotary_embedding", &INetworkDefinition::addRotaryEmbedding, nb::arg("input"), nb::arg("cos_cache"),
           nb::arg("sin_cache"), nb::arg("interleaved"), nb::arg("rotary_embedding_dim"), kInside,
           "Rotates pairs of elements by cosines and sines of their positions.")
      .def("add_kv_cache_update", &INetworkDefinition::addKVCacheUpdate, nb::arg("cache"), nb::arg("update"),
           nb::arg("write_indices"), nb::arg("cache_mode"), kInside,
           "Writes rows of update into cache, beginning at write_indices.")
      .def("add_moe", &INetworkDefinition::addMoE, nb::arg("hidden_states"), nb::arg("selected_experts_for_tokens"),
           nb::arg("scores_for_selected_experts"), kInside,
           "A mixture of experts; the layer's set_gated_weights() gives it weights.")
      .def("remove_tensor", &INetworkDefinition::removeTensor, nb::arg("tensor"), kInside,
           "Removes a tensor that nothing uses.")
      .def("unmark_output", &INetworkDefinition::unmarkOutput, nb::arg("tensor"), kInside, "Takes mark_output() back.")
      .def("mark_output_for_shapes", &INetworkDefinition::markOutputForShapes, nb::arg("tensor"), kInside,
           "Makes the values of a shape tensor an output in the host's memory, computed with the shapes.")
      .def("unmark_output_for_shapes", &INetworkDefinition::unmarkOutputForShapes, nb::arg("tensor"), kInside,
           "Takes mark_output_for_shapes() back.")
      .def("unmark_weights_refittable", &INetworkDefinition::unmarkWeightsRefittable, nb::arg("name"), kInside,
           "Takes mark_weights_refittable() back.")
      .def("set_weights_name", &INetworkDefinition::setWeightsName, nb::arg("weights"), nb::arg("name"), kInside,
           "Names weights for refits. False where no layer uses them or the name is taken. Copied.");
}

static void addNetworkDefinition2(nb::class_<INetworkDefinition>& bound) {
  bound
      .def(
          "get_layer",
          [](nb::handle self, int32_t index) {
            return layer_of(self, nb::cast<INetworkDefinition&>(self).getLayer(index));
          },
          nb::arg("index"), nb::sig("def get_layer(self, index: int) -> ILayer"),
          "The layer as an object of its own class; None for an index that has none.")
      .def("get_input", &INetworkDefinition::getInput, nb::arg("index"), kInside,
           "Input index; None where there is none.")
      .def("get_output", &INetworkDefinition::getOutput, nb::arg("index"), kInside,
           "Output index; None where there is none.")
      .def_prop_ro("flags", &INetworkDefinition::getFlags, kInside, "Bit i stands for NetworkDefinitionCreationFlag i.")
      .def("get_flag", &INetworkDefinition::getFlag, nb::arg("flag"), kInside,
           "Whether the network was made with this flag.")
      .def("mark_debug", &INetworkDefinition::markDebug, nb::arg("tensor"), kInside,
           "Lets the context's IDebugListener see the tensor. False where it is of another network.")
      .def("unmark_debug", &INetworkDefinition::unmarkDebug, nb::arg("tensor"), kInside, "Takes mark_debug() back.")
      .def("is_debug_tensor", &INetworkDefinition::isDebugTensor, nb::arg("tensor"), kInside,
           "Whether the tensor is marked by mark_debug().")
      .def("mark_unfused_tensors_as_debug_tensors", &INetworkDefinition::markUnfusedTensorsAsDebugTensors, kInside,
           "Lets the context's IDebugListener see all tensors that are left after fusion.")
      .def("unmark_unfused_tensors_as_debug_tensors", &INetworkDefinition::unmarkUnfusedTensorsAsDebugTensors, kInside,
           "Takes mark_unfused_tensors_as_debug_tensors() back.")
      .def("add_squeeze", &INetworkDefinition::addSqueeze, nb::arg("input"), nb::arg("axes"), kInside,
           "Removes dimensions of size 1, whose numbers are the constant axes.")
      .def("add_unsqueeze", &INetworkDefinition::addUnsqueeze, nb::arg("input"), nb::arg("axes"), kInside,
           "Inserts dimensions of size 1, whose numbers are the constant axes.")
      .def("add_normalization_v2", &INetworkDefinition::addNormalizationV2, nb::arg("input"), nb::arg("scale"),
           nb::arg("bias"), nb::arg("axesMask"), kInside,
           "As add_normalization(), for scales and biases of one value for each channel, or of the shape that is "
           "normalized.");
}

static void add_layers_of_weights(nb::class_<INetworkDefinition>& bound) {
  bound
      .def(
          "add_convolution_nd",
          [](INetworkDefinition& self, ITensor& input, int64_t num_output_maps, const Dims& kernel_shape,
             const Weights& kernel, const Weights* bias) {
            return self.addConvolutionNd(input, num_output_maps, kernel_shape, kernel, given(bias));
          },
          nb::arg("input"), nb::arg("num_output_maps"), nb::arg("kernel_shape"), nb::arg("kernel"),
          nb::arg("bias").none() = nb::none(), kInside, nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>(),
          "A convolution; kernel_shape are its spatial sizes, kernel is [K, C/groups, ...]. Empty weights where inputs "
          "1 and 2 of the layer will give them.")
      .def(
          "add_deconvolution_nd",
          [](INetworkDefinition& self, ITensor& input, int64_t num_output_maps, const Dims& kernel_shape,
             const Weights& kernel, const Weights* bias) {
            return self.addDeconvolutionNd(input, num_output_maps, kernel_shape, kernel, given(bias));
          },
          nb::arg("input"), nb::arg("num_output_maps"), nb::arg("kernel_shape"), nb::arg("kernel"),
          nb::arg("bias").none() = nb::none(), kInside, nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>(),
          "A transposed convolution; kernel_shape are its spatial sizes, kernel is [C, K/groups, ...]. Empty weights "
          "where inputs 1 and 2 of the layer will give them.")
      .def(
          "add_scale",
          [](INetworkDefinition& self, ITensor& input, ScaleMode mode, const Weights* shift, const Weights* scale,
             const Weights* power) { return self.addScale(input, mode, given(shift), given(scale), given(power)); },
          nb::arg("input"), nb::arg("mode"), nb::arg("shift").none() = nb::none(), nb::arg("scale").none() = nb::none(),
          nb::arg("power").none() = nb::none(), kInside, nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>(),
          nb::keep_alive<1, 6>(),
          "(input * scale + shift) ** power, for ranks from 4; channels are dimension 1. None stands for 1, 0 and 1.")
      .def(
          "add_concatenation",
          [](INetworkDefinition& self, const std::vector<ITensor*>& inputs) {
            return self.addConcatenation(inputs.data(), static_cast<int32_t>(inputs.size()));
          },
          nb::arg("inputs"), kInside, "Joins tensors along the axis of the layer, at first max(0, rank - 3).")
      .def(
          "add_einsum",
          [](INetworkDefinition& self, const std::vector<ITensor*>& inputs, const char* equation) {
            return self.addEinsum(inputs.data(), static_cast<int32_t>(inputs.size()), equation);
          },
          nb::arg("inputs"), nb::arg("equation"), kInside,
          "A sum of products in Einstein's notation, as in 'ij,jk->ik'.")
      .def(
          "add_topk",
          [](INetworkDefinition& self, ITensor& input, TopKOperation op, int32_t k, uint32_t axes) {
            return self.addTopK(input, op, k, axes);
          },
          nb::arg("input"), nb::arg("op"), nb::arg("k"), nb::arg("axes"), kInside,
          "The k largest or smallest elements along the dimension whose bit is set in axes, and their indices.")
      .def(
          "add_topk",
          [](INetworkDefinition& self, ITensor& input, TopKOperation op, int32_t k, uint32_t axes,
             DataType indices_type) { return self.addTopK(input, op, k, axes, indices_type); },
          nb::arg("input"), nb::arg("op"), nb::arg("k"), nb::arg("axes"), nb::arg("indices_type"), kInside,
          "The k largest or smallest elements along the dimension whose bit is set in axes, and their indices.")
      .def(
          "add_matrix_multiply",
          [](INetworkDefinition& self, ITensor& input0, MatrixOperation op0, ITensor& input1, MatrixOperation op1) {
            return self.addMatrixMultiply(input0, op0, input1, op1);
          },
          nb::arg("input0"), nb::arg("op0"), nb::arg("input1"), nb::arg("op1"), kInside,
          "The product of two batches of matrices or vectors; op0 and op1 say how inputs are read.");
}

static void addNetworkDefinition3(nb::class_<INetworkDefinition>& bound) {
  bound
      .def(
          "add_nms",
          [](INetworkDefinition& self, ITensor& boxes, ITensor& scores, ITensor& max_output_boxes_per_class) {
            return self.addNMS(boxes, scores, max_output_boxes_per_class);
          },
          nb::arg("boxes"), nb::arg("scores"), nb::arg("max_output_boxes_per_class"), kInside,
          "Non-maximum suppression of boxes, by scores, with at most so many boxes of a class.")
      .def(
          "add_nms",
          [](INetworkDefinition& self, ITensor& boxes, ITensor& scores, ITensor& max_output_boxes_per_class,
             DataType indices_type) { return self.addNMS(boxes, scores, max_output_boxes_per_class, indices_type); },
          nb::arg("boxes"), nb::arg("scores"), nb::arg("max_output_boxes_per_class"), nb::arg("indices_type"), kInside,
          "Non-maximum suppression of boxes, by scores, with at most so many boxes of a class.")
      .def(
          "add_non_zero", [](INetworkDefinition& self, ITensor& input) { return self.addNonZero(input); },
          nb::arg("input"), kInside, "Coordinates of elements that are not zero, [rank, n].")
      .def(
          "add_non_zero",
          [](INetworkDefinition& self, ITensor& input, DataType indices_type) {
            return self.addNonZero(input, indices_type);
          },
          nb::arg("input"), nb::arg("indices_type"), kInside, "Coordinates of elements that are not zero, [rank, n].")
      .def(
          "add_quantize",
          [](INetworkDefinition& self, ITensor& input, ITensor& scale, DataType output_type) {
            return self.addQuantize(input, scale, output_type);
          },
          nb::arg("input"), nb::arg("scale"), nb::arg("output_type"), kInside,
          "input / scale, rounded and clamped to the range of output_type.")
      .def(
          "add_dequantize",
          [](INetworkDefinition& self, ITensor& input, ITensor& scale, DataType output_type) {
            return self.addDequantize(input, scale, output_type);
          },
          nb::arg("input"), nb::arg("scale"), nb::arg("output_type"), kInside, "input * scale, of type output_type.")
      .def(
          "add_fill",
          [](INetworkDefinition& self, const Dims& shape, FillOperation op, DataType output_type) {
            return self.addFill(shape, op, output_type);
          },
          nb::arg("shape"), nb::arg("op"), nb::arg("output_type") = DataType::kFLOAT, kInside,
          "A tensor whose values follow a rule: a ramp, or random numbers.")
      .def("__len__", &INetworkDefinition::getNbLayers)
      .def(
          "__iter__", [](nb::handle self) { return nb::steal(PySeqIter_New(self.ptr())); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[ILayer]"))
      .def(
          "__getitem__",
          [](nb::handle self, int32_t index) {
            const auto& network = nb::cast<INetworkDefinition&>(self);
            const int32_t count = network.getNbLayers();
            if (index < -count || index >= count) throw nb::index_error();
            return layer_of(self, network.getLayer(index < 0 ? index + count : index));
          },
          nb::sig("def __getitem__(self, index: int, /) -> ILayer"));
}

static void add_late_layers(nb::class_<INetworkDefinition>& bound) {
  bound
      .def(
          "add_dist_collective",
          [](INetworkDefinition& self, ITensor& input, CollectiveOperation collective,
             std::optional<ReduceOperation> reduction, std::optional<int64_t> root, std::vector<int64_t> groups) {
            return self.addDistCollective(input, collective, reduction.value_or(ReduceOperation::kNONE),
                                          root.value_or(-1), groups.empty() ? nullptr : groups.data(),
                                          static_cast<int64_t>(groups.size()));
          },
          nb::arg("input"), nb::arg("dist_collective_op"), nb::arg("reduce_op").none() = nb::none(),
          nb::arg("root").none() = nb::none(), nb::arg("groups") = std::vector<int64_t>(), kInside,
          "An exchange with other processes. reduce_op: of operations that reduce; root: of those that have one; "
          "groups: processes that take part, all unless given.")
      .def(
          "add_attention",
          [](INetworkDefinition& self, ITensor& query, ITensor& key, ITensor& value, AttentionNormalizationOp norm_op,
             bool causal) { return self.addAttention(query, key, value, norm_op, causal); },
          nb::arg("query"), nb::arg("key"), nb::arg("value"), nb::arg("norm_op"), nb::arg("causal"), kInside,
          "Attention; causal: whether scores above the diagonal are masked. add_attention_v2() says which.")
      .def(
          "add_attention_v2",
          [](INetworkDefinition& self, ITensor& query, ITensor& key, ITensor& value, AttentionNormalizationOp norm_op,
             CausalMaskKind causal_kind) { return self.addAttentionV2(query, key, value, norm_op, causal_kind); },
          nb::arg("query"), nb::arg("key"), nb::arg("value"), nb::arg("norm_op"), nb::arg("causal_kind"), kInside,
          "Attention of tensors [batch, heads, sequence, depth]; causal_kind: which scores above the diagonal are "
          "masked.")
      .def(
          "add_dynamic_quantize",
          [](INetworkDefinition& self, ITensor& input, int32_t axis, int32_t block_size, DataType output_type,
             DataType scale_type) { return self.addDynamicQuantize(input, axis, block_size, output_type, scale_type); },
          nb::arg("input"), nb::arg("axis"), nb::arg("block_size"), nb::arg("output_type"), nb::arg("scale_type"),
          kInside,
          "Quantizes blocks of block_size elements along axis, with scales found at run time. "
          "add_dynamic_quantize_v2() takes blocks of any shape.")
      .def(
          "add_dynamic_quantize_v2",
          [](INetworkDefinition& self, ITensor& input, const Dims& block_shape, DataType output_type,
             DataType scale_type) { return self.addDynamicQuantizeV2(input, block_shape, output_type, scale_type); },
          nb::arg("input"), nb::arg("block_shape"), nb::arg("output_type"), nb::arg("scale_type"), kInside,
          "Quantizes blocks with scales found at run time: data of output_type, and scales of scale_type.")
      .def_prop_ro("builder", &INetworkDefinition::getBuilder, nb::rv_policy::reference, "The builder that made it.")
      .def(
          "add_scale_nd",
          [](INetworkDefinition& self, ITensor& input, ScaleMode mode, const Weights* shift, const Weights* scale,
             const Weights* power, int32_t channel_axis) {
            return self.addScaleNd(input, mode, given(shift), given(scale), given(power), channel_axis);
          },
          nb::arg("input"), nb::arg("mode"), nb::arg("shift").none() = nb::none(), nb::arg("scale").none() = nb::none(),
          nb::arg("power").none() = nb::none(), nb::arg("channel_axis"), kInside, nb::keep_alive<1, 4>(),
          nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>(),
          nb::sig(
              "def add_scale_nd(self, input: ITensor, mode: ScaleMode, shift: Weights | None = None, scale: Weights "
              "| None = None, power: Weights | None = None, *, channel_axis: int) -> IScaleLayer"),
          "(input * scale + shift) ** power; None stands for 1, 0 and 1.");
}

static IPluginV3Layer* add_function_plugin(INetworkDefinition& self, nb::object plugin, std::optional<bool> aot) {
  if (aot.value_or(/*default_value=*/false))
    throw nb::value_error("kernels of plugins are not compiled when engines are built");
  if (PyCallable_Check(plugin.ptr()) != 0) plugin = plugin();
  const auto [inputs, shape_inputs, made] =
      nb::cast<std::tuple<std::vector<ITensor*>, std::vector<ITensor*>, nb::object>>(plugin);
  return add_plugin(self, inputs, shape_inputs, made);
}

void bind_network(nb::module_& m) {
  nb::class_<INetworkDefinition> bound(
      m, "INetworkDefinition",
      "A network under construction. Add methods return a layer that the network owns, or None after a report to the "
      "logger. One thread at a time. Weights are kept, not copied, until the network goes.");
  freed_by_last_reference(bound);
  addNetworkDefinition1(bound);
  add_further_layers(bound);
  addNetworkDefinition2(bound);
  add_layers_of_weights(bound);
  addNetworkDefinition3(bound);
  add_late_layers(bound);
  bound
      .def("add_plugin_v3", &add_plugin, nb::arg("inputs"), nb::arg("shape_inputs"), nb::arg("plugin"), kInside,
           "The network keeps a clone of the plugin.")
      .def("add_plugin", &add_function_plugin, nb::arg("plugin"), nb::arg("aot") = nb::none(), kInside,
           "Adds what lathe.tensorrt.plugin.op gives, or what a function without arguments returns. aot: whether its "
           "kernel "
           "is compiled when the engine is built; True raises ValueError.");
}

}  // namespace lathe::python
