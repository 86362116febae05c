// SPDX-License-Identifier: Apache-2.0
// Tensor contents kept in files beside the model. A model is untrusted: it may name only regular files below its own
// directory, reached without symbolic links and not hard-linked from elsewhere.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace lathe::onnx {

// TensorProto.external_data, as written.
struct ExternalReference {
  std::string_view location;
  std::string_view offset;
  std::string_view length;
};

class ExternalData {
 public:
  explicit ExternalData(std::string directory) : directory_(std::move(directory)) {}

  struct Piece {
    std::span<const std::byte> bytes;
    std::shared_ptr<const MappedFile> file;
  };
  // The `size` bytes of `tensor`; each file is mapped once.
  Result<Piece> find(std::string_view tensor, const ExternalReference& reference, uint64_t size);
  std::vector<std::shared_ptr<const MappedFile>> files() const;  // that it has mapped

 private:
  Result<std::shared_ptr<const MappedFile>> map(std::string_view location);

  std::string directory_;
  std::map<std::string, std::shared_ptr<const MappedFile>, std::less<>> files_;
};

}  // namespace lathe::onnx
