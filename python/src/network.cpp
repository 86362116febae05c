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
  bound.def_prop_rw("name", &INetworkDefinition::getName, &INetworkDefinition::setName, kInside)
      .def_prop_ro("num_layers", &INetworkDefinition::getNbLayers, kInside)
      .def_prop_ro("num_inputs", &INetworkDefinition::getNbInputs, kInside)
      .def_prop_ro("num_outputs", &INetworkDefinition::getNbOutputs, kInside)
      .def_prop_ro("has_implicit_batch_dimension", &INetworkDefinition::hasImplicitBatchDimension, kInside)
      .def_prop_rw("error_recorder", &INetworkDefinition::getErrorRecorder, &INetworkDefinition::setErrorRecorder,
                   kInside, kept(), or_none())
      .def("mark_output", &INetworkDefinition::markOutput, nb::arg("tensor"), kInside)
      .def("mark_weights_refittable", &INetworkDefinition::markWeightsRefittable, nb::arg("name"), kInside)
      .def("are_weights_marked_refittable", &INetworkDefinition::areWeightsMarkedRefittable, nb::arg("name"), kInside)
      .def("add_input", &INetworkDefinition::addInput, nb::arg("name"), nb::arg("dtype"), nb::arg("shape"), kInside)
      .def("add_activation", &INetworkDefinition::addActivation, nb::arg("input"), nb::arg("type"), kInside)
      .def("add_pooling_nd", &INetworkDefinition::addPoolingNd, nb::arg("input"), nb::arg("type"),
           nb::arg("window_size"), kInside)
      .def("add_lrn", &INetworkDefinition::addLRN, nb::arg("input"), nb::arg("window"), nb::arg("alpha"),
           nb::arg("beta"), nb::arg("k"), kInside)
      .def("add_softmax", &INetworkDefinition::addSoftMax, nb::arg("input"), kInside)
      .def("add_elementwise", &INetworkDefinition::addElementWise, nb::arg("input1"), nb::arg("input2"), nb::arg("op"),
           kInside)
      .def("add_unary", &INetworkDefinition::addUnary, nb::arg("input"), nb::arg("op"), kInside)
      .def("add_padding_nd", &INetworkDefinition::addPaddingNd, nb::arg("input"), nb::arg("pre_padding"),
           nb::arg("post_padding"), kInside)
      .def("add_shuffle", &INetworkDefinition::addShuffle, nb::arg("input"), kInside)
      .def("add_slice", &INetworkDefinition::addSlice, nb::arg("input"), nb::arg("start"), nb::arg("shape"),
           nb::arg("stride"), kInside)
      .def("add_reduce", &INetworkDefinition::addReduce, nb::arg("input"), nb::arg("op"), nb::arg("axes"),
           nb::arg("keep_dims"), kInside)
      .def("add_gather", &INetworkDefinition::addGather, nb::arg("input"), nb::arg("indices"), nb::arg("axis"), kInside)
      .def("add_scatter", &INetworkDefinition::addScatter, nb::arg("data"), nb::arg("indices"), nb::arg("updates"),
           nb::arg("mode"), kInside)
      .def("add_gather_v2", &INetworkDefinition::addGatherV2, nb::arg("input"), nb::arg("indices"), nb::arg("mode"),
           kInside)
      .def("add_ragged_softmax", &INetworkDefinition::addRaggedSoftMax, nb::arg("input"), nb::arg("bounds"), kInside)
      .def("add_constant", &INetworkDefinition::addConstant, nb::arg("shape"), nb::arg("weights"),
           nb::keep_alive<1, 3>(), kInside)
      .def("add_identity", &INetworkDefinition::addIdentity, nb::arg("input"), kInside)
      .def("add_cast", &INetworkDefinition::addCast, nb::arg("input"), nb::arg("to_type"), kInside)
      .def("add_parametric_relu", &INetworkDefinition::addParametricReLU, nb::arg("input"), nb::arg("slopes"), kInside)
      .def("add_resize", &INetworkDefinition::addResize, nb::arg("input"), kInside)
      .def("add_loop", &INetworkDefinition::addLoop, kInside)
      .def("add_shape", &INetworkDefinition::addShape, nb::arg("input"), kInside)
      .def("add_select", &INetworkDefinition::addSelect, nb::arg("condition"), nb::arg("then_input"),
           nb::arg("else_input"), kInside)
      .def("add_assertion", &INetworkDefinition::addAssertion, nb::arg("condition"), nb::arg("message"), kInside)
      .def("add_grid_sample", &INetworkDefinition::addGridSample, nb::arg("input"), nb::arg("grid"), kInside)
      .def("add_if_conditional", &INetworkDefinition::addIfConditional, kInside)
      .def("add_one_hot", &INetworkDefinition::addOneHot, nb::arg("indices"), nb::arg("values"), nb::arg("depth"),
           nb::arg("axis"), kInside)
      .def("add_reverse_sequence", &INetworkDefinition::addReverseSequence, nb::arg("input"), nb::arg("sequence_lens"),
           kInside)
      .def("add_normalization", &INetworkDefinition::addNormalization, nb::arg("input"), nb::arg("scale"),
           nb::arg("bias"), nb::arg("axesMask"), kInside)
      .def("add_cumulative", &INetworkDefinition::addCumulative, nb::arg("input"), nb::arg("axis"), nb::arg("op"),
           nb::arg("exclusive"), nb::arg("reverse"), kInside)
      .def("add_rotary_embedding", &INetworkDefinition::addRotaryEmbedding, nb::arg("input"), nb::arg("cos_cache"),
           nb::arg("sin_cache"), nb::arg("interleaved"), nb::arg("rotary_embedding_dim"), kInside)
      .def("add_kv_cache_update", &INetworkDefinition::addKVCacheUpdate, nb::arg("cache"), nb::arg("update"),
           nb::arg("write_indices"), nb::arg("cache_mode"), kInside)
      .def("add_moe", &INetworkDefinition::addMoE, nb::arg("hidden_states"), nb::arg("selected_experts_for_tokens"),
           nb::arg("scores_for_selected_experts"), kInside)
      .def("remove_tensor", &INetworkDefinition::removeTensor, nb::arg("tensor"), kInside)
      .def("unmark_output", &INetworkDefinition::unmarkOutput, nb::arg("tensor"), kInside)
      .def("mark_output_for_shapes", &INetworkDefinition::markOutputForShapes, nb::arg("tensor"), kInside)
      .def("unmark_output_for_shapes", &INetworkDefinition::unmarkOutputForShapes, nb::arg("tensor"), kInside)
      .def("unmark_weights_refittable", &INetworkDefinition::unmarkWeightsRefittable, nb::arg("name"), kInside)
      .def("set_weights_name", &INetworkDefinition::setWeightsName, nb::arg("weights"), nb::arg("name"), kInside);
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
      .def("get_input", &INetworkDefinition::getInput, nb::arg("index"), kInside)
      .def("get_output", &INetworkDefinition::getOutput, nb::arg("index"), kInside)
      .def_prop_ro("flags", &INetworkDefinition::getFlags, kInside)
      .def("get_flag", &INetworkDefinition::getFlag, nb::arg("flag"), kInside)
      .def("mark_debug", &INetworkDefinition::markDebug, nb::arg("tensor"), kInside)
      .def("unmark_debug", &INetworkDefinition::unmarkDebug, nb::arg("tensor"), kInside)
      .def("is_debug_tensor", &INetworkDefinition::isDebugTensor, nb::arg("tensor"), kInside)
      .def("mark_unfused_tensors_as_debug_tensors", &INetworkDefinition::markUnfusedTensorsAsDebugTensors, kInside)
      .def("unmark_unfused_tensors_as_debug_tensors", &INetworkDefinition::unmarkUnfusedTensorsAsDebugTensors, kInside)
      .def("add_squeeze", &INetworkDefinition::addSqueeze, nb::arg("input"), nb::arg("axes"), kInside)
      .def("add_unsqueeze", &INetworkDefinition::addUnsqueeze, nb::arg("input"), nb::arg("axes"), kInside)
      .def("add_normalization_v2", &INetworkDefinition::addNormalizationV2, nb::arg("input"), nb::arg("scale"),
           nb::arg("bias"), nb::arg("axesMask"), kInside)
      .def(
          "add_convolution_nd",
          [](INetworkDefinition& self, ITensor& input, int64_t num_output_maps, const Dims& kernel_shape,
             const Weights& kernel, const Weights* bias) {
            return self.addConvolutionNd(input, num_output_maps, kernel_shape, kernel, given(bias));
          },
          nb::arg("input"), nb::arg("num_output_maps"), nb::arg("kernel_shape"), nb::arg("kernel"),
          nb::arg("bias").none() = nb::none(), kInside, nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>())
      .def(
          "add_deconvolution_nd",
          [](INetworkDefinition& self, ITensor& input, int64_t num_output_maps, const Dims& kernel_shape,
             const Weights& kernel, const Weights* bias) {
            return self.addDeconvolutionNd(input, num_output_maps, kernel_shape, kernel, given(bias));
          },
          nb::arg("input"), nb::arg("num_output_maps"), nb::arg("kernel_shape"), nb::arg("kernel"),
          nb::arg("bias").none() = nb::none(), kInside, nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>())
      .def(
          "add_scale",
          [](INetworkDefinition& self, ITensor& input, ScaleMode mode, const Weights* shift, const Weights* scale,
             const Weights* power) { return self.addScale(input, mode, given(shift), given(scale), given(power)); },
          nb::arg("input"), nb::arg("mode"), nb::arg("shift").none() = nb::none(), nb::arg("scale").none() = nb::none(),
          nb::arg("power").none() = nb::none(), kInside, nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>(),
          nb::keep_alive<1, 6>())
      .def(
          "add_concatenation",
          [](INetworkDefinition& self, const std::vector<ITensor*>& inputs) {
            return self.addConcatenation(inputs.data(), static_cast<int32_t>(inputs.size()));
          },
          nb::arg("inputs"), kInside)
      .def(
          "add_einsum",
          [](INetworkDefinition& self, const std::vector<ITensor*>& inputs, const char* equation) {
            return self.addEinsum(inputs.data(), static_cast<int32_t>(inputs.size()), equation);
          },
          nb::arg("inputs"), nb::arg("equation"), kInside)
      .def(
          "add_topk",
          [](INetworkDefinition& self, ITensor& input, TopKOperation op, int32_t k, uint32_t axes) {
            return self.addTopK(input, op, k, axes);
          },
          nb::arg("input"), nb::arg("op"), nb::arg("k"), nb::arg("axes"), kInside)
      .def(
          "add_topk",
          [](INetworkDefinition& self, ITensor& input, TopKOperation op, int32_t k, uint32_t axes,
             DataType indices_type) { return self.addTopK(input, op, k, axes, indices_type); },
          nb::arg("input"), nb::arg("op"), nb::arg("k"), nb::arg("axes"), nb::arg("indices_type"), kInside)
      .def(
          "add_matrix_multiply",
          [](INetworkDefinition& self, ITensor& input0, MatrixOperation op0, ITensor& input1, MatrixOperation op1) {
            return self.addMatrixMultiply(input0, op0, input1, op1);
          },
          nb::arg("input0"), nb::arg("op0"), nb::arg("input1"), nb::arg("op1"), kInside);
}

