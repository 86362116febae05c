// SPDX-License-Identifier: Apache-2.0
#include "bind.h"

using namespace nvinfer1;

namespace lathe::python {

static void bind_enums_1(nb::module_& m) {
  nb::enum_<ILogger::Severity>(m.attr("ILogger"), "Severity", nb::is_arithmetic(), "How grave a message is.")
      .value("INTERNAL_ERROR", ILogger::Severity::kINTERNAL_ERROR)
      .value("ERROR", ILogger::Severity::kERROR)
      .value("WARNING", ILogger::Severity::kWARNING)
      .value("INFO", ILogger::Severity::kINFO)
      .value("VERBOSE", ILogger::Severity::kVERBOSE)
      .export_values();
  nb::enum_<nvinfer1::ErrorCode>(m, "ErrorCodeTRT", nb::is_arithmetic(),
                                 "The kind of an error that an IErrorRecorder is told.")
      .value("SUCCESS", nvinfer1::ErrorCode::kSUCCESS)
      .value("UNSPECIFIED_ERROR", nvinfer1::ErrorCode::kUNSPECIFIED_ERROR)
      .value("INTERNAL_ERROR", nvinfer1::ErrorCode::kINTERNAL_ERROR)
      .value("INVALID_ARGUMENT", nvinfer1::ErrorCode::kINVALID_ARGUMENT)
      .value("INVALID_CONFIG", nvinfer1::ErrorCode::kINVALID_CONFIG)
      .value("FAILED_ALLOCATION", nvinfer1::ErrorCode::kFAILED_ALLOCATION)
      .value("FAILED_INITIALIZATION", nvinfer1::ErrorCode::kFAILED_INITIALIZATION)
      .value("FAILED_EXECUTION", nvinfer1::ErrorCode::kFAILED_EXECUTION)
      .value("FAILED_COMPUTATION", nvinfer1::ErrorCode::kFAILED_COMPUTATION)
      .value("INVALID_STATE", nvinfer1::ErrorCode::kINVALID_STATE)
      .value("UNSUPPORTED_STATE", nvinfer1::ErrorCode::kUNSUPPORTED_STATE);
  nb::enum_<ExecutionContextAllocationStrategy>(m, "ExecutionContextAllocationStrategy", nb::is_arithmetic(),
                                                "When a context gets its scratch memory: for all profiles when it is "
                                                "made, for a profile when that is chosen, or from the program.")
      .value("STATIC", ExecutionContextAllocationStrategy::kSTATIC)
      .value("ON_PROFILE_CHANGE", ExecutionContextAllocationStrategy::kON_PROFILE_CHANGE)
      .value("USER_MANAGED", ExecutionContextAllocationStrategy::kUSER_MANAGED);
  nb::enum_<DynamicShapesKernelSpecializationStrategy>(
      m, "DynamicShapesKernelSpecializationStrategy", nb::is_arithmetic(),
      "What becomes of kernels for open sizes when sizes come that are new: others are compiled in the background, "
      "before the run, or never.")
      .value("LAZY", DynamicShapesKernelSpecializationStrategy::kLAZY)
      .value("EAGER", DynamicShapesKernelSpecializationStrategy::kEAGER)
      .value("NONE", DynamicShapesKernelSpecializationStrategy::kNONE);
  nb::enum_<CudaGraphStrategy>(m, "CudaGraphStrategy", nb::is_arithmetic(),
                               "Whether a context captures its runs as CUDA graphs.")
      .value("DISABLED", CudaGraphStrategy::kDISABLED)
      .value("WHOLE_GRAPH_CAPTURE", CudaGraphStrategy::kWHOLE_GRAPH_CAPTURE);
  nb::enum_<SerializationFlag>(m, "SerializationFlag", nb::is_arithmetic(), "What plans are written with and without.")
      .value("EXCLUDE_WEIGHTS", SerializationFlag::kEXCLUDE_WEIGHTS)
      .value("EXCLUDE_LEAN_RUNTIME", SerializationFlag::kEXCLUDE_LEAN_RUNTIME)
      .value("INCLUDE_REFIT", SerializationFlag::kINCLUDE_REFIT);
  nb::enum_<LayerInformationFormat>(m, "LayerInformationFormat", nb::is_arithmetic(),
                                    "How layers are described: in a line, or as JSON.")
      .value("ONELINE", LayerInformationFormat::kONELINE)
      .value("JSON", LayerInformationFormat::kJSON);
  nb::enum_<EngineCapability>(m, "EngineCapability", nb::is_arithmetic(), "What engines are restricted to.")
      .value("STANDARD", EngineCapability::kSTANDARD)
      .value("SAFETY", EngineCapability::kSAFETY)
      .value("DLA_STANDALONE", EngineCapability::kDLA_STANDALONE);
  nb::enum_<TensorLocation>(m, "TensorLocation", nb::is_arithmetic(), "In whose memory a tensor lies.")
      .value("DEVICE", TensorLocation::kDEVICE)
      .value("HOST", TensorLocation::kHOST);
  nb::enum_<TensorIOMode>(m, "TensorIOMode", nb::is_arithmetic(),
                          "Whether a tensor is an input or an output of an engine.")
      .value("NONE", TensorIOMode::kNONE)
      .value("INPUT", TensorIOMode::kINPUT)
      .value("OUTPUT", TensorIOMode::kOUTPUT);
  nb::enum_<EngineStat>(m, "EngineStat", nb::is_arithmetic(),
                        "What get_engine_stat() counts: bytes of all weights, or of those that a stripped plan lacks.")
      .value("TOTAL_WEIGHTS_SIZE", EngineStat::kTOTAL_WEIGHTS_SIZE)
      .value("STRIPPED_WEIGHTS_SIZE", EngineStat::kSTRIPPED_WEIGHTS_SIZE);
  nb::enum_<AllocatorFlag>(m, "AllocatorFlag", nb::is_arithmetic(),
                           "What is asked of a block of memory: RESIZABLE ones may be passed to reallocate().")
      .value("RESIZABLE", AllocatorFlag::kRESIZABLE);
  nb::enum_<SeekPosition>(m, "SeekPosition", nb::is_arithmetic(),
                          "From where an offset counts: the start, where the reader stands, or the end.")
      .value("SET", SeekPosition::kSET)
      .value("CUR", SeekPosition::kCUR)
      .value("END", SeekPosition::kEND);
}

static void bind_enums_of_builds(nb::module_& m) {
  nb::enum_<BuilderFlag>(m, "BuilderFlag", nb::is_arithmetic(), "What builds may do, and must not.")
      .value("DEBUG", BuilderFlag::kDEBUG)
      .value("GPU_FALLBACK", BuilderFlag::kGPU_FALLBACK)
      .value("REFIT", BuilderFlag::kREFIT)
      .value("DISABLE_TIMING_CACHE", BuilderFlag::kDISABLE_TIMING_CACHE)
      .value("EDITABLE_TIMING_CACHE", BuilderFlag::kEDITABLE_TIMING_CACHE)
      .value("TF32", BuilderFlag::kTF32)
      .value("SPARSE_WEIGHTS", BuilderFlag::kSPARSE_WEIGHTS)
      .value("SAFETY_SCOPE", BuilderFlag::kSAFETY_SCOPE)
      .value("DIRECT_IO", BuilderFlag::kDIRECT_IO)
      .value("VERSION_COMPATIBLE", BuilderFlag::kVERSION_COMPATIBLE)
      .value("EXCLUDE_LEAN_RUNTIME", BuilderFlag::kEXCLUDE_LEAN_RUNTIME)
      .value("ERROR_ON_TIMING_CACHE_MISS", BuilderFlag::kERROR_ON_TIMING_CACHE_MISS)
      .value("DISABLE_COMPILATION_CACHE", BuilderFlag::kDISABLE_COMPILATION_CACHE)
      .value("STRIP_PLAN", BuilderFlag::kSTRIP_PLAN)
      .value("REFIT_IDENTICAL", BuilderFlag::kREFIT_IDENTICAL)
      .value("WEIGHT_STREAMING", BuilderFlag::kWEIGHT_STREAMING)
      .value("REFIT_INDIVIDUAL", BuilderFlag::kREFIT_INDIVIDUAL)
      .value("STRICT_NANS", BuilderFlag::kSTRICT_NANS)
      .value("MONITOR_MEMORY", BuilderFlag::kMONITOR_MEMORY)
      .value("DISTRIBUTIVE_INDEPENDENCE", BuilderFlag::kDISTRIBUTIVE_INDEPENDENCE);
}

static void bind_enums_2(nb::module_& m) {
  nb::enum_<MemoryPoolType>(m, "MemoryPoolType", nb::is_arithmetic(),
                            "Memory that builds and engines take, which IBuilderConfig.set_memory_pool_limit() limits.")
      .value("WORKSPACE", MemoryPoolType::kWORKSPACE)
      .value("DLA_MANAGED_SRAM", MemoryPoolType::kDLA_MANAGED_SRAM)
      .value("DLA_LOCAL_DRAM", MemoryPoolType::kDLA_LOCAL_DRAM)
      .value("DLA_GLOBAL_DRAM", MemoryPoolType::kDLA_GLOBAL_DRAM)
      .value("TACTIC_DRAM", MemoryPoolType::kTACTIC_DRAM)
      .value("TACTIC_SHARED_MEMORY", MemoryPoolType::kTACTIC_SHARED_MEMORY);
  nb::enum_<PreviewFeature>(m, "PreviewFeature", nb::is_arithmetic(), "Features that are on trial in the original.")
      .value("ALIASED_PLUGIN_IO_10_03", PreviewFeature::kALIASED_PLUGIN_IO_10_03)
      .value("RUNTIME_ACTIVATION_RESIZE_10_10", PreviewFeature::kRUNTIME_ACTIVATION_RESIZE_10_10);
  nb::enum_<HardwareCompatibilityLevel>(
      m, "HardwareCompatibilityLevel", nb::is_arithmetic(),
      "On which other GPUs an engine may run: on none, on those from compute capability 8.0, or on those of the same.")
      .value("NONE", HardwareCompatibilityLevel::kNONE)
      .value("AMPERE_PLUS", HardwareCompatibilityLevel::kAMPERE_PLUS)
      .value("SAME_COMPUTE_CAPABILITY", HardwareCompatibilityLevel::kSAME_COMPUTE_CAPABILITY);
  nb::enum_<RuntimePlatform>(m, "RuntimePlatform", nb::is_arithmetic(), "The operating system that an engine is for.")
      .value("SAME_AS_BUILD", RuntimePlatform::kSAME_AS_BUILD)
      .value("WINDOWS_AMD64", RuntimePlatform::kWINDOWS_AMD64);
  nb::enum_<DeviceType>(m, "DeviceType", nb::is_arithmetic(), "What a layer is for; there are no DLA cores.")
      .value("GPU", DeviceType::kGPU)
      .value("DLA", DeviceType::kDLA);
  nb::enum_<TempfileControlFlag>(m, "TempfileControlFlag", nb::is_arithmetic(),
                                 "Which temporary files a runtime may use: in memory, or in a folder.")
      .value("ALLOW_IN_MEMORY_FILES", TempfileControlFlag::kALLOW_IN_MEMORY_FILES)
      .value("ALLOW_TEMPORARY_FILES", TempfileControlFlag::kALLOW_TEMPORARY_FILES);
  nb::enum_<ProfilingVerbosity>(m, "ProfilingVerbosity", nb::is_arithmetic(), "How much an engine tells of its layers.")
      .value("LAYER_NAMES_ONLY", ProfilingVerbosity::kLAYER_NAMES_ONLY)
      .value("DETAILED", ProfilingVerbosity::kDETAILED)
      .value("NONE", ProfilingVerbosity::kNONE);
  nb::enum_<TacticSource>(m, "TacticSource", nb::is_arithmetic(), "Where tactics may come from.")
      .value("EDGE_MASK_CONVOLUTIONS", TacticSource::kEDGE_MASK_CONVOLUTIONS)
      .value("JIT_CONVOLUTIONS", TacticSource::kJIT_CONVOLUTIONS);
  nb::enum_<TilingOptimizationLevel>(m, "TilingOptimizationLevel", nb::is_arithmetic(),
                                     "How long layers are looked at that may share the L2 cache.")
      .value("NONE", TilingOptimizationLevel::kNONE)
      .value("FAST", TilingOptimizationLevel::kFAST)
      .value("MODERATE", TilingOptimizationLevel::kMODERATE)
      .value("FULL", TilingOptimizationLevel::kFULL);
  nb::enum_<NetworkDefinitionCreationFlag>(m, "NetworkDefinitionCreationFlag", nb::is_arithmetic(),
                                           "How networks are made. All are strongly typed.")
      .value("STRONGLY_TYPED", NetworkDefinitionCreationFlag::kSTRONGLY_TYPED)
      .value("PREFER_AOT_PYTHON_PLUGINS", NetworkDefinitionCreationFlag::kPREFER_AOT_PYTHON_PLUGINS)
      .value("PREFER_JIT_PYTHON_PLUGINS", NetworkDefinitionCreationFlag::kPREFER_JIT_PYTHON_PLUGINS);
  nb::enum_<DataType>(m, "DataType", nb::is_arithmetic(), "The type of elements.")
      .value("FLOAT", DataType::kFLOAT)
      .value("HALF", DataType::kHALF)
      .value("BF16", DataType::kBF16)
      .value("INT8", DataType::kINT8)
      .value("INT32", DataType::kINT32)
      .value("INT64", DataType::kINT64)
      .value("BOOL", DataType::kBOOL)
      .value("UINT8", DataType::kUINT8)
      .value("FP8", DataType::kFP8)
      .value("INT4", DataType::kINT4)
      .value("FP4", DataType::kFP4)
      .value("E8M0", DataType::kE8M0)
      .def_prop_ro(
          "itemsize",
          [](DataType self) -> nb::object {
            if (self == DataType::kE8M0) return nb::none();
            if (bits_of(self) < 8) return nb::float_(static_cast<double>(bits_of(self)) / 8);
            return nb::int_(bits_of(self) / 8);
          },
          nb::sig("def itemsize(self) -> int | float | None"), "Bytes per element; None for E8M0.");
  nb::enum_<WeightsRole>(m, "WeightsRole", nb::is_arithmetic(), "What weights are to their layer.")
      .value("KERNEL", WeightsRole::kKERNEL)
      .value("BIAS", WeightsRole::kBIAS)
      .value("SHIFT", WeightsRole::kSHIFT)
      .value("SCALE", WeightsRole::kSCALE)
      .value("CONSTANT", WeightsRole::kCONSTANT)
      .value("ANY", WeightsRole::kANY);
}

static void bind_enums_3(nb::module_& m) {
  nb::enum_<LayerType>(m, "LayerType", nb::is_arithmetic(), "Which class a layer has.")
      .value("CONVOLUTION", LayerType::kCONVOLUTION)
      .value("GRID_SAMPLE", LayerType::kGRID_SAMPLE)
      .value("NMS", LayerType::kNMS)
      .value("ACTIVATION", LayerType::kACTIVATION)
      .value("POOLING", LayerType::kPOOLING)
      .value("LRN", LayerType::kLRN)
      .value("SCALE", LayerType::kSCALE)
      .value("SOFTMAX", LayerType::kSOFTMAX)
      .value("DECONVOLUTION", LayerType::kDECONVOLUTION)
      .value("CONCATENATION", LayerType::kCONCATENATION)
      .value("ELEMENTWISE", LayerType::kELEMENTWISE)
      .value("PLUGIN", LayerType::kPLUGIN)
      .value("UNARY", LayerType::kUNARY)
      .value("PADDING", LayerType::kPADDING)
      .value("SHUFFLE", LayerType::kSHUFFLE)
      .value("REDUCE", LayerType::kREDUCE)
      .value("TOPK", LayerType::kTOPK)
      .value("GATHER", LayerType::kGATHER)
      .value("MATRIX_MULTIPLY", LayerType::kMATRIX_MULTIPLY)
      .value("RAGGED_SOFTMAX", LayerType::kRAGGED_SOFTMAX)
      .value("CONSTANT", LayerType::kCONSTANT)
      .value("IDENTITY", LayerType::kIDENTITY)
      .value("CAST", LayerType::kCAST)
      .value("PLUGIN_V2", LayerType::kPLUGIN_V2)
      .value("SLICE", LayerType::kSLICE)
      .value("SHAPE", LayerType::kSHAPE)
      .value("PARAMETRIC_RELU", LayerType::kPARAMETRIC_RELU)
      .value("RESIZE", LayerType::kRESIZE)
      .value("TRIP_LIMIT", LayerType::kTRIP_LIMIT)
      .value("RECURRENCE", LayerType::kRECURRENCE)
      .value("ITERATOR", LayerType::kITERATOR)
      .value("LOOP_OUTPUT", LayerType::kLOOP_OUTPUT)
      .value("SELECT", LayerType::kSELECT)
      .value("ASSERTION", LayerType::kASSERTION)
      .value("FILL", LayerType::kFILL)
      .value("QUANTIZE", LayerType::kQUANTIZE)
      .value("DEQUANTIZE", LayerType::kDEQUANTIZE)
      .value("CONDITION", LayerType::kCONDITION)
      .value("CONDITIONAL_INPUT", LayerType::kCONDITIONAL_INPUT)
      .value("CONDITIONAL_OUTPUT", LayerType::kCONDITIONAL_OUTPUT)
      .value("SCATTER", LayerType::kSCATTER)
      .value("EINSUM", LayerType::kEINSUM)
      .value("ONE_HOT", LayerType::kONE_HOT)
      .value("NON_ZERO", LayerType::kNON_ZERO)
      .value("REVERSE_SEQUENCE", LayerType::kREVERSE_SEQUENCE)
      .value("NORMALIZATION", LayerType::kNORMALIZATION)
      .value("PLUGIN_V3", LayerType::kPLUGIN_V3)
      .value("SQUEEZE", LayerType::kSQUEEZE)
      .value("UNSQUEEZE", LayerType::kUNSQUEEZE)
      .value("CUMULATIVE", LayerType::kCUMULATIVE)
      .value("DYNAMIC_QUANTIZE", LayerType::kDYNAMIC_QUANTIZE)
      .value("ATTENTION_INPUT", LayerType::kATTENTION_INPUT)
      .value("ATTENTION_OUTPUT", LayerType::kATTENTION_OUTPUT)
      .value("ROTARY_EMBEDDING", LayerType::kROTARY_EMBEDDING)
      .value("KV_CACHE_UPDATE", LayerType::kKVCACHE_UPDATE)
      .value("MOE", LayerType::kMOE)
      .value("DIST_COLLECTIVE", LayerType::kDIST_COLLECTIVE);
  nb::enum_<TensorFormat>(m, "TensorFormat", nb::is_arithmetic(),
                          "How a tensor lies in memory: LINEAR is row-major; CHWx has x channels beside each other, "
                          "HWCx all, padded to a multiple of x.")
      .value("LINEAR", TensorFormat::kLINEAR)
      .value("CHW2", TensorFormat::kCHW2)
      .value("HWC8", TensorFormat::kHWC8)
      .value("CHW4", TensorFormat::kCHW4)
      .value("CHW16", TensorFormat::kCHW16)
      .value("CHW32", TensorFormat::kCHW32)
      .value("DHWC8", TensorFormat::kDHWC8)
      .value("CDHW32", TensorFormat::kCDHW32)
      .value("HWC", TensorFormat::kHWC)
      .value("DLA_LINEAR", TensorFormat::kDLA_LINEAR)
      .value("DLA_HWC4", TensorFormat::kDLA_HWC4)
      .value("HWC16", TensorFormat::kHWC16)
      .value("DHWC", TensorFormat::kDHWC);
}

static void bind_enums_4(nb::module_& m) {
  nb::enum_<PaddingMode>(m, "PaddingMode", nb::is_arithmetic(),
                         "How the output size of a convolution or pooling follows from the padding p, window w and "
                         "stride s: (in + p - w) / s + 1, rounded down or up, or in / s rounded up.")
      .value("EXPLICIT_ROUND_DOWN", PaddingMode::kEXPLICIT_ROUND_DOWN)
      .value("EXPLICIT_ROUND_UP", PaddingMode::kEXPLICIT_ROUND_UP)
      .value("SAME_UPPER", PaddingMode::kSAME_UPPER)
      .value("SAME_LOWER", PaddingMode::kSAME_LOWER);
  nb::enum_<ActivationType>(m, "ActivationType", nb::is_arithmetic(),
                            "Functions of one element, some with parameters alpha and beta.")
      .value("RELU", ActivationType::kRELU)
      .value("SIGMOID", ActivationType::kSIGMOID)
      .value("TANH", ActivationType::kTANH)
      .value("LEAKY_RELU", ActivationType::kLEAKY_RELU)
      .value("ELU", ActivationType::kELU)
      .value("SELU", ActivationType::kSELU)
      .value("SOFTSIGN", ActivationType::kSOFTSIGN)
      .value("SOFTPLUS", ActivationType::kSOFTPLUS)
      .value("CLIP", ActivationType::kCLIP)
      .value("HARD_SIGMOID", ActivationType::kHARD_SIGMOID)
      .value("SCALED_TANH", ActivationType::kSCALED_TANH)
      .value("THRESHOLDED_RELU", ActivationType::kTHRESHOLDED_RELU)
      .value("GELU_ERF", ActivationType::kGELU_ERF)
      .value("GELU_TANH", ActivationType::kGELU_TANH);
  nb::enum_<PoolingType>(m, "PoolingType", nb::is_arithmetic(), "Functions of a window.")
      .value("MAX", PoolingType::kMAX)
      .value("AVERAGE", PoolingType::kAVERAGE)
      .value("MAX_AVERAGE_BLEND", PoolingType::kMAX_AVERAGE_BLEND);
}

void bind_runtime_enums(nb::module_& m) {
  bind_enums_1(m);
  bind_enums_of_builds(m);
  bind_enums_2(m);
  bind_enums_3(m);
  bind_enums_4(m);
}

}  // namespace lathe::python
