// SPDX-License-Identifier: Apache-2.0
// Enumerations of the build side. Include NvInfer.h instead.
#ifndef NVINFER_NETWORK_ENUMS_H
#define NVINFER_NETWORK_ENUMS_H

#include "NvInferRuntimeBase.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {

// Tells which class a layer is.
enum class LayerType : int32_t {
  kCONVOLUTION = 0,
  kCAST = 1,
  kACTIVATION = 2,
  kPOOLING = 3,
  kLRN = 4,
  kSCALE = 5,
  kSOFTMAX = 6,
  kDECONVOLUTION = 7,
  kCONCATENATION = 8,
  kELEMENTWISE = 9,
  kPLUGIN = 10,
  kUNARY = 11,
  kPADDING = 12,
  kSHUFFLE = 13,
  kREDUCE = 14,
  kTOPK = 15,
  kGATHER = 16,
  kMATRIX_MULTIPLY = 17,
  kRAGGED_SOFTMAX = 18,
  kCONSTANT = 19,
  kIDENTITY = 20,
  kPLUGIN_V2 = 21,
  kSLICE = 22,
  kSHAPE = 23,
  kPARAMETRIC_RELU = 24,
  kRESIZE = 25,
  kTRIP_LIMIT = 26,
  kRECURRENCE = 27,
  kITERATOR = 28,
  kLOOP_OUTPUT = 29,
  kSELECT = 30,
  kFILL = 31,
  kQUANTIZE = 32,
  kDEQUANTIZE = 33,
  kCONDITION = 34,
  kCONDITIONAL_INPUT = 35,
  kCONDITIONAL_OUTPUT = 36,
  kSCATTER = 37,
  kEINSUM = 38,
  kASSERTION = 39,
  kONE_HOT = 40,
  kNON_ZERO = 41,
  kGRID_SAMPLE = 42,
  kNMS = 43,
  kREVERSE_SEQUENCE = 44,
  kNORMALIZATION = 45,
  kPLUGIN_V3 = 46,
  kSQUEEZE = 47,
  kUNSQUEEZE = 48,
  kCUMULATIVE = 49,
  kDYNAMIC_QUANTIZE = 50,
  kATTENTION_INPUT = 51,
  kATTENTION_OUTPUT = 52,
  kROTARY_EMBEDDING = 53,
  kKVCACHE_UPDATE = 54,
  kMOE = 55,
  kDIST_COLLECTIVE = 56,
};
template <>
struct impl::EnumMaxImpl<LayerType> {
  static constexpr int32_t kVALUE = 57;
};

enum class ActivationType : int32_t {
  kRELU = 0,
  kSIGMOID = 1,
  kTANH = 2,
  kLEAKY_RELU = 3,         // x >= 0 ? x : alpha * x
  kELU = 4,                // x >= 0 ? x : alpha * (exp(x) - 1)
  kSELU = 5,               // beta * (x > 0 ? x : alpha * (exp(x) - 1))
  kSOFTSIGN = 6,           // x / (1 + |x|)
  kSOFTPLUS = 7,           // alpha * log(exp(beta * x) + 1)
  kCLIP = 8,               // max(alpha, min(beta, x))
  kHARD_SIGMOID = 9,       // max(0, min(1, alpha * x + beta))
  kSCALED_TANH = 10,       // alpha * tanh(beta * x)
  kTHRESHOLDED_RELU = 11,  // x > alpha ? x : 0
  kGELU_ERF = 12,
  kGELU_TANH = 13,
};
template <>
struct impl::EnumMaxImpl<ActivationType> {
  static constexpr int32_t kVALUE = 14;
};

// How the output size of convolution and pooling follows from padding p, window w, stride s.
enum class PaddingMode : int32_t {
  kEXPLICIT_ROUND_DOWN = 0,  // floor((in + p - w) / s) + 1
  kEXPLICIT_ROUND_UP = 1,    // ceil((in + p - w) / s) + 1
  kSAME_UPPER = 2,           // ceil(in / s); odd padding goes to the end
  kSAME_LOWER = 3,           // ceil(in / s); odd padding goes to the start
};
template <>
struct impl::EnumMaxImpl<PaddingMode> {
  static constexpr int32_t kVALUE = 4;
};

