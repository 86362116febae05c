// SPDX-License-Identifier: Apache-2.0
// The functions of builder and parser that programs find by name.
#include "NvOnnxParser.h"
#include "api/builder/builder.h"
#include "api/entry_point.h"
#include "api/network/parser.h"
#include "api/network/parser_refitter.h"
#include "api/runtime/refitter.h"

namespace {

namespace nv = nvinfer1;
using lathe::ErrorCode;
using lathe::Result;
using lathe::api::create;

Result<> check_parser_version(int version) {
  if (version == NV_ONNX_PARSER_VERSION) return {};
  return lathe::fail(ErrorCode::invalid_argument, "the program was compiled for parser version {}, this library has {}",
                     version, NV_ONNX_PARSER_VERSION);
}

}  // namespace

extern "C" {

TENSORRTAPI void* createInferBuilder_INTERNAL(void* logger, int32_t version) noexcept {
  return create("createInferBuilder", logger, version, [](nv::ILogger* typed) -> Result<void*> {
    auto core = std::make_shared<lathe::api::BuilderCore>(typed);
    nv::IBuilder* builder = new lathe::api::Builder(core);
    core->builder = builder;
    return builder;
  });
}

TENSORRTAPI void* createNvOnnxParserRefitter_INTERNAL(void* refitter, void* logger, int32_t version) noexcept {
  return create("createParserRefitter", logger, NV_TENSORRT_VERSION, [&](nv::ILogger* typed) -> Result<void*> {
    if (!refitter) return lathe::fail(ErrorCode::invalid_argument, "the refitter is null");
    LATHE_TRY(check_parser_version(version));
    auto& target = static_cast<lathe::api::Refitter&>(*static_cast<nv::IRefitter*>(refitter));
    nvonnxparser::IParserRefitter* made = new lathe::api::ParserRefitter(target, typed);
    return made;
  });
}

TENSORRTAPI void* createNvOnnxParser_INTERNAL(void* network, void* logger, int version) noexcept {
  return create("createParser", logger, NV_TENSORRT_VERSION, [&](nv::ILogger* typed) -> Result<void*> {
    if (!network) return lathe::fail(ErrorCode::invalid_argument, "the network is null");
    LATHE_TRY(check_parser_version(version));
    auto* definition = static_cast<lathe::api::NetworkDefinition*>(static_cast<nv::INetworkDefinition*>(network));
    nvonnxparser::IParser* parser = new lathe::api::Parser(*definition, typed);
    return parser;
  });
}

TENSORRTAPI int getNvOnnxParserVersion() noexcept { return NV_ONNX_PARSER_VERSION; }

}  // extern "C"

namespace nvinfer1 {

extern "C" IPluginRegistry* getBuilderPluginRegistry(EngineCapability capability) noexcept {
  return capability == EngineCapability::kSTANDARD ? ::getPluginRegistry() : nullptr;
}

extern "C" safe::IPluginRegistry* getBuilderSafePluginRegistry(EngineCapability) noexcept { return nullptr; }

}  // namespace nvinfer1
