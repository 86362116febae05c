// SPDX-License-Identifier: Apache-2.0
// Reads ONNX protobuf files. Nothing is copied that can be viewed; every length, count and nesting is bounded.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "onnx/model.h"

namespace lathe::onnx {

struct ModelReadOptions {
  std::string directory{};  // where external data lies; empty = external data is refused
  int max_depth = 100;      // nested messages
  // External content of the main graph's initializers may be missing: it is given later (TensorData::missing).
  bool may_miss_initializers = false;
  // Without an owner, bytes are not copied: they are there as long as the model is, but tensors made of it outlive
  // them.
  bool borrows = false;
};

// Maps the file; external data is looked for beside it (options.directory, when empty).
Result<Model> read_model_file(const std::string& path, ModelReadOptions options = {});

// With an owner, the bytes are viewed and the owner kept; without, they are copied first.
Result<Model> read_model(std::span<const std::byte> bytes, const ModelReadOptions& options = {},
                         std::shared_ptr<const void> owner = nullptr);

// The same of a whole file; the model keeps it mapped.
Result<Model> read_model(std::shared_ptr<const MappedFile> file, const ModelReadOptions& options);

// A TensorProto on its own (the .pb files of ONNX test data).
Result<TensorData> read_tensor(std::span<const std::byte> bytes, const ModelReadOptions& options = {},
                               std::shared_ptr<const void> owner = nullptr);

}  // namespace lathe::onnx