enum class PoolingType : int32_t {
  kMAX = 0,
  kAVERAGE = 1,
  kMAX_AVERAGE_BLEND = 2,
};
template <>
struct impl::EnumMaxImpl<PoolingType> {
  static constexpr int32_t kVALUE = 3;
};

enum class ScaleMode : int32_t {
  kUNIFORM = 0,      // one value for all
  kCHANNEL = 1,      // one value per channel
  kELEMENTWISE = 2,  // one value per element
};
template <>
struct impl::EnumMaxImpl<ScaleMode> {
  static constexpr int32_t kVALUE = 3;
};

enum class ElementWiseOperation : int32_t {
  kSUM = 0,
  kPROD = 1,
  kMAX = 2,
  kMIN = 3,
  kSUB = 4,
  kDIV = 5,
  kPOW = 6,
  kFLOOR_DIV = 7,
  kAND = 8,
  kOR = 9,
  kXOR = 10,
  kEQUAL = 11,
  kGREATER = 12,
  kLESS = 13,
};
template <>
struct impl::EnumMaxImpl<ElementWiseOperation> {
  static constexpr int32_t kVALUE = 14;
};

enum class GatherMode : int32_t {
  kDEFAULT = 0,  // whole slices
  kELEMENT = 1,  // one element per index, as ONNX GatherElements
  kND = 2,       // index tuples, as ONNX GatherND
};
template <>
struct impl::EnumMaxImpl<GatherMode> {
  static constexpr int32_t kVALUE = 3;
};

enum class UnaryOperation : int32_t {
  kEXP = 0,
  kLOG = 1,
  kSQRT = 2,
  kRECIP = 3,
  kABS = 4,
  kNEG = 5,
  kSIN = 6,
  kCOS = 7,
  kTAN = 8,
  kSINH = 9,
  kCOSH = 10,
  kASIN = 11,
  kACOS = 12,
  kATAN = 13,
  kASINH = 14,
  kACOSH = 15,
  kATANH = 16,
  kCEIL = 17,
  kFLOOR = 18,
  kERF = 19,
  kNOT = 20,  // kBOOL to kBOOL
  kSIGN = 21,
  kROUND = 22,  // half to even
  kISINF = 23,  // gives kBOOL
  kISNAN = 24,  // gives kBOOL
};
template <>
struct impl::EnumMaxImpl<UnaryOperation> {
  static constexpr int32_t kVALUE = 25;
};

enum class ReduceOperation : int32_t {
  kSUM = 0,
  kPROD = 1,
  kMAX = 2,
  kMIN = 3,
  kAVG = 4,
  kNONE = 5,  // for collectives that do not reduce
};
template <>
struct impl::EnumMaxImpl<ReduceOperation> {
  static constexpr int32_t kVALUE = 6;
};

#if NV_TENSORRT_MAJOR >= 11
enum class CollectiveOperation : int32_t {
  kALL_REDUCE = 0,
  kALL_GATHER = 1,
  kBROADCAST = 2,
  kREDUCE = 3,
  kREDUCE_SCATTER = 4,
  kALL_TO_ALL = 5,
  kGATHER = 6,
  kSCATTER = 7,
};
template <>
struct impl::EnumMaxImpl<CollectiveOperation> {
  static constexpr int32_t kVALUE = 8;
};
#endif

// What reading outside a tensor gives.
enum class SampleMode : int32_t {
  kSTRICT_BOUNDS = 0,  // it is an error
  kWRAP = 1,           // coordinates wrap around
  kCLAMP = 2,          // the nearest element
  kFILL = 3,           // a fill value, 0 by default
  kREFLECT = 4,        // the mirror image
};
template <>
struct impl::EnumMaxImpl<SampleMode> {
  static constexpr int32_t kVALUE = 5;
};

enum class TopKOperation : int32_t {
  kMAX = 0,
  kMIN = 1,
};
template <>
struct impl::EnumMaxImpl<TopKOperation> {
  static constexpr int32_t kVALUE = 2;
};

enum class MatrixOperation : int32_t {
  kNONE = 0,       // a matrix as it is
  kTRANSPOSE = 1,  // its transpose
  kVECTOR = 2,     // the last dimension is a vector
};
template <>
struct impl::EnumMaxImpl<MatrixOperation> {
  static constexpr int32_t kVALUE = 3;
};

