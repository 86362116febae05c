// SPDX-License-Identifier: Apache-2.0
#include "api/network/model_loading.h"

#include "api/convert.h"
#include "onnx/checker.h"
#include "onnx/reader.h"

namespace lathe::api {
namespace {

std::string directory_of(const char* path) {
  const std::string text = path ? path : "";
  const size_t slash = text.rfind('/');
  return slash == std::string::npos ? (text.empty() ? "" : ".") : text.substr(0, slash + 1);
}

}  // namespace

Result<onnx::Model> read_model(const void* model, size_t size, const char* path, Bytes bytes, Missing missing) {
  if (!model || size == 0) return fail(ErrorCode::invalid_argument, "the model is empty");
  onnx::ModelReadOptions options;
  options.directory = directory_of(path);
  options.may_miss_initializers = missing == Missing::comes_later;
  options.borrows = bytes == Bytes::borrowed;
  return onnx::read_model({static_cast<const std::byte*>(model), size}, options);
}

Result<> give_initializer(onnx::Model& model, const char* name, const void* data, size_t size) {
  LATHE_ASSIGN(const std::string text, to_string(name, "initializer name"));
  for (onnx::TensorData& initializer : model.graph.initializers) {
    if (initializer.name != text) continue;
    const std::optional<uint64_t> needed = onnx::storage_bytes(initializer.type, initializer.dims);
    if (!data || !needed || *needed != size)
      return fail(ErrorCode::invalid_argument, "initializer '{}' has {} bytes, but {} were given", text,
                  needed.value_or(0), size);
    initializer.bytes = {static_cast<const std::byte*>(data), size};
    initializer.owner = nullptr;  // the application's, until the build is done
    initializer.missing = nullptr;
    return {};
  }
  return fail(ErrorCode::invalid_argument, "the model has no initializer '{}'", text);
}

Result<> check_initializers(const onnx::Model& model) {
  for (const onnx::TensorData& initializer : model.graph.initializers)
    if (initializer.missing)
      return fail(with_context(*initializer.missing, "loadInitializer() has not given it, and its file is not there"));
  return {};
}

}  // namespace lathe::api
