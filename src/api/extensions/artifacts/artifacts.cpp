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
using artifacts::Look;
using nlohmann::json;
using Plan = std::unique_ptr<nv::IHostMemory>;

// Of an artifact whose files are of no use, and why.
constexpr const char* kFiles = "files";

json changes_of(const Artifact& artifact, const json& key) {
  json changes = artifacts::differences(artifact.note.is_object() ? artifact.note.value("key", json()) : json(), key);
  if (!artifact.problem.empty())
    changes.insert(changes.begin(), json{{"part", kFiles}, {"then", artifact.problem}, {"now", nullptr}});
  return changes;
}

void tell_miss(const std::filesystem::path& engine, const Artifact& artifact, const json& changes, Log& log) {
  const bool is_new = artifact.note.is_null() && !std::filesystem::exists(engine);
  if (is_new) return log.print(Severity::info, "artifact '{}' is not there yet: it is built", engine.string());
  for (const json& change : changes) {
    const auto part = change["part"].get<std::string>();
    const std::string why =
        part == kFiles ? change["then"].get<std::string>()
                       : fmt::format("{} was {}, and is {}", part, change["then"].dump(), change["now"].dump());
    log.print(Severity::info, "artifact '{}' is built again: {}", engine.string(), why);
  }
}

// The caller holds the lock.
Result<Plan> build_and_write(const ArtifactRequest& request, nv::ILogger& logger, json key) {
  artifacts::Built built;
  Result<> done = artifacts::build(request, logger, built);
  json note = {{"key", std::move(key)}, {"parser", std::move(built.parser)}, {"profiles", std::move(built.profiles)}};
  if (!done) {
    // What the parser said is kept; should that fail, too, the build's failure is what the caller is to know.
    if (!note["parser"].empty()) (void)artifacts::write(request.engine(), {}, std::move(note));
    return fail(std::move(done).error());
  }
  const std::span plan(static_cast<const std::byte*>(built.plan->data()), built.plan->size());
  LATHE_TRY(artifacts::write(request.engine(), plan, std::move(note)));
  return std::move(built.plan);
}

Result<nv::IHostMemory*> find_or_build(const ArtifactRequest& request, nv::ILogger& logger, int64_t most_bytes) {
  LoggerLog log(&logger);
  const std::filesystem::path engine = request.engine();
  LATHE_ASSIGN(json key, artifacts::key_of(request));
  const auto find = [&](Artifact& artifact) {
    artifact = artifacts::look_at(engine, Look::at_bytes);
    return changes_of(artifact, key);
  };
  Artifact artifact;
  json changes = find(artifact);
  std::optional<FileLock> lock;
  if (!changes.empty()) {
    LATHE_ASSIGN(lock, artifacts::lock(engine, log));
    changes = find(artifact);  // another one may have built it meanwhile
  }
  if (changes.empty()) {
    log.print(Severity::info, "artifact '{}' is used", engine.string());
    return new HostMemory(artifacts::use(artifact));
  }
  tell_miss(engine, artifact, changes, log);
  LATHE_ASSIGN(Plan plan, build_and_write(request, logger, std::move(key)));
  if (most_bytes > 0) artifacts::prune(request.root(), static_cast<uint64_t>(most_bytes), engine);
  return plan.release();
}

template <class Body>
nv::IHostMemory* json_report(const char* where, Body&& body) noexcept {
  return report_text(where, [&]() -> Result<std::string> {
    LATHE_ASSIGN(const json report, body());
    return report.dump(2, ' ', false, json::error_handler_t::replace);
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
  return json_report("lathe::artifactExplainJson", [&]() -> Result<json> {
    LATHE_ASSIGN(const ArtifactRequest request, artifacts::parse_request(requestJson));
    LATHE_ASSIGN(json key, artifacts::key_of(request));
    json changes = changes_of(artifacts::look_at(request.engine(), Look::at_bytes), key);
    return json{{"engine", request.engine().string()},
                {"hit", changes.empty()},
                {"differences", std::move(changes)},
                {"key", std::move(key)}};
  });
}

nv::IHostMemory* artifactsJson(const char* directory, bool verify) noexcept {
  return json_report("lathe::artifactsJson", [&]() -> Result<json> {
    LATHE_ASSIGN(const std::string folder, folder_of(directory));
    json found = json::array();
    for (const Artifact& artifact : artifacts::list(folder, verify ? Look::at_bytes : Look::at_sizes))
      found.push_back({{"engine", artifact.engine.string()},
                       {"bytes", artifact.bytes},
                       {"used", artifact.used},
                       {"problem", artifact.problem.empty() ? json() : json(artifact.problem)},
                       {"key", artifact.note.is_object() ? artifact.note.value("key", json()) : json()}});
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
