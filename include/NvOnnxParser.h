// SPDX-License-Identifier: Apache-2.0
// Reading ONNX models into a network definition.
#ifndef NV_ONNX_PARSER_H
#define NV_ONNX_PARSER_H

#include <cstddef>
#include <utility>
#include <vector>

#include "NvInfer.h"

#define NV_ONNX_PARSER_MAJOR 0
#define NV_ONNX_PARSER_MINOR 1
#define NV_ONNX_PARSER_PATCH 0

static constexpr int32_t NV_ONNX_PARSER_VERSION =
    ((NV_ONNX_PARSER_MAJOR * 10000) + (NV_ONNX_PARSER_MINOR * 100) + NV_ONNX_PARSER_PATCH);

#if NV_TENSORRT_MAJOR < 11
// Nodes of a part of a model, and whether it is supported.
using SubGraph_t = std::pair<std::vector<size_t>, bool>;
using SubGraphCollection_t = std::vector<SubGraph_t>;
#endif

namespace nvonnxparser {

template <typename T>
constexpr int32_t EnumMax() noexcept;

enum class ErrorCode : int {
  kSUCCESS = 0,
  kINTERNAL_ERROR = 1,
  kMEM_ALLOC_FAILED = 2,
  kMODEL_DESERIALIZE_FAILED = 3,
  kINVALID_VALUE = 4,
  kINVALID_GRAPH = 5,
  kINVALID_NODE = 6,
  kUNSUPPORTED_GRAPH = 7,
  kUNSUPPORTED_NODE = 8,
  kUNSUPPORTED_NODE_ATTR = 9,
  kUNSUPPORTED_NODE_INPUT = 10,
  kUNSUPPORTED_NODE_DATATYPE = 11,
  kUNSUPPORTED_NODE_DYNAMIC = 12,
  kUNSUPPORTED_NODE_SHAPE = 13,
  kREFIT_FAILED = 14,
};
template <>
constexpr int32_t EnumMax<ErrorCode>() noexcept {
  return 14;
}

using OnnxParserFlags = uint32_t;
enum class OnnxParserFlag : int32_t {
  kNATIVE_INSTANCENORM = 0,  // the network's own instance normalization instead of a plugin; on by default
  kENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA = 1,
  kREPORT_CAPABILITY_DLA = 2,
  kENABLE_PLUGIN_OVERRIDE = 3,  // a plugin named like an ONNX operator replaces it
  kADJUST_FOR_DLA = 4,
};

// One problem found in a model. Owned by the parser; valid until clearErrors() or the next parse.
class IParserError {
 public:
  virtual ErrorCode code() const = 0;
  virtual const char* desc() const = 0;

  // Where in the library the problem was found.
  virtual const char* file() const = 0;
  virtual int line() const = 0;
  virtual const char* func() const = 0;

  // The ONNX node, by index, name and operator; -1 and "" when no node is to blame.
  virtual int node() const = 0;
  virtual const char* nodeName() const = 0;
  virtual const char* nodeOperator() const = 0;

  // Names of the local functions around the node, outermost first.
  virtual const char* const* localFunctionStack() const = 0;
  virtual int32_t localFunctionStackSize() const = 0;

 protected:
  virtual ~IParserError() {}
};

// Parses one model into one network. Weights in the network refer to memory of the parser: keep it until the build is
// done. Not thread-safe. Functions returning bool add to the error list on failure.
class IParser {
 public:
  // A serialized ModelProto. `model_path` locates external weights.
  virtual bool parse(const void* serialized_onnx_model, size_t serialized_onnx_model_size,
                     const char* model_path = nullptr) noexcept = 0;

  // `verbosity` is an nvinfer1::ILogger::Severity.
  virtual bool parseFromFile(const char* onnxModelFile, int verbosity) noexcept = 0;

#if NV_TENSORRT_MAJOR < 11
  virtual bool supportsModel(const void* serialized_onnx_model, size_t serialized_onnx_model_size,
                             SubGraphCollection_t& sub_graph_collection, const char* model_path = nullptr) noexcept = 0;
  virtual bool parseWithWeightDescriptors(const void* serialized_onnx_model,
                                          size_t serialized_onnx_model_size) noexcept = 0;
#endif
  // Whether the operator is known; a use of it may still be unsupported.
  virtual bool supportsOperator(const char* op_name) const noexcept = 0;

