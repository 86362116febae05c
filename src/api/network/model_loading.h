// SPDX-License-Identifier: Apache-2.0
// A model that is given in pieces: by parsers, and by parsers' refitters.
#pragma once

#include "onnx/model.h"

namespace lathe::api {

enum class Missing : uint8_t { fails, comes_later };  // external content of initializers
enum class Bytes : uint8_t { copied, borrowed };      // borrowed: the model goes before the caller's buffer may

// `path`: of the file that the bytes are from, beside which external data lies; may be null.
Result<onnx::Model> read_model(const void* model, size_t size, const char* path, Bytes bytes,
                               Missing missing = Missing::fails);

// The content of an initializer, which lives as long as the model is used.
Result<> give_initializer(onnx::Model& model, const char* name, const void* data, size_t size);
Result<> check_initializers(const onnx::Model& model);  // that none is missing

}  // namespace lathe::api
