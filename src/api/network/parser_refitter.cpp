// SPDX-License-Identifier: Apache-2.0
#include "api/network/parser_refitter.h"

#include "api/convert.h"
#include "api/network/model_loading.h"
#include "api/network/plugin_import.h"
#include "ir/constants.h"
#include "onnx/import.h"
#include "onnx/reader.h"

namespace lathe::api {

template <class Body>
bool ParserRefitter::attempt(const char* where, Body&& body) noexcept {
  return guarded(Entry{*reporter_, use_}, where, [&]() -> Result<> {
    Result<> result = body();
    if (!result)
      errors_.emplace_back(nvonnxparser::ErrorCode::kREFIT_FAILED, result.error().to_string(), where,
                           SourceLocation::current());
    return result;
  });
}

Result<> ParserRefitter::refit_from(const onnx::Model& model) {
  const std::shared_ptr<ModelRefit> refitter = refitter_.lock();
  if (!refitter)
    return fail(ErrorCode::invalid_state,
                "the refitter that the weights are for is gone: keep it until they are given");
  LATHE_TRY(refitter->check_refittable());
  ir::Graph graph("refit");
  PluginImport plugins(std::make_shared<BuilderCore>(reporter_->logger()), reporter_);
  onnx::ImportOptions options;
  options.custom = &plugins;
  options.input_elements = input_elements_;
  LATHE_TRY(onnx::import_model(model, graph, options));
  ModelRefit::Contents contents;
  ir::for_each_constant(graph, [&](const std::string& name, const ir::Value& constant, ir::Where) {
    const Tensor& content = *constant.content();
    contents[name] = {content.dtype(), content.dims(), content.raw(), content.owner()};
  });
  return refitter->give(contents);
}

bool ParserRefitter::set_input_elements(const char* input, int32_t count, const nv::Dims* dims) noexcept {
  return guarded(Entry{*reporter_, use_}, "lathe::setInputElements",
                 [&]() -> Result<> { return tell_input_elements(input_elements_, input, count, dims); });
}

bool ParserRefitter::refitFromBytes(const void* model, size_t size, const char* modelPath) noexcept {
  return attempt("IParserRefitter::refitFromBytes", [&]() -> Result<> {
    LATHE_ASSIGN(const onnx::Model read, read_model(model, size, modelPath, Bytes::copied));
    return refit_from(read);
  });
}

bool ParserRefitter::refitFromFile(const char* onnxModelFile) noexcept {
  return attempt("IParserRefitter::refitFromFile", [&]() -> Result<> {
    LATHE_ASSIGN(const std::string path, to_string(onnxModelFile, "model path"));
    LATHE_ASSIGN(const onnx::Model read, onnx::read_model_file(path));
    return refit_from(read);
  });
}

const nvonnxparser::IParserError* ParserRefitter::getError(int32_t index) const noexcept {
  using Found = const nvonnxparser::IParserError*;
  return guarded(looking(), "IParserRefitter::getError", Found{nullptr}, [&]() -> Result<Found> {
    return index >= 0 && static_cast<size_t>(index) < errors_.size() ? &errors_[static_cast<size_t>(index)] : nullptr;
  });
}

int32_t ParserRefitter::getNbErrors() const noexcept {
  return guarded(looking(), "IParserRefitter::getNbErrors", 0,
                 [&]() -> Result<int32_t> { return static_cast<int32_t>(errors_.size()); });
}

void ParserRefitter::clearErrors() noexcept {
  guarded(Entry{*reporter_, use_}, "IParserRefitter::clearErrors", [&]() -> Result<> {
    errors_.clear();
    return {};
  });
}

bool ParserRefitter::loadModelProto(const void* model, size_t size, const char* modelPath) noexcept {
  return attempt("IParserRefitter::loadModelProto", [&]() -> Result<> {
    LATHE_ASSIGN(onnx::Model read, read_model(model, size, modelPath, Bytes::copied, Missing::comes_later));
    loaded_ = std::make_unique<onnx::Model>(std::move(read));
    return {};
  });
}

bool ParserRefitter::loadInitializer(const char* name, const void* data, size_t size) noexcept {
  return attempt("IParserRefitter::loadInitializer", [&]() -> Result<> {
    if (!loaded_) return fail(ErrorCode::invalid_state, "call loadModelProto() first");
    return give_initializer(*loaded_, name, data, size);
  });
}

bool ParserRefitter::refitModelProto() noexcept {
  return attempt("IParserRefitter::refitModelProto", [&]() -> Result<> {
    if (!loaded_) return fail(ErrorCode::invalid_state, "call loadModelProto() first");
    LATHE_TRY(check_initializers(*loaded_));
    const std::unique_ptr<onnx::Model> model = std::move(loaded_);
    return refit_from(*model);
  });
}

}  // namespace lathe::api