  // getError() returns nullptr when index is out of range.
  virtual int getNbErrors() const noexcept = 0;
  virtual const IParserError* getError(int index) const noexcept = 0;
  virtual void clearErrors() noexcept = 0;

  virtual ~IParser() noexcept = default;

  // Plugin libraries that a version-compatible plan of this network would need; owned by the parser.
  virtual const char* const* getUsedVCPluginLibraries(int64_t& nbPluginLibs) const noexcept = 0;

  // Bit i stands for OnnxParserFlag i.
  virtual void setFlags(OnnxParserFlags onnxParserFlags) noexcept = 0;
  virtual OnnxParserFlags getFlags() const noexcept = 0;
  virtual void clearFlag(OnnxParserFlag onnxParserFlag) noexcept = 0;
  virtual void setFlag(OnnxParserFlag onnxParserFlag) noexcept = 0;
  virtual bool getFlag(OnnxParserFlag onnxParserFlag) const noexcept = 0;

  // Output `i` of the ONNX node called `name`; nullptr when there is none.
  virtual const nvinfer1::ITensor* getLayerOutputTensor(const char* name, int64_t i) noexcept = 0;

  // Checks without building the network which parts of a model are supported. True when all of it is; the subgraphs
  // below then describe the partition. Node lists are owned by the parser.
  virtual bool supportsModelV2(const void* serializedOnnxModel, size_t serializedOnnxModelSize,
                               const char* modelPath = nullptr) noexcept = 0;
  virtual int64_t getNbSubgraphs() noexcept = 0;
  virtual bool isSubgraphSupported(const int64_t index) noexcept = 0;
  virtual int64_t* getSubgraphNodes(const int64_t index, int64_t& subgraphLength) noexcept = 0;

  // Parsing in three steps, so that initializers can come from memory instead of files.
  virtual bool loadModelProto(const void* serializedOnnxModel, size_t serializedOnnxModelSize,
                              const char* modelPath = nullptr) noexcept = 0;
  virtual bool loadInitializer(const char* name, const void* data, size_t size) noexcept = 0;
  virtual bool parseModelProto() noexcept = 0;

  // Lets the parser see the configuration of the coming build. Not owned.
  virtual bool setBuilderConfig(const nvinfer1::IBuilderConfig* const builderConfig) noexcept = 0;
};

// Takes new weights for an engine from an ONNX model that is equal in all but weight values.
class IParserRefitter {
 public:
  virtual bool refitFromBytes(const void* serializedOnnxModel, size_t serializedOnnxModelSize,
                              const char* modelPath = nullptr) noexcept = 0;
  virtual bool refitFromFile(const char* onnxModelFile) noexcept = 0;

  virtual int32_t getNbErrors() const noexcept = 0;
  virtual const IParserError* getError(int32_t index) const noexcept = 0;
  virtual void clearErrors() = 0;

  virtual ~IParserRefitter() noexcept = default;

  virtual bool loadModelProto(const void* serializedOnnxModel, size_t serializedOnnxModelSize,
                              const char* modelPath = nullptr) noexcept = 0;
  virtual bool loadInitializer(const char* name, const void* data, size_t size) noexcept = 0;
  virtual bool refitModelProto() noexcept = 0;
};

}  // namespace nvonnxparser

extern "C" TENSORRTAPI void* createNvOnnxParser_INTERNAL(void* network, void* logger, int version) noexcept;
extern "C" TENSORRTAPI void* createNvOnnxParserRefitter_INTERNAL(void* refitter, void* logger,
                                                                 int32_t version) noexcept;
extern "C" TENSORRTAPI int getNvOnnxParserVersion() noexcept;

namespace nvonnxparser {
namespace {

// nullptr on failure. The caller deletes the parser, after the build and before the network's builder.
inline IParser* createParser(nvinfer1::INetworkDefinition& network, nvinfer1::ILogger& logger) noexcept {
  return static_cast<IParser*>(createNvOnnxParser_INTERNAL(&network, &logger, NV_ONNX_PARSER_VERSION));
}

inline IParserRefitter* createParserRefitter(nvinfer1::IRefitter& refitter, nvinfer1::ILogger& logger) noexcept {
  return static_cast<IParserRefitter*>(createNvOnnxParserRefitter_INTERNAL(&refitter, &logger, NV_ONNX_PARSER_VERSION));
}

}  // namespace
}  // namespace nvonnxparser

#endif  // NV_ONNX_PARSER_H
