// SPDX-License-Identifier: Apache-2.0
// The file of a plan without its weights, which lie elsewhere: what it takes to give the file back.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"

namespace lathe {

class PlanFile {
 public:
  PlanFile() = default;
  // Copies what is before and behind the weights, if the file holds any.
  static Result<PlanFile> without_weights(std::span<const std::byte> file);
  // The file, whose weights `read` fills in.
  Result<std::vector<std::byte>> with_weights(const std::function<Result<>(std::span<std::byte>)>& read) const;

 private:
  std::vector<std::byte> before_, behind_;
  size_t weights_ = 0;  // bytes
};

}  // namespace lathe
