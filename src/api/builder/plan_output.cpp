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

Result<std::span<const std::byte>> PlanInFile::finish() {
  LATHE_TRY(file_->commit());
  LATHE_ASSIGN(written_, MappedFile::open(path_));
  return written_->bytes();
}

}  // namespace lathe::api
