// SPDX-License-Identifier: Apache-2.0
#include "bind.h"
#include "layer_types.h"

using namespace nvinfer1;

namespace lathe::python {

static void bind_base_layers(nb::module_& m) {
  nb::class_<ITensor>(m, "ITensor")
      .def_prop_rw("name", &ITensor::getName, &ITensor::setName, kInside)
      .def_prop_rw("shape", &ITensor::getDimensions, &ITensor::setDimensions, kInside)
      .def_prop_ro("dtype", &ITensor::getType, kInside)
      .def_prop_rw("broadcast_across_batch", &ITensor::getBroadcastAcrossBatch, &ITensor::setBroadcastAcrossBatch,
                   kInside)
      .def_prop_rw("location", &ITensor::getLocation, &ITensor::setLocation, kInside)
      .def_prop_rw("allowed_formats", &ITensor::getAllowedFormats, &ITensor::setAllowedFormats, kInside,
                   "Bit i stands for TensorFormat i.")
      .def_prop_ro("is_network_input", &ITensor::isNetworkInput, kInside)
      .def_prop_ro("is_network_output", &ITensor::isNetworkOutput, kInside)
      .def_prop_ro("is_shape_tensor", &ITensor::isShapeTensor, kInside)
      .def_prop_ro("is_execution_tensor", &ITensor::isExecutionTensor, kInside)
      .def("set_dimension_name", &ITensor::setDimensionName, nb::arg("index"), nb::arg("name"), kInside,
           "Names dimension index; inputs whose dimensions have one name have one size.")
      .def("get_dimension_name", &ITensor::getDimensionName, nb::arg("index"), kInside);
  nb::class_<ILayer>(m, "ILayer")
      .def_prop_rw("name", &ILayer::getName, &ILayer::setName, kInside)
      .def_prop_rw("metadata", &ILayer::getMetadata, &ILayer::setMetadata, kInside)
      .def_prop_rw("num_ranks", &ILayer::getNbRanks, &ILayer::setNbRanks, kInside)
      .def_prop_ro("type", &ILayer::getType, kInside)
      .def_prop_ro("num_inputs", &ILayer::getNbInputs, kInside)
      .def_prop_ro("num_outputs", &ILayer::getNbOutputs, kInside)
      .def("set_input", &ILayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside)
      .def("get_input", &ILayer::getInput, nb::arg("index"), kInside)
      .def("get_output", &ILayer::getOutput, nb::arg("index"), kInside)
      .def("get_output_type", &ILayer::getOutputType, nb::arg("index"), kInside);
  nb::class_<ILoopBoundaryLayer, ILayer>(m, "ILoopBoundaryLayer")
      .def_prop_ro("loop", &ILoopBoundaryLayer::getLoop, kInside);
  nb::class_<IIfConditionalBoundaryLayer, ILayer>(m, "IIfConditionalBoundaryLayer")
      .def_prop_ro("conditional", &IIfConditionalBoundaryLayer::getConditional, kInside);
  nb::class_<IAttentionBoundaryLayer, ILayer>(m, "IAttentionBoundaryLayer")
      .def_prop_ro("attention", &IAttentionBoundaryLayer::getAttention, kInside);
}

static void bind_convolution_layers(nb::module_& m) {
  nb::class_<IConvolutionLayer, ILayer>(m, "IConvolutionLayer")
      .def_prop_rw("kernel", &IConvolutionLayer::getKernelWeights, &IConvolutionLayer::setKernelWeights, kept())
      .def_prop_rw("bias", &IConvolutionLayer::getBiasWeights, &IConvolutionLayer::setBiasWeights, kept())
      .def_prop_rw("num_output_maps", &IConvolutionLayer::getNbOutputMaps, &IConvolutionLayer::setNbOutputMaps, kInside)
      .def_prop_rw("pre_padding", &IConvolutionLayer::getPrePadding, &IConvolutionLayer::setPrePadding, kInside)
      .def_prop_rw("post_padding", &IConvolutionLayer::getPostPadding, &IConvolutionLayer::setPostPadding, kInside)
      .def_prop_rw("padding_mode", &IConvolutionLayer::getPaddingMode, &IConvolutionLayer::setPaddingMode, kInside)
      .def_prop_rw("num_groups", &IConvolutionLayer::getNbGroups, &IConvolutionLayer::setNbGroups, kInside)
      .def_prop_rw("kernel_size_nd", &IConvolutionLayer::getKernelSizeNd, &IConvolutionLayer::setKernelSizeNd, kInside)
      .def_prop_rw("stride_nd", &IConvolutionLayer::getStrideNd, &IConvolutionLayer::setStrideNd, kInside)
      .def_prop_rw("padding_nd", &IConvolutionLayer::getPaddingNd, &IConvolutionLayer::setPaddingNd, kInside)
      .def_prop_rw("dilation_nd", &IConvolutionLayer::getDilationNd, &IConvolutionLayer::setDilationNd, kInside);
  nb::class_<IActivationLayer, ILayer>(m, "IActivationLayer")
      .def_prop_rw("type", &IActivationLayer::getActivationType, &IActivationLayer::setActivationType, kInside)
      .def_prop_rw("alpha", &IActivationLayer::getAlpha, &IActivationLayer::setAlpha, kInside)
      .def_prop_rw("beta", &IActivationLayer::getBeta, &IActivationLayer::setBeta, kInside);
  nb::class_<NetworkActivationLayer, IActivationLayer>(m, "_NetworkActivationLayer")
      .def_prop_ro("type", [](const ILayer& self) { return self.getType(); });
  nb::class_<IPoolingLayer, ILayer>(m, "IPoolingLayer")
      .def_prop_rw("type", &IPoolingLayer::getPoolingType, &IPoolingLayer::setPoolingType, kInside)
      .def_prop_rw("pre_padding", &IPoolingLayer::getPrePadding, &IPoolingLayer::setPrePadding, kInside)
      .def_prop_rw("post_padding", &IPoolingLayer::getPostPadding, &IPoolingLayer::setPostPadding, kInside)
      .def_prop_rw("padding_mode", &IPoolingLayer::getPaddingMode, &IPoolingLayer::setPaddingMode, kInside)
      .def_prop_rw("blend_factor", &IPoolingLayer::getBlendFactor, &IPoolingLayer::setBlendFactor, kInside)
      .def_prop_rw("average_count_excludes_padding", &IPoolingLayer::getAverageCountExcludesPadding,
                   &IPoolingLayer::setAverageCountExcludesPadding, kInside)
      .def_prop_rw("window_size_nd", &IPoolingLayer::getWindowSizeNd, &IPoolingLayer::setWindowSizeNd, kInside)
      .def_prop_rw("stride_nd", &IPoolingLayer::getStrideNd, &IPoolingLayer::setStrideNd, kInside)
      .def_prop_rw("padding_nd", &IPoolingLayer::getPaddingNd, &IPoolingLayer::setPaddingNd, kInside);
  nb::class_<NetworkPoolingLayer, IPoolingLayer>(m, "_NetworkPoolingLayer").def_prop_ro("type", [](const ILayer& self) {
    return self.getType();
  });
  nb::class_<ILRNLayer, ILayer>(m, "ILRNLayer")
      .def_prop_rw("window_size", &ILRNLayer::getWindowSize, &ILRNLayer::setWindowSize, kInside)
      .def_prop_rw("alpha", &ILRNLayer::getAlpha, &ILRNLayer::setAlpha, kInside)
      .def_prop_rw("beta", &ILRNLayer::getBeta, &ILRNLayer::setBeta, kInside)
      .def_prop_rw("k", &ILRNLayer::getK, &ILRNLayer::setK, kInside);
  nb::class_<IScaleLayer, ILayer>(m, "IScaleLayer")
      .def_prop_rw("shift", &IScaleLayer::getShift, &IScaleLayer::setShift, kept())
      .def_prop_rw("scale", &IScaleLayer::getScale, &IScaleLayer::setScale, kept())
      .def_prop_rw("power", &IScaleLayer::getPower, &IScaleLayer::setPower, kept())
      .def_prop_rw("mode", &IScaleLayer::getMode, &IScaleLayer::setMode, kInside)
      .def_prop_rw("channel_axis", &IScaleLayer::getChannelAxis, &IScaleLayer::setChannelAxis, kInside);
  nb::class_<IQuantizeLayer, ILayer>(m, "IQuantizeLayer")
      .def_prop_rw("axis", &IQuantizeLayer::getAxis, &IQuantizeLayer::setAxis, kInside)
      .def_prop_rw("block_shape", &IQuantizeLayer::getBlockShape, &IQuantizeLayer::setBlockShape, kInside)
      .def_prop_rw("to_type", &IQuantizeLayer::getToType, &IQuantizeLayer::setToType, kInside);
  nb::class_<IDequantizeLayer, ILayer>(m, "IDequantizeLayer")
      .def_prop_rw("axis", &IDequantizeLayer::getAxis, &IDequantizeLayer::setAxis, kInside)
      .def_prop_rw("block_shape", &IDequantizeLayer::getBlockShape, &IDequantizeLayer::setBlockShape, kInside)
      .def_prop_rw("to_type", &IDequantizeLayer::getToType, &IDequantizeLayer::setToType, kInside);
}

static void bind_elementwise_layers(nb::module_& m) {
  nb::class_<IDynamicQuantizeLayer, ILayer>(m, "IDynamicQuantizeLayer")
      .def_prop_rw("axis", &IDynamicQuantizeLayer::getAxis, &IDynamicQuantizeLayer::setAxis, kInside)
      .def_prop_rw("block_size", &IDynamicQuantizeLayer::getBlockSize, &IDynamicQuantizeLayer::setBlockSize, kInside)
      .def_prop_rw("block_shape", &IDynamicQuantizeLayer::getBlockShape, &IDynamicQuantizeLayer::setBlockShape, kInside)
      .def_prop_rw("to_type", &IDynamicQuantizeLayer::getToType, &IDynamicQuantizeLayer::setToType, kInside)
      .def_prop_rw("scale_type", &IDynamicQuantizeLayer::getScaleType, &IDynamicQuantizeLayer::setScaleType, kInside);
  nb::class_<ISoftMaxLayer, ILayer>(m, "ISoftMaxLayer")
      .def_prop_rw("axes", &ISoftMaxLayer::getAxes, &ISoftMaxLayer::setAxes, kInside);
  nb::class_<IConcatenationLayer, ILayer>(m, "IConcatenationLayer")
      .def_prop_rw("axis", &IConcatenationLayer::getAxis, &IConcatenationLayer::setAxis, kInside);
  nb::class_<IDeconvolutionLayer, ILayer>(m, "IDeconvolutionLayer")
      .def_prop_rw("kernel", &IDeconvolutionLayer::getKernelWeights, &IDeconvolutionLayer::setKernelWeights, kept())
      .def_prop_rw("bias", &IDeconvolutionLayer::getBiasWeights, &IDeconvolutionLayer::setBiasWeights, kept())
      .def_prop_rw("num_output_maps", &IDeconvolutionLayer::getNbOutputMaps, &IDeconvolutionLayer::setNbOutputMaps,
                   kInside)
      .def_prop_rw("pre_padding", &IDeconvolutionLayer::getPrePadding, &IDeconvolutionLayer::setPrePadding, kInside)
      .def_prop_rw("post_padding", &IDeconvolutionLayer::getPostPadding, &IDeconvolutionLayer::setPostPadding, kInside)
      .def_prop_rw("padding_mode", &IDeconvolutionLayer::getPaddingMode, &IDeconvolutionLayer::setPaddingMode, kInside)
      .def_prop_rw("num_groups", &IDeconvolutionLayer::getNbGroups, &IDeconvolutionLayer::setNbGroups, kInside)
      .def_prop_rw("kernel_size_nd", &IDeconvolutionLayer::getKernelSizeNd, &IDeconvolutionLayer::setKernelSizeNd,
                   kInside)
      .def_prop_rw("stride_nd", &IDeconvolutionLayer::getStrideNd, &IDeconvolutionLayer::setStrideNd, kInside)
      .def_prop_rw("padding_nd", &IDeconvolutionLayer::getPaddingNd, &IDeconvolutionLayer::setPaddingNd, kInside)
      .def_prop_rw("dilation_nd", &IDeconvolutionLayer::getDilationNd, &IDeconvolutionLayer::setDilationNd, kInside);
  nb::class_<IElementWiseLayer, ILayer>(m, "IElementWiseLayer")
      .def_prop_rw("op", &IElementWiseLayer::getOperation, &IElementWiseLayer::setOperation, kInside);
  nb::class_<IScatterLayer, ILayer>(m, "IScatterLayer")
      .def_prop_rw("axis", &IScatterLayer::getAxis, &IScatterLayer::setAxis, kInside)
      .def_prop_rw("mode", &IScatterLayer::getMode, &IScatterLayer::setMode, kInside);
  nb::class_<IGatherLayer, ILayer>(m, "IGatherLayer")
      .def_prop_rw("axis", &IGatherLayer::getGatherAxis, &IGatherLayer::setGatherAxis, kInside)
      .def_prop_rw("num_elementwise_dims", &IGatherLayer::getNbElementWiseDims, &IGatherLayer::setNbElementWiseDims,
                   kInside)
      .def_prop_rw("mode", &IGatherLayer::getMode, &IGatherLayer::setMode, kInside);
  nb::class_<IUnaryLayer, ILayer>(m, "IUnaryLayer")
      .def_prop_rw("op", &IUnaryLayer::getOperation, &IUnaryLayer::setOperation, kInside);
  nb::class_<IReduceLayer, ILayer>(m, "IReduceLayer")
      .def_prop_rw("op", &IReduceLayer::getOperation, &IReduceLayer::setOperation, kInside)
      .def_prop_rw("axes", &IReduceLayer::getReduceAxes, &IReduceLayer::setReduceAxes, kInside)
      .def_prop_rw("keep_dims", &IReduceLayer::getKeepDimensions, &IReduceLayer::setKeepDimensions, kInside);
  nb::class_<IPaddingLayer, ILayer>(m, "IPaddingLayer")
      .def_prop_rw("pre_padding_nd", &IPaddingLayer::getPrePaddingNd, &IPaddingLayer::setPrePaddingNd, kInside)
      .def_prop_rw("post_padding_nd", &IPaddingLayer::getPostPaddingNd, &IPaddingLayer::setPostPaddingNd, kInside);
}

static void bind_shape_layers(nb::module_& m) {
  nb::class_<IShuffleLayer, ILayer>(m, "IShuffleLayer")
      .def_prop_rw("first_transpose", &IShuffleLayer::getFirstTranspose, &IShuffleLayer::setFirstTranspose, kInside)
      .def_prop_rw("reshape_dims", &IShuffleLayer::getReshapeDimensions, &IShuffleLayer::setReshapeDimensions, kInside)
      .def_prop_rw("second_transpose", &IShuffleLayer::getSecondTranspose, &IShuffleLayer::setSecondTranspose, kInside)
      .def_prop_rw("zero_is_placeholder", &IShuffleLayer::getZeroIsPlaceholder, &IShuffleLayer::setZeroIsPlaceholder,
                   kInside)
      .def("set_input", &IShuffleLayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside);
  nb::class_<ISliceLayer, ILayer>(m, "ISliceLayer")
      .def_prop_rw("start", &ISliceLayer::getStart, &ISliceLayer::setStart, kInside)
      .def_prop_rw("shape", &ISliceLayer::getSize, &ISliceLayer::setSize, kInside)
      .def_prop_rw("stride", &ISliceLayer::getStride, &ISliceLayer::setStride, kInside)
      .def_prop_rw("mode", &ISliceLayer::getMode, &ISliceLayer::setMode, kInside)
      .def("set_input", &ISliceLayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside)
      .def_prop_rw("axes", &ISliceLayer::getAxes, &ISliceLayer::setAxes, kInside);
  nb::class_<IShapeLayer, ILayer>(m, "IShapeLayer");
  nb::class_<ITopKLayer, ILayer>(m, "ITopKLayer")
      .def_prop_rw("op", &ITopKLayer::getOperation, &ITopKLayer::setOperation, kInside)
      .def_prop_rw("k", &ITopKLayer::getK, &ITopKLayer::setK, kInside)
      .def_prop_rw("axes", &ITopKLayer::getReduceAxes, &ITopKLayer::setReduceAxes, kInside)
      .def("set_input", &ITopKLayer::setInput, nb::arg("index"), nb::arg("tensor"), kInside)
      .def_prop_rw("indices_type", &ITopKLayer::getIndicesType, &ITopKLayer::setIndicesType, kInside);
  nb::class_<IMatrixMultiplyLayer, ILayer>(m, "IMatrixMultiplyLayer")
      .def_prop_rw(
          "op0", [](const IMatrixMultiplyLayer& self) { return self.getOperation(0); },
          [](IMatrixMultiplyLayer& self, MatrixOperation op) { self.setOperation(0, op); })
      .def_prop_rw(
          "op1", [](const IMatrixMultiplyLayer& self) { return self.getOperation(1); },
          [](IMatrixMultiplyLayer& self, MatrixOperation op) { self.setOperation(1, op); });
  nb::class_<IRaggedSoftMaxLayer, ILayer>(m, "IRaggedSoftMaxLayer");
  nb::class_<IIdentityLayer, ILayer>(m, "IIdentityLayer");
  nb::class_<ICastLayer, ILayer>(m, "ICastLayer")
      .def_prop_rw("to_type", &ICastLayer::getToType, &ICastLayer::setToType, kInside);
  nb::class_<IConstantLayer, ILayer>(m, "IConstantLayer")
      .def_prop_rw("weights", &IConstantLayer::getWeights, &IConstantLayer::setWeights, kept())
      .def_prop_rw("shape", &IConstantLayer::getDimensions, &IConstantLayer::setDimensions, kInside);
}

void bind_common_layers(nb::module_& m) {
  bind_base_layers(m);
  bind_convolution_layers(m);
  bind_elementwise_layers(m);
  bind_shape_layers(m);
}

}  // namespace lathe::python
