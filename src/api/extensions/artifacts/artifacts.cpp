// SPDX-License-Identifier: Apache-2.0
// Engines beside their models; see lathe_artifacts.h.
#include "lathe_artifacts.h"

#include "api/convert.h"
#include "api/extensions/artifacts/build.h"
#include "api/extensions/artifacts/key.h"
#include "api/extensions/artifacts/store.h"
#include "api/host_memory.h"
#include "api/report_text.h"

namespace lathe {
namespace {

using namespace api;
using artifacts::Artifact;
using artifacts::ArtifactRequest;
using artifacts::Difference;
using artifacts::Look;
using Plan = std::unique_ptr<nv::IHostMemory>;

// Of an artifact whose files are of no use, and why.
constexpr const char* kFiles = "files";

bool is_hit(const Artifact& artifact, const JsonValue& key) {
  return artifact.problem.empty() && artifacts::differences(artifact.note["key"], key).empty();
}

// [{"part", "then", "now"}]
Json changes_of(const Artifact& artifact, const JsonValue& key) {
  Json changes = Json::array();
  if (!artifact.problem.empty())
    changes.push_back(json_object({{"part", kFiles}, {"then", artifact.problem}, {"now", nullptr}}));
  for (const Difference& change : artifacts::differences(artifact.note["key"], key))
    changes.push_back(json_object({{"part", change.part}, {"then", change.then.json()}, {"now", change.now.json()}}));
  return changes;
}

void tell_miss(const std::filesystem::path& engine, const Artifact& artifact, const JsonValue& key, Log& log) {
  const bool is_new = artifact.note.is(JsonValue::Kind::null) && !std::filesystem::exists(engine);
  if (is_new) return log.print(Severity::info, "artifact '{}' is not there yet: it is built", engine.string());
  const auto tell = [&](std::string_view why) {
    log.print(Severity::info, "artifact '{}' is built again: {}", engine.string(), why);
  };
  if (!artifact.problem.empty()) tell(artifact.problem);
  for (const Difference& change : artifacts::differences(artifact.note["key"], key))
    tell(fmt::format("{} was {}, and is {}", change.part, change.then.json().text(), change.now.json().text()));
}

// The caller holds the lock.
Result<Plan> build_and_write(const ArtifactRequest& request, nv::ILogger& logger, const JsonValue& key) {
  artifacts::Built built;
  Result<> done = artifacts::build(request, logger, built);
  Json note = json_object({{"key", key.json()}, {"parser", built.parser}, {"profiles", built.profiles.json()}});
  if (!done) {
    // What the parser said is kept; should that fail, too, the build's failure is what the caller is to know.
    if (built.parser.text() != Json::array().text()) (void)artifacts::write(request.engine(), {}, std::move(note));
    return fail(std::move(done).error());
  }
  const std::span plan(static_cast<const std::byte*>(built.plan->data()), built.plan->size());
  LATHE_TRY(artifacts::write(request.engine(), plan, std::move(note)));
  return std::move(built.plan);
}

Result<nv::IHostMemory*> find_or_build(const ArtifactRequest& request, nv::ILogger& logger, int64_t most_bytes) {
  LoggerLog log(&logger);
  const std::filesystem::path engine = request.engine();
  LATHE_ASSIGN(const JsonValue key, artifacts::key_of(request));
  Artifact artifact = artifacts::look_at(engine, Look::at_bytes);
  std::optional<FileLock> lock;
  if (!is_hit(artifact, key)) {
    LATHE_ASSIGN(lock, artifacts::lock(engine, log));
    artifact = artifacts::look_at(engine, Look::at_bytes);  // another one may have built it meanwhile
  }
  if (is_hit(artifact, key)) {
    log.print(Severity::info, "artifact '{}' is used", engine.string());
    return new HostMemory(artifacts::use(artifact));
  }
  tell_miss(engine, artifact, key, log);
  LATHE_ASSIGN(Plan plan, build_and_write(request, logger, key));
  if (most_bytes > 0) artifacts::prune(request.root(), static_cast<uint64_t>(most_bytes), engine);
  return plan.release();
}

template <class Body>
nv::IHostMemory* json_report(const char* where, Body&& body) noexcept {
  return report_text(where, [&]() -> Result<std::string> {
    LATHE_ASSIGN(const Json report, body());
    return report.indented();
  });
}

Result<std::string> folder_of(const char* directory) {
  LATHE_ASSIGN(std::string path, to_string(directory, "directory"));
  if (!std::filesystem::is_directory(path)) return fail(ErrorCode::file_not_found, "'{}' is no folder", path);
  return path;
}

}  // namespace

nv::IHostMemory* artifactPlan(const char* requestJson, nv::ILogger& logger, int64_t mostBytes) noexcept {
  const Reporter reporter(&logger);
  return guarded(reporter, "lathe::artifactPlan", static_cast<nv::IHostMemory*>(nullptr),
                 [&]() -> Result<nv::IHostMemory*> {
                   if (mostBytes < 0) return fail(ErrorCode::invalid_argument, "{} bytes are negative", mostBytes);
                   LATHE_ASSIGN(const ArtifactRequest request, artifacts::parse_request(requestJson));
                   return find_or_build(request, logger, mostBytes);
                 });
}

nv::IHostMemory* artifactExplainJson(const char* requestJson) noexcept {
  return json_report("lathe::artifactExplainJson", [&]() -> Result<Json> {
    LATHE_ASSIGN(const ArtifactRequest request, artifacts::parse_request(requestJson));
    LATHE_ASSIGN(const JsonValue key, artifacts::key_of(request));
    const Artifact artifact = artifacts::look_at(request.engine(), Look::at_bytes);
    return json_object({{"engine", request.engine().string()},
                        {"hit", is_hit(artifact, key)},
                        {"differences", changes_of(artifact, key)},
                        {"key", key.json()}});
  });
}

nv::IHostMemory* artifactsJson(const char* directory, bool verify) noexcept {
  return json_report("lathe::artifactsJson", [&]() -> Result<Json> {
    LATHE_ASSIGN(const std::string folder, folder_of(directory));
    Json found = Json::array();
    for (const Artifact& artifact : artifacts::list(folder, verify ? Look::at_bytes : Look::at_sizes))
      found.push_back(json_object({{"engine", artifact.engine.string()},
                                   {"bytes", artifact.bytes},
                                   {"used", artifact.used},
                                   {"problem", artifact.problem.empty() ? Json(nullptr) : Json(artifact.problem)},
                                   {"key", artifact.note["key"].json()}}));
    return found;
  });
}

int64_t pruneArtifacts(const char* directory, int64_t mostBytes) noexcept {
  return guarded(silent(), "lathe::pruneArtifacts", int64_t{-1}, [&]() -> Result<int64_t> {
    if (mostBytes < 0) return fail(ErrorCode::invalid_argument, "{} bytes are negative", mostBytes);
    LATHE_ASSIGN(const std::string folder, folder_of(directory));
    return static_cast<int64_t>(artifacts::prune(folder, static_cast<uint64_t>(mostBytes)));
  });
}

}  // namespace lathe
