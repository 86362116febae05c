// SPDX-License-Identifier: Apache-2.0
// Copies of weights that lie askew in a mapped file. What nobody reads for a while gives its memory back, as the pages
// of the file do, and is copied again.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ops/tensor.h"

namespace lathe::onnx {

struct AlignedCopy;

// Of one model.
class AlignedCopies {
 public:
  // `piece` is of the mapped file, which the copy keeps. What is given is of `type` and dims, and the copy's handle.
  Result<Tensor> add(DType type, Dims dims, std::span<const std::byte> piece, std::shared_ptr<const void> file);

 private:
  friend class UnreadCopies;
  std::vector<std::weak_ptr<AlignedCopy>> copies_;
};

// While it lives, those who have tensors of the model now do not read them.
class UnreadCopies {
 public:
  explicit UnreadCopies(const std::vector<std::shared_ptr<AlignedCopies>>& models);
  ~UnreadCopies();  // what was forgotten is copied again
  UnreadCopies(const UnreadCopies&) = delete;

  // Gives back the memory of copies of which nobody else has a tensor.
  void forget();

 private:
  struct Copy {
    std::shared_ptr<AlignedCopy> copy;
    long handles;  // of those who do not read it
    bool is_forgotten = false;
  };
  std::vector<Copy> copies_;
};

}  // namespace lathe::onnx