static void addNetworkDefinition3(nb::class_<INetworkDefinition>& bound) {
  bound
      .def(
          "add_nms",
          [](INetworkDefinition& self, ITensor& boxes, ITensor& scores, ITensor& max_output_boxes_per_class) {
            return self.addNMS(boxes, scores, max_output_boxes_per_class);
          },
          nb::arg("boxes"), nb::arg("scores"), nb::arg("max_output_boxes_per_class"), kInside)
      .def(
          "add_nms",
          [](INetworkDefinition& self, ITensor& boxes, ITensor& scores, ITensor& max_output_boxes_per_class,
             DataType indices_type) { return self.addNMS(boxes, scores, max_output_boxes_per_class, indices_type); },
          nb::arg("boxes"), nb::arg("scores"), nb::arg("max_output_boxes_per_class"), nb::arg("indices_type"), kInside)
      .def(
          "add_non_zero", [](INetworkDefinition& self, ITensor& input) { return self.addNonZero(input); },
          nb::arg("input"), kInside)
      .def(
          "add_non_zero",
          [](INetworkDefinition& self, ITensor& input, DataType indices_type) {
            return self.addNonZero(input, indices_type);
          },
          nb::arg("input"), nb::arg("indices_type"), kInside)
      .def(
          "add_quantize",
          [](INetworkDefinition& self, ITensor& input, ITensor& scale, DataType output_type) {
            return self.addQuantize(input, scale, output_type);
          },
          nb::arg("input"), nb::arg("scale"), nb::arg("output_type"), kInside)
      .def(
          "add_dequantize",
          [](INetworkDefinition& self, ITensor& input, ITensor& scale, DataType output_type) {
            return self.addDequantize(input, scale, output_type);
          },
          nb::arg("input"), nb::arg("scale"), nb::arg("output_type"), kInside)
      .def(
          "add_fill",
          [](INetworkDefinition& self, const Dims& shape, FillOperation op, DataType output_type) {
            return self.addFill(shape, op, output_type);
          },
          nb::arg("shape"), nb::arg("op"), nb::arg("output_type") = DataType::kFLOAT, kInside)
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
          nb::arg("root").none() = nb::none(), nb::arg("groups") = std::vector<int64_t>(), kInside)
      .def(
          "add_attention",
          [](INetworkDefinition& self, ITensor& query, ITensor& key, ITensor& value, AttentionNormalizationOp norm_op,
             bool causal) { return self.addAttention(query, key, value, norm_op, causal); },
          nb::arg("query"), nb::arg("key"), nb::arg("value"), nb::arg("norm_op"), nb::arg("causal"), kInside)
      .def(
          "add_attention_v2",
          [](INetworkDefinition& self, ITensor& query, ITensor& key, ITensor& value, AttentionNormalizationOp norm_op,
             CausalMaskKind causal_kind) { return self.addAttentionV2(query, key, value, norm_op, causal_kind); },
          nb::arg("query"), nb::arg("key"), nb::arg("value"), nb::arg("norm_op"), nb::arg("causal_kind"), kInside)
      .def(
          "add_dynamic_quantize",
          [](INetworkDefinition& self, ITensor& input, int32_t axis, int32_t block_size, DataType output_type,
             DataType scale_type) { return self.addDynamicQuantize(input, axis, block_size, output_type, scale_type); },
          nb::arg("input"), nb::arg("axis"), nb::arg("block_size"), nb::arg("output_type"), nb::arg("scale_type"),
          kInside)
      .def(
          "add_dynamic_quantize_v2",
          [](INetworkDefinition& self, ITensor& input, const Dims& block_shape, DataType output_type,
             DataType scale_type) { return self.addDynamicQuantizeV2(input, block_shape, output_type, scale_type); },
          nb::arg("input"), nb::arg("block_shape"), nb::arg("output_type"), nb::arg("scale_type"), kInside)
      .def_prop_ro("builder", &INetworkDefinition::getBuilder, nb::rv_policy::reference)
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
              "| None = None, power: Weights | None = None, *, channel_axis: int) -> IScaleLayer"));
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
  nb::class_<INetworkDefinition> bound(m, "INetworkDefinition");
  freed_by_last_reference(bound);
  addNetworkDefinition1(bound);
  addNetworkDefinition2(bound);
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
