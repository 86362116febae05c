// SPDX-License-Identifier: Apache-2.0
// Quantises ONNX models of floats: docs/quantization.md. Functions report failure with nullptr or false, and
// lastError() and the logger then say what went wrong.
#ifndef LATHE_QUANTIZE_H
#define LATHE_QUANTIZE_H

#include "lathe.h"

namespace lathe {

// A model and what its tensors held over batches of the application's. Layers that multiply a tensor of kFLOAT by
// constant weights, Conv, MatMul and Gemm, can be quantised. One thread at a time; the caller deletes it. The file must
// not change meanwhile.
//
// Options are nullptr or a JSON object:
//   {"method": "entropy",     values that are kept: those that tell most ("entropy"), all ("minmax"), or a percentile
//                             ("percentile") of the magnitudes. Unless given, minmax of f8e4m3fn, which has no entropy
//    "percentile": 99.99,     in (0, 100]
//    "activations": "i8",     or "u8", or "f8e4m3fn" where weights are that: MatMul and Gemm alone, operator set 19
//    "weights": "i8",         or "u8", or "f8e4m3fn" where activations are that
//    "symmetric": true,       activations have the zero point 0, of u8 128; else one that suits their range
//    "perChannel": true,      a scale for each output channel of the weights, rather than one
//    "exclude": ["head*"]}    layers that stay in floats: names or operators, with one * each at most
// Names that are not listed are refused, and so are exclusions that exclude nothing.
class IQuantizer {
 public:
  virtual ~IQuantizer() noexcept = default;
  // Runs the model on a tensor for each of its inputs, on the host. Tensors are read before this returns. Infinities
  // and NaNs in inputs are refused.
  virtual bool addBatch(const NamedTensor* inputs, int32_t nbInputs) noexcept = 0;
  // {"batches", "layers": [{"name", "op", "tensor", "quantized", "why", "low", "high", "scale", "zero_point"}]}: each
  // convolution and matrix product in the order of the model; "why" one stays in floats, or of the tensor that it
  // multiplies the values that are kept. Without batches the last four are null.
  virtual nvinfer1::IHostMemory* layersJson(const char* optionsJson) noexcept = 0;
  // The model with QuantizeLinear and DequantizeLinear around what is quantised; all names of the model stay. The
  // caller deletes it. Fails without batches, and where nothing is to be quantised.
  virtual nvinfer1::IHostMemory* model(const char* optionsJson) noexcept = 0;
};

// `threads` of the host that run batches, 0 = all that this process may use. Errors of the object go to `logger`, which
// must live as long. Fails for models that Lathe cannot import, and those that are quantised.
TENSORRTAPI IQuantizer* createQuantizer(const char* onnxPath, int32_t threads, nvinfer1::ILogger& logger) noexcept;

}  // namespace lathe

#endif  // LATHE_QUANTIZE_H
