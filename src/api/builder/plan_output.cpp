// SPDX-License-Identifier: Apache-2.0
#include "api/builder/plan_output.h"

namespace lathe::api {

Result<> PlanInMemory::begin(uint64_t size) {
  bytes.reserve(size);
  return {};
}

Result<> PlanInMemory::write(std::span<const std::byte> part) {
  bytes.insert(bytes.end(), part.begin(), part.end());
  return {};
}

Result<> PlanInFile::begin(uint64_t size) {
  LATHE_ASSIGN(AtomicFile file, AtomicFile::create(path_));
  LATHE_TRY(file.reserve(size));
  file_.emplace(std::move(file));
  return {};
}

Result<std::span<const std::byte>> PlanInFile::written() {
  LATHE_ASSIGN(mapped_, file_->map());
  return mapped_->bytes();
}

}  // namespace lathe::api
