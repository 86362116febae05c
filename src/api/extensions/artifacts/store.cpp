// SPDX-License-Identifier: Apache-2.0
#include "api/extensions/artifacts/store.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "base/atomic_file.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/hex.h"

namespace lathe::api::artifacts {
namespace {

namespace fs = std::filesystem;
using Kind = JsonValue::Kind;

constexpr auto kPatience = std::chrono::hours(24);  // of those who wait for a builder
constexpr auto kNone = std::chrono::milliseconds(0);

fs::path with_ending(const fs::path& engine, std::string_view ending) {
  fs::path path = engine;
  path += ending;
  return path;
}

uint64_t size_of(const fs::path& file) {
  std::error_code error;
  const auto bytes = fs::file_size(file, error);
  return error ? 0 : bytes;
}

// Why the artifact is of no use; of one that was read, sets its plan.
std::string check(Artifact& artifact, Look look) {
  const JsonValue& plan = artifact.note["plan"];
  if (!artifact.note["key"].is(Kind::object) || !plan.is(Kind::object)) return "its JSON file is missing or damaged";
  std::error_code error;
  if (!fs::exists(artifact.engine, error)) return "the engine is missing";
  if (plan["bytes"].integer() != static_cast<int64_t>(size_of(artifact.engine)))
    return "the engine has another size than was written";
  if (look == Look::at_sizes) return "";
  auto file = MappedFile::open(artifact.engine.string());
  if (!file) return "the engine cannot be read";
  if (plan["digest"].text() != to_hex(digest_of((*file)->bytes())))
    return "the engine's bytes are not those that were written";
  artifact.plan = *std::move(file);
  return "";
}

JsonValue read_note(const fs::path& path) {
  const auto file = MappedFile::open(path.string());
  if (!file) return {};
  const std::span<const std::byte> bytes = (*file)->bytes();
  Result<JsonValue> note = JsonValue::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return note && note->is(Kind::object) ? *std::move(note) : JsonValue();
}

Result<FileLock> take_lock(const fs::path& engine, std::chrono::milliseconds patience) {
  return FileLock::take(with_ending(engine, ".lock").string(), FileLock::Kind::exclusive, patience);
}

uint64_t remove_files(const fs::path& engine) {
  uint64_t freed = 0;
  for (const fs::path& file : {note_of(engine), engine}) {
    const uint64_t bytes = size_of(file);
    std::error_code error;
    if (fs::remove(file, error)) freed += bytes;
  }
  return freed;
}

}  // namespace

fs::path note_of(const fs::path& engine) { return with_ending(engine, ".json"); }

Artifact look_at(const fs::path& engine, Look look) {
  Artifact artifact;
  artifact.engine = engine;
  artifact.bytes = size_of(engine) + size_of(note_of(engine));
  artifact.note = read_note(note_of(engine));
  artifact.problem = check(artifact, look);
  std::error_code error;
  const auto time = fs::last_write_time(note_of(engine), error);
  if (!error)
    artifact.used =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::file_clock::to_sys(time).time_since_epoch())
            .count();
  return artifact;
}

std::vector<Artifact> list(const fs::path& directory, Look look) {
  std::set<fs::path> engines;  // <precision>/bs<batch>/<model>.engine, and nothing else that lies in the folder
  for (const fs::path& precision : entries_of(directory))
    for (const fs::path& batch : entries_of(precision)) {
      if (!batch.filename().string().starts_with("bs")) continue;
      for (fs::path file : entries_of(batch)) {
        if (file.extension() == ".json") file.replace_extension();
        if (file.extension() == ".engine") engines.insert(std::move(file));
      }
    }
  std::vector<Artifact> found;
  for (const fs::path& engine : engines) found.push_back(look_at(engine, look));
  return found;
}

std::vector<std::byte> use(const Artifact& artifact) {
  std::error_code ignored;  // a folder that cannot be written is as good
  fs::last_write_time(note_of(artifact.engine), fs::file_time_type::clock::now(), ignored);
  return {artifact.plan->bytes().begin(), artifact.plan->bytes().end()};
}

Result<> write(const fs::path& engine, std::span<const std::byte> plan, Json note) {
  for (const fs::path& file : {engine, note_of(engine)}) remove_leftovers(file.string());
  if (plan.empty()) remove_files(engine);
  note.add("plan", json_object({{"bytes", plan.size()}, {"digest", to_hex(digest_of(plan))}}));
  const std::string text = note.indented() + "\n";
  if (!plan.empty()) LATHE_TRY(write_file_atomically(engine.string(), plan));
  return write_file_atomically(note_of(engine).string(), std::as_bytes(std::span(text)));
}

Result<FileLock> lock(const fs::path& engine, Log& log) {
  std::error_code ignored;  // the lock file tells
  fs::create_directories(engine.parent_path(), ignored);
  Result<FileLock> held = take_lock(engine, kNone);
  if (held || held.error().code != ErrorCode::invalid_state) return held;
  log.print(Severity::info, "artifact '{}' is being built by another process: this one waits for it", engine.string());
  return take_lock(engine, kPatience);
}

uint64_t prune(const fs::path& directory, uint64_t most_bytes, const fs::path& keep) {
  std::vector<Artifact> all = list(directory, Look::at_sizes);
  std::ranges::sort(all, {},
                    [](const Artifact& artifact) { return std::pair(artifact.problem.empty(), artifact.used); });
  uint64_t bytes = 0, freed = 0;
  for (const Artifact& artifact : all) bytes += artifact.bytes;
  for (const Artifact& artifact : all) {
    if (artifact.problem.empty() && bytes <= most_bytes) break;
    if (artifact.engine == keep) continue;
    const auto held = take_lock(artifact.engine, kNone);
    if (!held && held.error().code == ErrorCode::invalid_state) continue;  // it is being built
    const uint64_t gone = remove_files(artifact.engine);
    bytes -= std::min(bytes, gone);
    freed += gone;
  }
  return freed;
}

}  // namespace lathe::api::artifacts
