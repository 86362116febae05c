// SPDX-License-Identifier: Apache-2.0
#include "bind.h"

using namespace nvinfer1;

namespace lathe::python {

static void bind_enums_1(nb::module_& m) {
  nb::enum_<ScaleMode>(m, "ScaleMode", nb::is_arithmetic(),
                       "Whether a scale layer has one value for all elements, for each channel, or for each element.")
      .value("UNIFORM", ScaleMode::kUNIFORM)
      .value("CHANNEL", ScaleMode::kCHANNEL)
      .value("ELEMENTWISE", ScaleMode::kELEMENTWISE);
  nb::enum_<ElementWiseOperation>(m, "ElementWiseOperation", nb::is_arithmetic(), "Functions of two elements.")
      .value("SUM", ElementWiseOperation::kSUM)
      .value("PROD", ElementWiseOperation::kPROD)
      .value("MAX", ElementWiseOperation::kMAX)
      .value("MIN", ElementWiseOperation::kMIN)
      .value("SUB", ElementWiseOperation::kSUB)
      .value("DIV", ElementWiseOperation::kDIV)
      .value("POW", ElementWiseOperation::kPOW)
      .value("FLOOR_DIV", ElementWiseOperation::kFLOOR_DIV)
      .value("AND", ElementWiseOperation::kAND)
      .value("OR", ElementWiseOperation::kOR)
      .value("XOR", ElementWiseOperation::kXOR)
      .value("EQUAL", ElementWiseOperation::kEQUAL)
      .value("GREATER", ElementWiseOperation::kGREATER)
      .value("LESS", ElementWiseOperation::kLESS);
  nb::enum_<ScatterMode>(
      m, "ScatterMode", nb::is_arithmetic(),
      "What indices are of: elements, as ONNX's ScatterElements, or what tuples address, as ScatterND.")
      .value("ELEMENT", ScatterMode::kELEMENT)
      .value("ND", ScatterMode::kND);
  nb::enum_<GatherMode>(
      m, "GatherMode", nb::is_arithmetic(),
      "What indices pick: slices, elements as ONNX's GatherElements, or what tuples address as GatherND.")
      .value("DEFAULT", GatherMode::kDEFAULT)
      .value("ELEMENT", GatherMode::kELEMENT)
      .value("ND", GatherMode::kND);
  nb::enum_<UnaryOperation>(m, "UnaryOperation", nb::is_arithmetic(),
                            "Functions of one element. ROUND rounds half to even; ISINF and ISNAN give BOOL.")
      .value("EXP", UnaryOperation::kEXP)
      .value("LOG", UnaryOperation::kLOG)
      .value("SQRT", UnaryOperation::kSQRT)
      .value("RECIP", UnaryOperation::kRECIP)
      .value("ABS", UnaryOperation::kABS)
      .value("NEG", UnaryOperation::kNEG)
      .value("SIN", UnaryOperation::kSIN)
      .value("COS", UnaryOperation::kCOS)
      .value("TAN", UnaryOperation::kTAN)
      .value("SINH", UnaryOperation::kSINH)
      .value("COSH", UnaryOperation::kCOSH)
      .value("ASIN", UnaryOperation::kASIN)
      .value("ACOS", UnaryOperation::kACOS)
      .value("ATAN", UnaryOperation::kATAN)
      .value("ASINH", UnaryOperation::kASINH)
      .value("ACOSH", UnaryOperation::kACOSH)
      .value("ATANH", UnaryOperation::kATANH)
      .value("CEIL", UnaryOperation::kCEIL)
      .value("FLOOR", UnaryOperation::kFLOOR)
      .value("ERF", UnaryOperation::kERF)
      .value("NOT", UnaryOperation::kNOT)
      .value("SIGN", UnaryOperation::kSIGN)
      .value("ROUND", UnaryOperation::kROUND)
      .value("ISINF", UnaryOperation::kISINF)
      .value("ISNAN", UnaryOperation::kISNAN);
}

static void bind_enums_of_reductions(nb::module_& m) {
  nb::enum_<ReduceOperation>(m, "ReduceOperation", nb::is_arithmetic(),
                             "Functions of many elements; NONE is for collectives that do not reduce.")
      .value("SUM", ReduceOperation::kSUM)
      .value("PROD", ReduceOperation::kPROD)
      .value("MAX", ReduceOperation::kMAX)
      .value("MIN", ReduceOperation::kMIN)
      .value("AVG", ReduceOperation::kAVG)
      .value("NONE", ReduceOperation::kNONE);
  nb::enum_<InterpolationMode>(m, "InterpolationMode", nb::is_arithmetic(), "How values between elements are found.")
      .value("NEAREST", InterpolationMode::kNEAREST)
      .value("LINEAR", InterpolationMode::kLINEAR)
      .value("CUBIC", InterpolationMode::kCUBIC);
  nb::enum_<SampleMode>(m, "SampleMode", nb::is_arithmetic(),
                        "What elements beyond a tensor are: an error, those around the other side, the nearest one, a "
                        "value, or mirrored ones.")
      .value("STRICT_BOUNDS", SampleMode::kSTRICT_BOUNDS)
      .value("WRAP", SampleMode::kWRAP)
      .value("CLAMP", SampleMode::kCLAMP)
      .value("FILL", SampleMode::kFILL)
      .value("REFLECT", SampleMode::kREFLECT);
  nb::enum_<TopKOperation>(m, "TopKOperation", nb::is_arithmetic(),
                           "Whether the largest or the smallest elements are wanted.")
      .value("MAX", TopKOperation::kMAX)
      .value("MIN", TopKOperation::kMIN);
}

static void bind_enums_2(nb::module_& m) {
  nb::enum_<MatrixOperation>(
      m, "MatrixOperation", nb::is_arithmetic(),
      "How an input of a matrix product is read: as it is, transposed, or its last dimension as a vector.")
      .value("NONE", MatrixOperation::kNONE)
      .value("TRANSPOSE", MatrixOperation::kTRANSPOSE)
      .value("VECTOR", MatrixOperation::kVECTOR);
  nb::enum_<CollectiveOperation>(m, "CollectiveOperation", nb::is_arithmetic(), "Exchanges between processes.")
      .value("ALL_REDUCE", CollectiveOperation::kALL_REDUCE)
      .value("ALL_GATHER", CollectiveOperation::kALL_GATHER)
      .value("BROADCAST", CollectiveOperation::kBROADCAST)
      .value("REDUCE", CollectiveOperation::kREDUCE)
      .value("REDUCE_SCATTER", CollectiveOperation::kREDUCE_SCATTER)
      .value("ALL_TO_ALL", CollectiveOperation::kALL_TO_ALL)
      .value("GATHER", CollectiveOperation::kGATHER)
      .value("SCATTER", CollectiveOperation::kSCATTER);
  nb::enum_<ResizeCoordinateTransformation>(m, "ResizeCoordinateTransformation", nb::is_arithmetic(),
                                            "How a position of the output is one of the input.")
      .value("ALIGN_CORNERS", ResizeCoordinateTransformation::kALIGN_CORNERS)
      .value("ASYMMETRIC", ResizeCoordinateTransformation::kASYMMETRIC)
      .value("HALF_PIXEL", ResizeCoordinateTransformation::kHALF_PIXEL);
  nb::enum_<ResizeSelector>(m, "ResizeSelector", nb::is_arithmetic(),
                            "Which element an output of size 1 takes: by the formula, or the first.")
      .value("FORMULA", ResizeSelector::kFORMULA)
      .value("UPPER", ResizeSelector::kUPPER);
  nb::enum_<ResizeRoundMode>(m, "ResizeRoundMode", nb::is_arithmetic(), "How positions are rounded to elements.")
      .value("HALF_UP", ResizeRoundMode::kHALF_UP)
      .value("HALF_DOWN", ResizeRoundMode::kHALF_DOWN)
      .value("FLOOR", ResizeRoundMode::kFLOOR)
      .value("CEIL", ResizeRoundMode::kCEIL);
  nb::enum_<LoopOutput>(m, "LoopOutput", nb::is_arithmetic(),
                        "What leaves a loop: the last value, or those of all iterations, in order or last first.")
      .value("LAST_VALUE", LoopOutput::kLAST_VALUE)
      .value("CONCATENATE", LoopOutput::kCONCATENATE)
      .value("REVERSE", LoopOutput::kREVERSE);
  nb::enum_<TripLimit>(m, "TripLimit", nb::is_arithmetic(), "Whether a loop ends by a count or a condition.")
      .value("COUNT", TripLimit::kCOUNT)
      .value("WHILE", TripLimit::kWHILE);
  nb::enum_<BoundingBoxFormat>(
      m, "BoundingBoxFormat", nb::is_arithmetic(),
      "What the four numbers of a box are: x1, y1, x2, y2, or x and y of the centre, width and height.")
      .value("CORNER_PAIRS", BoundingBoxFormat::kCORNER_PAIRS)
      .value("CENTER_SIZES", BoundingBoxFormat::kCENTER_SIZES);
  nb::enum_<FillOperation>(m, "FillOperation", nb::is_arithmetic(),
                           "The rule of a fill layer: a ramp, or random numbers, uniform or normal.")
      .value("LINSPACE", FillOperation::kLINSPACE)
      .value("RANDOM_UNIFORM", FillOperation::kRANDOM_UNIFORM)
      .value("RANDOM_NORMAL", FillOperation::kRANDOM_NORMAL);
  nb::enum_<CumulativeOperation>(m, "CumulativeOperation", nb::is_arithmetic(), "What accumulates.")
      .value("SUM", CumulativeOperation::kSUM);
  nb::enum_<AttentionNormalizationOp>(m, "AttentionNormalizationOp", nb::is_arithmetic(),
                                      "How the scores of an attention are normalized.")
      .value("NONE", AttentionNormalizationOp::kNONE)
      .value("SOFTMAX", AttentionNormalizationOp::kSOFTMAX);
  nb::enum_<AttentionIOForm>(m, "AttentionIOForm", nb::is_arithmetic(),
                             "How tensors of an attention lie: [batch, heads, sequence, depth], or [tokens, heads, "
                             "depth] with sequences end to end.")
      .value("PADDED_BHND", AttentionIOForm::kPADDED_BHND)
      .value("PACKED_NHD", AttentionIOForm::kPACKED_NHD);
  nb::enum_<CausalMaskKind>(m, "CausalMaskKind", nb::is_arithmetic(),
                            "Which scores are masked: none, those of keys behind query i, or those that the last "
                            "query, which sees all keys, leaves to the ones before.")
      .value("NONE", CausalMaskKind::kNONE)
      .value("UPPER_LEFT", CausalMaskKind::kUPPER_LEFT)
      .value("LOWER_RIGHT", CausalMaskKind::kLOWER_RIGHT);
  nb::enum_<KVCacheMode>(m, "KVCacheMode", nb::is_arithmetic(), "How rows of a cache follow one another.")
      .value("LINEAR", KVCacheMode::kLINEAR);
  nb::enum_<MoEActType>(m, "MoEActType", nb::is_arithmetic(), "The activation of experts.")
      .value("NONE", MoEActType::kNONE)
      .value("SILU", MoEActType::kSILU);
}

static void bind_enums_of_plugins(nb::module_& m) {
  nb::enum_<DimensionOperation>(m, "DimensionOperation", nb::is_arithmetic(), "Operations of expressions of sizes.")
      .value("SUM", DimensionOperation::kSUM)
      .value("PROD", DimensionOperation::kPROD)
      .value("MAX", DimensionOperation::kMAX)
      .value("MIN", DimensionOperation::kMIN)
      .value("SUB", DimensionOperation::kSUB)
      .value("EQUAL", DimensionOperation::kEQUAL)
      .value("LESS", DimensionOperation::kLESS)
      .value("FLOOR_DIV", DimensionOperation::kFLOOR_DIV)
      .value("CEIL_DIV", DimensionOperation::kCEIL_DIV);
}

static void bind_enums_3(nb::module_& m) {
  nb::enum_<PluginFieldType>(m, "PluginFieldType", nb::is_arithmetic(), "The type of the elements of a plugin's field.")
      .value("FLOAT16", PluginFieldType::kFLOAT16)
      .value("FLOAT32", PluginFieldType::kFLOAT32)
      .value("FLOAT64", PluginFieldType::kFLOAT64)
      .value("INT8", PluginFieldType::kINT8)
      .value("INT16", PluginFieldType::kINT16)
      .value("INT32", PluginFieldType::kINT32)
      .value("CHAR", PluginFieldType::kCHAR)
      .value("DIMS", PluginFieldType::kDIMS)
      .value("UNKNOWN", PluginFieldType::kUNKNOWN)
      .value("BF16", PluginFieldType::kBF16)
      .value("INT64", PluginFieldType::kINT64)
      .value("FP8", PluginFieldType::kFP8)
      .value("INT4", PluginFieldType::kINT4)
      .value("FP4", PluginFieldType::kFP4);
  nb::enum_<PluginCreatorVersion>(m, "PluginCreatorVersion", nb::is_arithmetic(), "The family that a creator is of.")
      .value("V1", PluginCreatorVersion::kV1)
      .value("V1_PYTHON", PluginCreatorVersion::kV1_PYTHON);
  nb::enum_<PluginCapabilityType>(m, "PluginCapabilityType", nb::is_arithmetic(),
                                  "What a plugin's object is asked to do: be found, be built, or run.")
      .value("CORE", PluginCapabilityType::kCORE)
      .value("BUILD", PluginCapabilityType::kBUILD)
      .value("RUNTIME", PluginCapabilityType::kRUNTIME);
  nb::enum_<TensorRTPhase>(m, "TensorRTPhase", nb::is_arithmetic(),
                           "Whether a plugin is made for a build or for a run.")
      .value("BUILD", TensorRTPhase::kBUILD)
      .value("RUNTIME", TensorRTPhase::kRUNTIME);
  nb::enum_<nvonnxparser::OnnxParserFlag>(m, "OnnxParserFlag", nb::is_arithmetic(), "What parsers do differently.")
      .value("NATIVE_INSTANCENORM", nvonnxparser::OnnxParserFlag::kNATIVE_INSTANCENORM)
      .value("ENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA",
             nvonnxparser::OnnxParserFlag::kENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA)
      .value("REPORT_CAPABILITY_DLA", nvonnxparser::OnnxParserFlag::kREPORT_CAPABILITY_DLA)
      .value("ENABLE_PLUGIN_OVERRIDE", nvonnxparser::OnnxParserFlag::kENABLE_PLUGIN_OVERRIDE)
      .value("ADJUST_FOR_DLA", nvonnxparser::OnnxParserFlag::kADJUST_FOR_DLA);
  nb::enum_<nvonnxparser::ErrorCode>(m, "ErrorCode", nb::is_arithmetic(),
                                     "What is wrong with a model, or what of it is not supported.")
      .value("SUCCESS", nvonnxparser::ErrorCode::kSUCCESS)
      .value("INTERNAL_ERROR", nvonnxparser::ErrorCode::kINTERNAL_ERROR)
      .value("MEM_ALLOC_FAILED", nvonnxparser::ErrorCode::kMEM_ALLOC_FAILED)
      .value("MODEL_DESERIALIZE_FAILED", nvonnxparser::ErrorCode::kMODEL_DESERIALIZE_FAILED)
      .value("INVALID_VALUE", nvonnxparser::ErrorCode::kINVALID_VALUE)
      .value("INVALID_GRAPH", nvonnxparser::ErrorCode::kINVALID_GRAPH)
      .value("INVALID_NODE", nvonnxparser::ErrorCode::kINVALID_NODE)
      .value("UNSUPPORTED_GRAPH", nvonnxparser::ErrorCode::kUNSUPPORTED_GRAPH)
      .value("UNSUPPORTED_NODE", nvonnxparser::ErrorCode::kUNSUPPORTED_NODE)
      .value("UNSUPPORTED_NODE_ATTR", nvonnxparser::ErrorCode::kUNSUPPORTED_NODE_ATTR)
      .value("UNSUPPORTED_NODE_INPUT", nvonnxparser::ErrorCode::kUNSUPPORTED_NODE_INPUT)
      .value("UNSUPPORTED_NODE_DATATYPE", nvonnxparser::ErrorCode::kUNSUPPORTED_NODE_DATATYPE)
      .value("UNSUPPORTED_NODE_DYNAMIC", nvonnxparser::ErrorCode::kUNSUPPORTED_NODE_DYNAMIC)
      .value("UNSUPPORTED_NODE_SHAPE", nvonnxparser::ErrorCode::kUNSUPPORTED_NODE_SHAPE)
      .value("REFIT_FAILED", nvonnxparser::ErrorCode::kREFIT_FAILED);
}

void bind_network_enums(nb::module_& m) {
  bind_enums_1(m);
  bind_enums_of_reductions(m);
  bind_enums_2(m);
  bind_enums_of_plugins(m);
  bind_enums_3(m);
}

}  // namespace lathe::python