enum class InterpolationMode : int32_t {
  kNEAREST = 0,
  kLINEAR = 1,
  kCUBIC = 2,
};
template <>
struct impl::EnumMaxImpl<InterpolationMode> {
  static constexpr int32_t kVALUE = 3;
};

// How an output position maps to the input.
enum class ResizeCoordinateTransformation : int32_t {
  kALIGN_CORNERS = 0,
  kASYMMETRIC = 1,
  kHALF_PIXEL = 2,
};
template <>
struct impl::EnumMaxImpl<ResizeCoordinateTransformation> {
  static constexpr int32_t kVALUE = 3;
};

// Which input pixel an output of size 1 takes.
enum class ResizeSelector : int32_t {
  kFORMULA = 0,
  kUPPER = 1,
};
template <>
struct impl::EnumMaxImpl<ResizeSelector> {
  static constexpr int32_t kVALUE = 2;
};

enum class ResizeRoundMode : int32_t {
  kHALF_UP = 0,
  kHALF_DOWN = 1,
  kFLOOR = 2,
  kCEIL = 3,
};
template <>
struct impl::EnumMaxImpl<ResizeRoundMode> {
  static constexpr int32_t kVALUE = 4;
};

enum class LoopOutput : int32_t {
  kLAST_VALUE = 0,   // the value after the last iteration
  kCONCATENATE = 1,  // of all iterations, in order
  kREVERSE = 2,      // of all iterations, last first
};
template <>
struct impl::EnumMaxImpl<LoopOutput> {
  static constexpr int32_t kVALUE = 3;
};

enum class TripLimit : int32_t {
  kCOUNT = 0,
  kWHILE = 1,
};
template <>
struct impl::EnumMaxImpl<TripLimit> {
  static constexpr int32_t kVALUE = 2;
};

enum class FillOperation : int32_t {
  kLINSPACE = 0,
  kRANDOM_UNIFORM = 1,
  kRANDOM_NORMAL = 2,
};
template <>
struct impl::EnumMaxImpl<FillOperation> {
  static constexpr int32_t kVALUE = 3;
};

enum class ScatterMode : int32_t {
  kELEMENT = 0,  // as ONNX ScatterElements
  kND = 1,       // as ONNX ScatterND
};
template <>
struct impl::EnumMaxImpl<ScatterMode> {
  static constexpr int32_t kVALUE = 2;
};

enum class BoundingBoxFormat : int32_t {
  kCORNER_PAIRS = 0,  // (x1, y1, x2, y2)
  kCENTER_SIZES = 1,  // (x centre, y centre, width, height)
};
template <>
struct impl::EnumMaxImpl<BoundingBoxFormat> {
  static constexpr int32_t kVALUE = 2;
};

enum class CumulativeOperation : int32_t {
  kSUM = 0,
};
template <>
struct impl::EnumMaxImpl<CumulativeOperation> {
  static constexpr int32_t kVALUE = 1;
};

enum class AttentionNormalizationOp : int32_t {
  kNONE = 0,
  kSOFTMAX = 1,
};
template <>
struct impl::EnumMaxImpl<AttentionNormalizationOp> {
  static constexpr int32_t kVALUE = 2;
};

enum class CausalMaskKind : int32_t {
  kNONE = 0,
  kUPPER_LEFT = 1,   // query i sees keys 0..i
  kLOWER_RIGHT = 2,  // the last query sees all keys
};
template <>
struct impl::EnumMaxImpl<CausalMaskKind> {
  static constexpr int32_t kVALUE = 3;
};

enum class AttentionIOForm : int32_t {
  kPADDED_BHND = 0,  // [batch, heads, sequence, depth]
  kPACKED_NHD = 1,   // [tokens, heads, depth], sequences end to end
};
template <>
struct impl::EnumMaxImpl<AttentionIOForm> {
  static constexpr int32_t kVALUE = 2;
};

enum class KVCacheMode : int32_t {
  kLINEAR = 0,
};
template <>
struct impl::EnumMaxImpl<KVCacheMode> {
  static constexpr int32_t kVALUE = 1;
};

enum class MoEActType : int32_t {
  kNONE = 0,
  kSILU = 1,
};
template <>
struct impl::EnumMaxImpl<MoEActType> {
  static constexpr int32_t kVALUE = 2;
};

enum class RuntimePlatform : int32_t {
  kSAME_AS_BUILD = 0,
  kWINDOWS_AMD64 = 1,
};
template <>
struct impl::EnumMaxImpl<RuntimePlatform> {
  static constexpr int32_t kVALUE = 2;
};

