// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "NvOnnxParser.h"
#include "api/network/input_elements.h"
#include "api/network/network.h"
#include "api/network/parser_error.h"
#include "api/network/plugin_import.h"
#include "onnx/import.h"
#include "onnx/model.h"

namespace lathe::api {

class PluginImport;

class Parser final : public nvonnxparser::IParser {
 public:
  Parser(NetworkDefinition& network, nv::ILogger* logger)
      : network_(network), reporter_(std::make_shared<Reporter>(logger)) {}

  bool parse(const void* model, size_t size, const char* model_path) noexcept override;
  bool parseFromFile(const char* onnxModelFile, int verbosity) noexcept override;
  bool supportsOperator(const char* op_name) const noexcept override;
  int getNbErrors() const noexcept override { return static_cast<int>(errors_.size()); }
  const nvonnxparser::IParserError* getError(int index) const noexcept override;
  void clearErrors() noexcept override;
  const char* const* getUsedVCPluginLibraries(int64_t& nbPluginLibs) const noexcept override;
  void setFlags(nvonnxparser::OnnxParserFlags flags) noexcept override {
    put_flags("IParser::setFlags", ~nvonnxparser::OnnxParserFlags{0}, flags);
  }
  nvonnxparser::OnnxParserFlags getFlags() const noexcept override { return flags_; }
  void clearFlag(nvonnxparser::OnnxParserFlag flag) noexcept override {
    put_flags("IParser::clearFlag", bit_of(flag), 0);
  }
  void setFlag(nvonnxparser::OnnxParserFlag flag) noexcept override {
    put_flags("IParser::setFlag", bit_of(flag), bit_of(flag));
  }
  bool getFlag(nvonnxparser::OnnxParserFlag flag) const noexcept override { return flags_ & bit_of(flag); }
  const nv::ITensor* getLayerOutputTensor(const char* name, int64_t i) noexcept override;
#if NV_TENSORRT_MAJOR < 11
  bool supportsModel(const void* model, size_t size, SubGraphCollection_t& subgraphs,
                     const char* path) noexcept override;
  bool parseWithWeightDescriptors(const void* model, size_t size) noexcept override;
#endif
  bool supportsModelV2(const void* model, size_t size, const char* modelPath) noexcept override;
  int64_t getNbSubgraphs() noexcept override { return static_cast<int64_t>(subgraphs_.size()); }
  bool isSubgraphSupported(const int64_t index) noexcept override;
  int64_t* getSubgraphNodes(const int64_t index, int64_t& subgraphLength) noexcept override;
  bool loadModelProto(const void* model, size_t size, const char* modelPath) noexcept override;
  bool loadInitializer(const char* name, const void* data, size_t size) noexcept override;
  bool parseModelProto() noexcept override;
  bool setBuilderConfig(const nv::IBuilderConfig* const config) noexcept override;

  void set_int64_as_int32(bool enabled) { int64_as_int32_ = enabled; }  // lathe::setInt64AsInt32()
  bool set_input_elements(const char* input, int32_t count,
                          const nv::Dims* dims) noexcept;  // lathe::setInputElements()
  onnx::ImportOptions told() const;                        // by these two

 private:
  struct Subgraph {
    bool supported = false;
    std::vector<int64_t> nodes;
  };

  Result<Subgraph*> subgraph_at(int64_t index);
  void reimport_from(onnx::Model model);
  void list(const std::vector<onnx::ImportProblem>& problems);
  void tell_of(const std::string& path, const onnx::Model& model) const;
  void tell_of(const onnx::NodeSupport& node, bool is_supported, PluginImport& plugins) const;
  void write(Severity severity, std::string_view line) const;
  Result<> import(const onnx::Model& model);
  // Runs `body`; on failure one report, and an entry in the error list unless `body` made some.
  template <class Body>
  bool attempt(const char* where, Body&& body, SourceLocation place = SourceLocation::current()) noexcept;

  static constexpr nvonnxparser::OnnxParserFlags kFlags = bit_of(nvonnxparser::OnnxParserFlag::kNATIVE_INSTANCENORM);
  bool overrides() const { return getFlag(nvonnxparser::OnnxParserFlag::kENABLE_PLUGIN_OVERRIDE); }
  // Of the flags, those of `which` become what they are in `values`.
  void put_flags(const char* where, nvonnxparser::OnnxParserFlags which, nvonnxparser::OnnxParserFlags values) noexcept;

  NetworkDefinition& network_;
  std::shared_ptr<Reporter> reporter_;
  mutable Exclusive use_{"parser"};
  SettingNotices notices_;
  nvonnxparser::OnnxParserFlags flags_ = kFlags;
  bool int64_as_int32_ = false;
  const nv::IBuilderConfig* config_ = nullptr;  // the application's; null = none
  InputElementsByName input_elements_;
  static constexpr int kEverything = static_cast<int>(Severity::verbose);
  int verbosity_ = kEverything;  // of the parse that goes on: lines of severities beyond it are left out
  std::vector<std::unique_ptr<ParserError>> errors_;
  std::vector<Subgraph> subgraphs_;
  std::deque<std::string> plugin_paths_;       // of the libraries that the model's plugins come from
  std::vector<const char*> plugin_libraries_;  // the same
  std::unordered_map<std::string, std::vector<std::string>> node_outputs_;  // names of values, by node
  std::unique_ptr<onnx::Model> loaded_;  // between loadModelProto() and parseModelProto()
};

}  // namespace lathe::api
