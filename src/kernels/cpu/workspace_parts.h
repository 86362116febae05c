// SPDX-License-Identifier: Apache-2.0
// The parts of a kernel's workspace, one behind the other.
#pragma once

#include "base/divide.h"

namespace lathe::cpu {

class WorkspaceParts {
 public:
  // Where the next part begins, of so many bytes: each at a cache line of its own.
  size_t take(int64_t bytes) {
    const size_t at = bytes_;
    bytes_ += static_cast<size_t>(round_up(bytes, 64));
    return at;
  }
  size_t bytes() const { return bytes_; }  // of all by now

 private:
  size_t bytes_ = 0;
};

}  // namespace lathe::cpu
