// SPDX-License-Identifier: Apache-2.0
#include "api/builder/compatible_plan.h"

#include <filesystem>

#include "api/guest/installed.h"
#include "base/deflate.h"
#include "base/file.h"
#include "base/library_note.h"
#include "base/version.h"
#include "plan/header.h"
#include "plan/plugin_libraries.h"

namespace lathe::api {
namespace {

// As it stands in a plan.
Result<std::vector<std::byte>> lean_runtime() {
  LATHE_ASSIGN(const std::string path, guest::installed_lean());
  LATHE_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  Result<LibraryNote> note = read_library_note(file->bytes());
  if (!note) return fail(with_context(std::move(note).error(), fmt::format("'{}'", path)));
  if (note->library_version() != library_version() || note->generation != NV_TENSORRT_MAJOR)
    return fail(
        ErrorCode::library_refused,
        "'{}' is Lathe {} with interface {}, and plans of this Lathe {} with interface {} cannot hold it: install "
        "the runtime library of this version beside this one",
        path, note->library_version().to_string(), note->generation, library_version().to_string(), NV_TENSORRT_MAJOR);
  LATHE_ASSIGN(const std::vector<std::byte> stripped, strip_library(file->bytes()));
  return deflate_bytes(stripped);
}

Result<std::vector<std::byte>> plugin_libraries(const std::vector<std::string>& paths) {
  std::vector<plan::PluginLibrary> libraries;
  for (const std::string& path : paths) {
    LATHE_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
    Result<std::vector<std::byte>> content = strip_library(file->bytes());
    if (!content) return fail(with_context(std::move(content).error(), fmt::format("plugin library '{}'", path)));
    libraries.push_back({std::filesystem::path(path).filename().string(), *std::move(content)});
  }
  return plan::pack_plugin_libraries(libraries);
}

}  // namespace

void note_compatibility(const BuilderConfig& settings, plan::Amendments& amendments) {
  if (!settings.has(nv::BuilderFlag::kVERSION_COMPATIBLE)) return;
  amendments.compatibility = plan::Compatibility::later_versions;
  amendments.record_format = record_formats().newest;
}

Result<> add_libraries(const BuilderConfig& settings, plan::Amendments& amendments, Log& log) {
  const bool excludes = settings.has(nv::BuilderFlag::kEXCLUDE_LEAN_RUNTIME);
  if (!settings.has(nv::BuilderFlag::kVERSION_COMPATIBLE)) {
    if (excludes)
      log.print(
          Severity::warning,
          "BuilderFlag::kEXCLUDE_LEAN_RUNTIME has no effect: the plan holds a runtime with kVERSION_COMPATIBLE alone");
    if (!settings.plugins().empty())
      log.print(Severity::warning,
                "IBuilderConfig::setPluginsToSerialize has no effect: the plan holds plugin libraries with "
                "kVERSION_COMPATIBLE "
                "alone; load them by the runtime's plugin registry");
    return {};
  }
  if (!settings.plugins().empty()) {
    LATHE_ASSIGN(std::vector<std::byte> plugins, plugin_libraries(settings.plugins()));
    amendments.sections.emplace_back(plan::kPluginLibraries, std::move(plugins));
  }
  if (excludes) return {};
  Result<std::vector<std::byte>> runtime = lean_runtime();
  if (!runtime)
    return fail(
        with_context(std::move(runtime).error(),
                     "BuilderFlag::kVERSION_COMPATIBLE puts the runtime into the plan, unless kEXCLUDE_LEAN_RUNTIME is "
                     "set, too"));
  amendments.sections.emplace_back(plan::kLeanRuntime, *std::move(runtime));
  return {};
}

}  // namespace lathe::api
