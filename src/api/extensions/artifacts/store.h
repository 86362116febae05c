// SPDX-License-Identifier: Apache-2.0
// Engines on disk: each with a JSON file that is written behind it and names it, so that what a dead writer leaves is
// none.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "api/json_value.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/log.h"

namespace lathe::api::artifacts {

struct Artifact {
  std::filesystem::path engine;
  uint64_t bytes = 0;                      // of its files
  int64_t used = 0;                        // seconds since 1970
  JsonValue note;                          // the JSON file's content, an object; null where it is damaged or missing
  std::string problem;                     // why it is of no use; empty where it is
  std::shared_ptr<const MappedFile> plan;  // whose bytes were verified; null where they were not, or differ
};

std::filesystem::path note_of(const std::filesystem::path& engine);

// How far files are read to tell whether they are those that were written.
enum class Look : uint8_t { at_sizes, at_bytes };

Artifact look_at(const std::filesystem::path& engine, Look look);
std::vector<Artifact> list(const std::filesystem::path& directory, Look look);

// The plan that look_at() has verified, whatever others have done with the file since; it counts as used now.
std::vector<std::byte> use(const Artifact& artifact);
// Both files, the engine first; without a plan the note alone, and no engine. The caller holds the lock.
Result<> write(const std::filesystem::path& engine, std::span<const std::byte> plan, Json note);

// Makes the folder. Of all processes one builds an engine; a builder that dies gives the lock back. Tells when others
// have it, and waits.
Result<FileLock> lock(const std::filesystem::path& engine, Log& log);

// Gives the bytes that were freed. `keep` stays.
uint64_t prune(const std::filesystem::path& directory, uint64_t most_bytes, const std::filesystem::path& keep = {});

}  // namespace lathe::api::artifacts