#if NV_TENSORRT_MAJOR >= 11
enum class BuilderFlag : int32_t {
  kDEBUG = 2,         // check for errors after every layer
  kGPU_FALLBACK = 3,  // layers that a DLA refuses run on the GPU
  kREFIT = 4,         // weights can be replaced
  kDISABLE_TIMING_CACHE = 5,
  kTF32 = 6,            // float matrix products may use TF32; on by default
  kSPARSE_WEIGHTS = 7,  // may use 2:4 sparsity
  kSAFETY_SCOPE TRT_DEPRECATED_ENUM = 8,
  kDIRECT_IO TRT_DEPRECATED_ENUM = 11,
  kVERSION_COMPATIBLE = 12,
  kEXCLUDE_LEAN_RUNTIME = 13,
  kERROR_ON_TIMING_CACHE_MISS = 15,  // fail rather than measure
  kDISABLE_COMPILATION_CACHE = 17,
  kSTRIP_PLAN = 18,        // leave refittable weights out of the plan
  kREFIT_IDENTICAL = 19,   // as kREFIT, for equal values only
  kWEIGHT_STREAMING = 20,  // weights may stay in host memory
  kREFIT_INDIVIDUAL = 22,  // only weights marked in the network
  kSTRICT_NANS = 23,       // keep NaN where a shortcut would lose it
  kMONITOR_MEMORY = 24,
  kEDITABLE_TIMING_CACHE = 26,
  kDISTRIBUTIVE_INDEPENDENCE = 27,  // results do not depend on the batch size
};
template <>
struct impl::EnumMaxImpl<BuilderFlag> {
  static constexpr int32_t kVALUE = 28;
};
#endif
using BuilderFlags = uint32_t;

enum class MemoryPoolType : int32_t {
  kWORKSPACE = 0,  // scratch memory of a layer
  kDLA_MANAGED_SRAM = 1,
  kDLA_LOCAL_DRAM = 2,
  kDLA_GLOBAL_DRAM = 3,
  kTACTIC_DRAM = 4,           // device memory while timing
  kTACTIC_SHARED_MEMORY = 5,  // shared memory of a kernel
};
template <>
struct impl::EnumMaxImpl<MemoryPoolType> {
  static constexpr int32_t kVALUE = 6;
};

#if NV_TENSORRT_MAJOR >= 11
enum class PreviewFeature : int32_t {
  kALIASED_PLUGIN_IO_10_03 = 0,
  kRUNTIME_ACTIVATION_RESIZE_10_10 = 1,
};
template <>
struct impl::EnumMaxImpl<PreviewFeature> {
  static constexpr int32_t kVALUE = 2;
};
#endif

// On which other devices a plan may run.
enum class HardwareCompatibilityLevel : int32_t {
  kNONE = 0,                     // only on the same model
  kAMPERE_PLUS = 1,              // on sm_80 and newer
  kSAME_COMPUTE_CAPABILITY = 2,  // on the same compute capability
};
template <>
struct impl::EnumMaxImpl<HardwareCompatibilityLevel> {
  static constexpr int32_t kVALUE = 3;
};

enum class TilingOptimizationLevel : int32_t {
  kNONE = 0,
  kFAST = 1,
  kMODERATE = 2,
  kFULL = 3,
};
template <>
struct impl::EnumMaxImpl<TilingOptimizationLevel> {
  static constexpr int32_t kVALUE = 4;
};

#if NV_TENSORRT_MAJOR >= 11
enum class NetworkDefinitionCreationFlag : int32_t {
  kSTRONGLY_TYPED TRT_DEPRECATED_ENUM = 0,  // ignored: all networks are
  kPREFER_JIT_PYTHON_PLUGINS = 1,
  kPREFER_AOT_PYTHON_PLUGINS = 2,
};
template <>
struct impl::EnumMaxImpl<NetworkDefinitionCreationFlag> {
  static constexpr int32_t kVALUE = 3;
};
#endif
using NetworkDefinitionCreationFlags = uint32_t;

}  // namespace nvinfer1

#if NV_TENSORRT_MAJOR < 11
#include "nvinfer/network_enums_10_16.h"
#endif

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif  // NVINFER_NETWORK_ENUMS_H
