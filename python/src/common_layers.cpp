// SPDX-License-Identifier: Apache-2.0
#include "bind.h"
#include "layer_types.h"

using namespace nvinfer1;

namespace lathe::python {

static void bind_base_layers(nb::module_& m) {
  nb::class_<ITensor>(m, "ITensor", "A tensor of a network: an input, or an output of a layer. Its network owns it.")
      .def_prop_rw("name", &ITensor::getName, &ITensor::setName, kInside,
                   "Unique in the network for inputs and outputs, by which engines call them. Copied.")
      .def_prop_rw("shape", &ITensor::getDimensions, &ITensor::setDimensions, kInside,
                   "Sizes of its dimensions; -1 is one known at run time. Only those of network inputs can be set.")
      .def_prop_ro("dtype", &ITensor::getType, kInside,
                   "The type of its elements. It follows from the layer that computes it.")
      .def_prop_rw("broadcast_across_batch", &ITensor::getBroadcastAcrossBatch, &ITensor::setBroadcastAcrossBatch,
                   kInside, "Without effect: networks have no implicit batch.")
      .def_prop_rw(
          "location", &ITensor::getLocation, &ITensor::setLocation, kInside,
          "Where engines expect it, which the library decides: device memory, or host memory for shape tensors.")
      .def_prop_rw("allowed_formats", &ITensor::getAllowedFormats, &ITensor::setAllowedFormats, kInside,
                   "Bit i stands for TensorFormat i.")
      .def_prop_ro("is_network_input", &ITensor::isNetworkInput, kInside,
                   "Whether the network was given it by add_input().")
      .def_prop_ro("is_network_output", &ITensor::isNetworkOutput, kInside, "Whether it was marked by mark_output().")
      .def_prop_ro("is_shape_tensor", &ITensor::isShapeTensor, kInside,
                   "Whether its values take part in the computation of shapes.")
      .def_prop_ro("is_execution_tensor", &ITensor::isExecutionTensor, kInside,
                   "Whether its values are computed when engines run.")
      .def("set_dimension_name", &ITensor::setDimensionName, nb::arg("index"), nb::arg("name"), kInside,
           "Names dimension index; inputs whose dimensions have one name have one size.")
      .def("get_dimension_name", &ITensor::getDimensionName, nb::arg("index"), kInside,
           "The name that was given to dimension index, or None.");
  nb::class_<ILayer>(m, "ILayer", "A layer of a network, which owns it. Made by the add methods of INetworkDefinition.")
      .def_prop_rw("name", &ILayer::getName, &ILayer::setName, kInside,
                   "By which inspectors, profilers and reports call it. Copied.")
      .def_prop_rw("metadata", &ILayer::getMetadata, &ILayer::setMetadata, kInside,
                   "A text of the program's own, which the engine inspector shows. Copied.")
      .def_prop_rw("num_ranks", &ILayer::getNbRanks, &ILayer::setNbRanks, kInside,
                   "How many devices take part; 1 for all but collectives.")
      .def_prop_ro("type", &ILayer::getType, kInside, "The LayerType, which tells the class.")
      .def_prop_ro("num_inputs", &ILayer::getNbInputs, kInside,
                   "How many inputs it has, with optional ones in between that are not there.")
      .def_prop_ro("num_outputs", &ILayer::getNbOutputs, kInside, "How many outputs it has.")
      .def("set_input", &ILayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside,
           "Replaces input index by a tensor of the same network. An index that the layer does not take is reported "
           "and changes nothing.")
      .def("get_input", &ILayer::getInput, nb::arg("index"), kInside, "Input index; None where there is none.")
      .def("get_output", &ILayer::getOutput, nb::arg("index"), kInside, "Output index; None where there is none.")
      .def("get_output_type", &ILayer::getOutputType, nb::arg("index"), kInside,
           "The type of the elements of output index.");
  nb::class_<ILoopBoundaryLayer, ILayer>(m, "ILoopBoundaryLayer", "Base of the layers at the edge of a loop.")
      .def_prop_ro("loop", &ILoopBoundaryLayer::getLoop, kInside, "The loop that it belongs to.");
  nb::class_<IIfConditionalBoundaryLayer, ILayer>(m, "IIfConditionalBoundaryLayer",
                                                  "Base of the layers at the edge of a conditional.")
      .def_prop_ro("conditional", &IIfConditionalBoundaryLayer::getConditional, kInside,
                   "The conditional that it belongs to.");
  nb::class_<IAttentionBoundaryLayer, ILayer>(m, "IAttentionBoundaryLayer",
                                              "Base of the layers at the edge of an attention.")
      .def_prop_ro("attention", &IAttentionBoundaryLayer::getAttention, kInside, "The attention that it belongs to.");
}

static void bind_convolution_layers(nb::module_& m) {
  nb::class_<IConvolutionLayer, ILayer>(
      m, "IConvolutionLayer",
      "Correlation over 2 or 3 spatial dimensions of a tensor [N, C, ...]. Weights are [K, C/groups, ...]; inputs 1 "
      "and 2, where they are set, replace kernel and bias.")
      .def_prop_rw("kernel", &IConvolutionLayer::getKernelWeights, &IConvolutionLayer::setKernelWeights, kept(),
                   "Weights [K, C/groups, ...]. They are not copied: the layer keeps the array.")
      .def_prop_rw("bias", &IConvolutionLayer::getBiasWeights, &IConvolutionLayer::setBiasWeights, kept(),
                   "K weights, or empty ones for none. The layer keeps the array.")
      .def_prop_rw("num_output_maps", &IConvolutionLayer::getNbOutputMaps, &IConvolutionLayer::setNbOutputMaps, kInside,
                   "K, the channels of the output.")
      .def_prop_rw("pre_padding", &IConvolutionLayer::getPrePadding, &IConvolutionLayer::setPrePadding, kInside,
                   "Zeros before the first element of each spatial dimension; 0 unless set.")
      .def_prop_rw("post_padding", &IConvolutionLayer::getPostPadding, &IConvolutionLayer::setPostPadding, kInside,
                   "Zeros behind the last element of each spatial dimension; 0 unless set.")
      .def_prop_rw(
          "padding_mode", &IConvolutionLayer::getPaddingMode, &IConvolutionLayer::setPaddingMode, kInside,
          "How sizes are rounded; EXPLICIT_ROUND_DOWN unless set. The SAME modes take no notice of explicit padding.")
      .def_prop_rw("num_groups", &IConvolutionLayer::getNbGroups, &IConvolutionLayer::setNbGroups, kInside,
                   "Groups of channels that are computed apart; 1 unless set. It divides C and K.")
      .def_prop_rw("kernel_size_nd", &IConvolutionLayer::getKernelSizeNd, &IConvolutionLayer::setKernelSizeNd, kInside,
                   "Elements of the kernel in each spatial dimension.")
      .def_prop_rw("stride_nd", &IConvolutionLayer::getStrideNd, &IConvolutionLayer::setStrideNd, kInside,
                   "Steps of the window in each spatial dimension; 1 unless set.")
      .def_prop_rw("padding_nd", &IConvolutionLayer::getPaddingNd, &IConvolutionLayer::setPaddingNd, kInside,
                   "Padding on both sides of each spatial dimension. Of unknown rank where sides differ.")
      .def_prop_rw("dilation_nd", &IConvolutionLayer::getDilationNd, &IConvolutionLayer::setDilationNd, kInside,
                   "Distances of the kernel's elements in each spatial dimension; 1 unless set.");
  nb::class_<IActivationLayer, ILayer>(m, "IActivationLayer", "A function of each element.")
      .def_prop_rw("type", &IActivationLayer::getActivationType, &IActivationLayer::setActivationType, kInside,
                   "Which function: an ActivationType.")
      .def_prop_rw("alpha", &IActivationLayer::getAlpha, &IActivationLayer::setAlpha, kInside,
                   "The first parameter of the function, where it has one.")
      .def_prop_rw("beta", &IActivationLayer::getBeta, &IActivationLayer::setBeta, kInside,
                   "The second parameter of the function, where it has one.");
  nb::class_<NetworkActivationLayer, IActivationLayer>(m, "_NetworkActivationLayer")
      .def_prop_ro("type", [](const ILayer& self) { return self.getType(); });
  nb::class_<IPoolingLayer, ILayer>(m, "IPoolingLayer",
                                    "The maximum or average over windows of 2 or 3 spatial dimensions.")
      .def_prop_rw("type", &IPoolingLayer::getPoolingType, &IPoolingLayer::setPoolingType, kInside,
                   "Which function of the window: a PoolingType.")
      .def_prop_rw("pre_padding", &IPoolingLayer::getPrePadding, &IPoolingLayer::setPrePadding, kInside,
                   "Elements before the first of each spatial dimension; 0 unless set.")
      .def_prop_rw("post_padding", &IPoolingLayer::getPostPadding, &IPoolingLayer::setPostPadding, kInside,
                   "Elements behind the last of each spatial dimension; 0 unless set.")
      .def_prop_rw("padding_mode", &IPoolingLayer::getPaddingMode, &IPoolingLayer::setPaddingMode, kInside,
                   "How sizes are rounded; EXPLICIT_ROUND_DOWN unless set.")
      .def_prop_rw("blend_factor", &IPoolingLayer::getBlendFactor, &IPoolingLayer::setBlendFactor, kInside,
                   "f of MAX_AVERAGE_BLEND, (1 - f) * maximum + f * average; 0 unless set.")
      .def_prop_rw("average_count_excludes_padding", &IPoolingLayer::getAverageCountExcludesPadding,
                   &IPoolingLayer::setAverageCountExcludesPadding, kInside,
                   "Whether padding does not count in averages; True unless set.")
      .def_prop_rw("window_size_nd", &IPoolingLayer::getWindowSizeNd, &IPoolingLayer::setWindowSizeNd, kInside,
                   "Elements of the window in each spatial dimension.")
      .def_prop_rw("stride_nd", &IPoolingLayer::getStrideNd, &IPoolingLayer::setStrideNd, kInside,
                   "Steps of the window in each spatial dimension; 1 unless set.")
      .def_prop_rw("padding_nd", &IPoolingLayer::getPaddingNd, &IPoolingLayer::setPaddingNd, kInside,
                   "Padding on both sides of each spatial dimension. Of unknown rank where sides differ.");
  nb::class_<NetworkPoolingLayer, IPoolingLayer>(m, "_NetworkPoolingLayer").def_prop_ro("type", [](const ILayer& self) {
    return self.getType();
  });
  nb::class_<ILRNLayer, ILayer>(
      m, "ILRNLayer",
      "Local response normalization across channels: x / (k + alpha * mean of squares over the window) ** beta.")
      .def_prop_rw("window_size", &ILRNLayer::getWindowSize, &ILRNLayer::setWindowSize, kInside,
                   "Channels of the window: odd, 1 to 15.")
      .def_prop_rw("alpha", &ILRNLayer::getAlpha, &ILRNLayer::setAlpha, kInside, "The factor of the mean of squares.")
      .def_prop_rw("beta", &ILRNLayer::getBeta, &ILRNLayer::setBeta, kInside, "The exponent.")
      .def_prop_rw("k", &ILRNLayer::getK, &ILRNLayer::setK, kInside, "What is added to the mean.");
}

static void bind_scale_layers(nb::module_& m) {
  nb::class_<IScaleLayer, ILayer>(m, "IScaleLayer", "(x * scale + shift) ** power. Empty weights stand for 1, 0 and 1.")
      .def_prop_rw("shift", &IScaleLayer::getShift, &IScaleLayer::setShift, kept(),
                   "Added to the product; one value, or as many as the mode says. The layer keeps the array.")
      .def_prop_rw("scale", &IScaleLayer::getScale, &IScaleLayer::setScale, kept(),
                   "The factor; one value, or as many as the mode says. The layer keeps the array.")
      .def_prop_rw("power", &IScaleLayer::getPower, &IScaleLayer::setPower, kept(),
                   "The exponent; one value, or as many as the mode says. The layer keeps the array.")
      .def_prop_rw("mode", &IScaleLayer::getMode, &IScaleLayer::setMode, kInside,
                   "Whether there is one value for all, one for each channel, or one for each element.")
      .def_prop_rw("channel_axis", &IScaleLayer::getChannelAxis, &IScaleLayer::setChannelAxis, kInside,
                   "The dimension of the channels; 1 unless the layer was added with another one.");
  nb::class_<IQuantizeLayer, ILayer>(m, "IQuantizeLayer",
                                     "x / scale, rounded half to even and clamped to the range of the output type. "
                                     "Input 1 is the scale, input 2, if any, the zero point, all 0.")
      .def_prop_rw("axis", &IQuantizeLayer::getAxis, &IQuantizeLayer::setAxis, kInside,
                   "The dimension that a scale of one dimension runs along; -1 at first.")
      .def_prop_rw("block_shape", &IQuantizeLayer::getBlockShape, &IQuantizeLayer::setBlockShape, kInside,
                   "Elements that share a scale, where the scale has the rank of x.")
      .def_prop_rw("to_type", &IQuantizeLayer::getToType, &IQuantizeLayer::setToType, kInside,
                   "The type of the output: INT8, FP8, INT4 or FP4.");
  nb::class_<IDequantizeLayer, ILayer>(m, "IDequantizeLayer",
                                       "x * scale. Input 1 is the scale, input 2, if any, the zero point, all 0.")
      .def_prop_rw("axis", &IDequantizeLayer::getAxis, &IDequantizeLayer::setAxis, kInside,
                   "The dimension that a scale of one dimension runs along; -1 at first.")
      .def_prop_rw("block_shape", &IDequantizeLayer::getBlockShape, &IDequantizeLayer::setBlockShape, kInside,
                   "Elements that share a scale, where the scale has the rank of x.")
      .def_prop_rw("to_type", &IDequantizeLayer::getToType, &IDequantizeLayer::setToType, kInside,
                   "The type of the output: FLOAT, HALF or BF16.");
}

static void bind_elementwise_layers(nb::module_& m) {
  nb::class_<IDynamicQuantizeLayer, ILayer>(m, "IDynamicQuantizeLayer",
                                            "Quantizes blocks with scales that are found at run time. Output 0 is the "
                                            "data, output 1 the scales; input 1, if any, a scale of the scales.")
      .def_prop_rw("axis", &IDynamicQuantizeLayer::getAxis, &IDynamicQuantizeLayer::setAxis, kInside,
                   "The dimension that blocks lie along. block_shape replaces it.")
      .def_prop_rw("block_size", &IDynamicQuantizeLayer::getBlockSize, &IDynamicQuantizeLayer::setBlockSize, kInside,
                   "Elements of a block along the axis. block_shape replaces it.")
      .def_prop_rw("block_shape", &IDynamicQuantizeLayer::getBlockShape, &IDynamicQuantizeLayer::setBlockShape, kInside,
                   "Elements of a block in each dimension.")
      .def_prop_rw("to_type", &IDynamicQuantizeLayer::getToType, &IDynamicQuantizeLayer::setToType, kInside,
                   "The type of the data.")
      .def_prop_rw("scale_type", &IDynamicQuantizeLayer::getScaleType, &IDynamicQuantizeLayer::setScaleType, kInside,
                   "The type of the scales.");
  nb::class_<ISoftMaxLayer, ILayer>(m, "ISoftMaxLayer", "Soft-max along one dimension.")
      .def_prop_rw("axes", &ISoftMaxLayer::getAxes, &ISoftMaxLayer::setAxes, kInside,
                   "One bit: bit i stands for dimension i. max(0, rank - 3) unless set.");
  nb::class_<IConcatenationLayer, ILayer>(m, "IConcatenationLayer", "Joins its inputs along one dimension.")
      .def_prop_rw("axis", &IConcatenationLayer::getAxis, &IConcatenationLayer::setAxis, kInside,
                   "The dimension along which inputs are joined.");
  nb::class_<IDeconvolutionLayer, ILayer>(
      m, "IDeconvolutionLayer",
      "Transposed convolution over 2 or 3 spatial dimensions. Weights are [C, K/groups, ...]; padding trims the "
      "output. Inputs 1 and 2, where they are set, replace kernel and bias.")
      .def_prop_rw("kernel", &IDeconvolutionLayer::getKernelWeights, &IDeconvolutionLayer::setKernelWeights, kept(),
                   "Weights [C, K/groups, ...]. They are not copied: the layer keeps the array.")
      .def_prop_rw("bias", &IDeconvolutionLayer::getBiasWeights, &IDeconvolutionLayer::setBiasWeights, kept(),
                   "K weights, or empty ones for none. The layer keeps the array.")
      .def_prop_rw("num_output_maps", &IDeconvolutionLayer::getNbOutputMaps, &IDeconvolutionLayer::setNbOutputMaps,
                   kInside, "K, the channels of the output.")
      .def_prop_rw("pre_padding", &IDeconvolutionLayer::getPrePadding, &IDeconvolutionLayer::setPrePadding, kInside,
                   "Elements that are cut off at the start of each spatial dimension; 0 unless set.")
      .def_prop_rw("post_padding", &IDeconvolutionLayer::getPostPadding, &IDeconvolutionLayer::setPostPadding, kInside,
                   "Elements that are cut off at the end of each spatial dimension; 0 unless set.")
      .def_prop_rw("padding_mode", &IDeconvolutionLayer::getPaddingMode, &IDeconvolutionLayer::setPaddingMode, kInside,
                   "How sizes are rounded; EXPLICIT_ROUND_DOWN unless set.")
      .def_prop_rw("num_groups", &IDeconvolutionLayer::getNbGroups, &IDeconvolutionLayer::setNbGroups, kInside,
                   "Groups of channels that are computed apart; 1 unless set. It divides C and K.")
      .def_prop_rw("kernel_size_nd", &IDeconvolutionLayer::getKernelSizeNd, &IDeconvolutionLayer::setKernelSizeNd,
                   kInside, "Elements of the kernel in each spatial dimension.")
      .def_prop_rw("stride_nd", &IDeconvolutionLayer::getStrideNd, &IDeconvolutionLayer::setStrideNd, kInside,
                   "Steps of the window in each spatial dimension; 1 unless set.")
      .def_prop_rw("padding_nd", &IDeconvolutionLayer::getPaddingNd, &IDeconvolutionLayer::setPaddingNd, kInside,
                   "What is cut off on both sides of each spatial dimension. Of unknown rank where sides differ.")
      .def_prop_rw("dilation_nd", &IDeconvolutionLayer::getDilationNd, &IDeconvolutionLayer::setDilationNd, kInside,
                   "Distances of the kernel's elements in each spatial dimension; 1 unless set.");
  nb::class_<IElementWiseLayer, ILayer>(m, "IElementWiseLayer",
                                        "A function of two tensors of one rank and type; sizes of 1 are repeated.")
      .def_prop_rw("op", &IElementWiseLayer::getOperation, &IElementWiseLayer::setOperation, kInside,
                   "Which function: an ElementWiseOperation.");
  nb::class_<IScatterLayer, ILayer>(m, "IScatterLayer", "Copies input 0 and writes input 2 at the indices in input 1.")
      .def_prop_rw("axis", &IScatterLayer::getAxis, &IScatterLayer::setAxis, kInside,
                   "The dimension that indices are of, in mode ELEMENT; 0 unless set.")
      .def_prop_rw("mode", &IScatterLayer::getMode, &IScatterLayer::setMode, kInside,
                   "Whether indices are of elements, or of whatever their last dimension addresses.");
  nb::class_<IGatherLayer, ILayer>(
      m, "IGatherLayer", "Picks slices or elements of input 0 by the indices in input 1, which may be negative.")
      .def_prop_rw("axis", &IGatherLayer::getGatherAxis, &IGatherLayer::setGatherAxis, kInside,
                   "The dimension of input 0 that indices are of; none in mode ND.")
      .def_prop_rw("num_elementwise_dims", &IGatherLayer::getNbElementWiseDims, &IGatherLayer::setNbElementWiseDims,
                   kInside, "Leading dimensions that both inputs share.")
      .def_prop_rw("mode", &IGatherLayer::getMode, &IGatherLayer::setMode, kInside,
                   "Whether indices pick slices, elements, or whatever their last dimension addresses.");
  nb::class_<IUnaryLayer, ILayer>(m, "IUnaryLayer", "A function of each element.")
      .def_prop_rw("op", &IUnaryLayer::getOperation, &IUnaryLayer::setOperation, kInside,
                   "Which function: a UnaryOperation.");
  nb::class_<IReduceLayer, ILayer>(m, "IReduceLayer", "Reduces some dimensions to one value each.")
      .def_prop_rw("op", &IReduceLayer::getOperation, &IReduceLayer::setOperation, kInside,
                   "Which function of the values: a ReduceOperation.")
      .def_prop_rw("axes", &IReduceLayer::getReduceAxes, &IReduceLayer::setReduceAxes, kInside,
                   "Bit i stands for dimension i; at least one.")
      .def_prop_rw("keep_dims", &IReduceLayer::getKeepDimensions, &IReduceLayer::setKeepDimensions, kInside,
                   "Whether reduced dimensions stay, with size 1.");
  nb::class_<IPaddingLayer, ILayer>(m, "IPaddingLayer", "Adds zeros around, or cuts off, the last two dimensions.")
      .def_prop_rw("pre_padding_nd", &IPaddingLayer::getPrePaddingNd, &IPaddingLayer::setPrePaddingNd, kInside,
                   "Rows and columns before the first ones; negative numbers cut off.")
      .def_prop_rw("post_padding_nd", &IPaddingLayer::getPostPaddingNd, &IPaddingLayer::setPostPaddingNd, kInside,
                   "Rows and columns behind the last ones; negative numbers cut off.");
}

static void bind_shape_layers(nb::module_& m) {
  nb::class_<IShuffleLayer, ILayer>(m, "IShuffleLayer", "Transposes, reshapes and transposes again.")
      .def_prop_rw("first_transpose", &IShuffleLayer::getFirstTranspose, &IShuffleLayer::setFirstTranspose, kInside,
                   "The order of dimensions before the reshape.")
      .def_prop_rw("reshape_dims", &IShuffleLayer::getReshapeDimensions, &IShuffleLayer::setReshapeDimensions, kInside,
                   "The shape; 0 copies the input's size, -1 is what remains. Of unknown rank where input 1 gives it.")
      .def_prop_rw("second_transpose", &IShuffleLayer::getSecondTranspose, &IShuffleLayer::setSecondTranspose, kInside,
                   "The order of dimensions behind the reshape.")
      .def_prop_rw("zero_is_placeholder", &IShuffleLayer::getZeroIsPlaceholder, &IShuffleLayer::setZeroIsPlaceholder,
                   kInside, "Whether 0 in a shape copies the input's size; True unless set.")
      .def("set_input", &IShuffleLayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside,
           "Replaces input 0, or gives the shape as input 1, a shape tensor.");
  nb::class_<ISliceLayer, ILayer>(m, "ISliceLayer", "A regular selection of elements: start + i * stride.")
      .def_prop_rw("start", &ISliceLayer::getStart, &ISliceLayer::setStart, kInside,
                   "The first element in each dimension.")
      .def_prop_rw("shape", &ISliceLayer::getSize, &ISliceLayer::setSize, kInside, "Elements in each dimension.")
      .def_prop_rw("stride", &ISliceLayer::getStride, &ISliceLayer::setStride, kInside,
                   "Steps in each dimension; they may be negative.")
      .def_prop_rw("mode", &ISliceLayer::getMode, &ISliceLayer::setMode, kInside,
                   "What elements beyond the tensor are; STRICT_BOUNDS unless set.")
      .def("set_input", &ISliceLayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside,
           "Replaces input 0, or gives as a tensor 1 the start, 2 the shape, 3 the stride, 4 the fill value, 5 the "
           "axes.")
      .def_prop_rw("axes", &ISliceLayer::getAxes, &ISliceLayer::setAxes, kInside,
                   "The dimensions that start, shape and stride are of; all unless set.");
  nb::class_<IShapeLayer, ILayer>(m, "IShapeLayer",
                                  "The shape of its input: a tensor of one dimension and type INT64.");
  nb::class_<ITopKLayer, ILayer>(m, "ITopKLayer",
                                 "The k largest or smallest elements along one dimension. Output 0 are the elements, "
                                 "sorted, output 1 their indices.")
      .def_prop_rw("op", &ITopKLayer::getOperation, &ITopKLayer::setOperation, kInside,
                   "Whether the largest or the smallest ones are wanted.")
      .def_prop_rw("k", &ITopKLayer::getK, &ITopKLayer::setK, kInside,
                   "How many; at most 3840. -1 where input 1 gives it.")
      .def_prop_rw("axes", &ITopKLayer::getReduceAxes, &ITopKLayer::setReduceAxes, kInside,
                   "One bit: bit i stands for dimension i.")
      .def("set_input", &ITopKLayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside,
           "Replaces input 0, or gives k as input 1, a shape tensor without dimensions.")
      .def_prop_rw("indices_type", &ITopKLayer::getIndicesType, &ITopKLayer::setIndicesType, kInside,
                   "INT32, which it is unless set, or INT64.");
  nb::class_<IMatrixMultiplyLayer, ILayer>(
      m, "IMatrixMultiplyLayer",
      "The product of two batches of matrices or vectors; leading dimensions are equal or 1.")
      .def_prop_rw(
          "op0", [](const IMatrixMultiplyLayer& self) { return self.getOperation(0); },
          [](IMatrixMultiplyLayer& self, MatrixOperation op) { self.setOperation(0, op); },
          "How input 0 is read: as it is, transposed, or as vectors.")
      .def_prop_rw(
          "op1", [](const IMatrixMultiplyLayer& self) { return self.getOperation(1); },
          [](IMatrixMultiplyLayer& self, MatrixOperation op) { self.setOperation(1, op); },
          "How input 1 is read: as it is, transposed, or as vectors.");
  nb::class_<IRaggedSoftMaxLayer, ILayer>(
      m, "IRaggedSoftMaxLayer",
      "Soft-max over the first entries of each row of a tensor [Z, S]; input 1 says how many. The others become 0.");
  nb::class_<IIdentityLayer, ILayer>(m, "IIdentityLayer",
                                     "Its input, or a conversion of it where its output has another type.");
  nb::class_<ICastLayer, ILayer>(m, "ICastLayer", "Converts elements to another type.")
      .def_prop_rw("to_type", &ICastLayer::getToType, &ICastLayer::setToType, kInside, "The type of the output.");
  nb::class_<IConstantLayer, ILayer>(m, "IConstantLayer", "Values that are part of the network.")
      .def_prop_rw("weights", &IConstantLayer::getWeights, &IConstantLayer::setWeights, kept(),
                   "The values. The layer keeps the array.")
      .def_prop_rw("shape", &IConstantLayer::getDimensions, &IConstantLayer::setDimensions, kInside,
                   "The shape, of as many elements as there are values.");
}

void bind_common_layers(nb::module_& m) {
  bind_base_layers(m);
  bind_convolution_layers(m);
  bind_scale_layers(m);
  bind_elementwise_layers(m);
  bind_shape_layers(m);
}

}  // namespace lathe::python
