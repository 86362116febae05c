// SPDX-License-Identifier: Apache-2.0
// Where a build writes its plan: memory that the application gets, or a file, so that the plan is never in memory as a
// whole.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/file.h"
#include "plan/writer.h"

namespace lathe::api {

class PlanOutput : public plan::ByteSink {
 public:
  // As long as the output is there.
  virtual Result<std::span<const std::byte>> written() = 0;
  // When all is written. Nothing may fail after this, for the file has taken the place of another.
  virtual Result<> finish() = 0;
};

class PlanInMemory final : public PlanOutput {
 public:
  Result<> begin(uint64_t size) override;
  Result<> write(std::span<const std::byte> part) override;
  Result<std::span<const std::byte>> written() override { return bytes; }
  Result<> finish() override { return {}; }

  std::vector<std::byte> bytes;
};

// The file is there when all is written. It is created with the first bytes: a build that fails leaves none.
class PlanInFile final : public PlanOutput {
 public:
  explicit PlanInFile(std::string path) : path_(std::move(path)) {}
  Result<> begin(uint64_t size) override;
  Result<> write(std::span<const std::byte> part) override { return file_->write(part); }
  Result<std::span<const std::byte>> written() override;
  Result<> finish() override { return file_->commit(); }

 private:
  std::string path_;
  std::optional<AtomicFile> file_;
  std::shared_ptr<const MappedFile> mapped_;
};

}  // namespace lathe::api
