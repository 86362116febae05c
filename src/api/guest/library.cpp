// SPDX-License-Identifier: Apache-2.0
#include "api/guest/library.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <mutex>
#include <system_error>

#include "api/other_generation.h"
#include "base/file.h"
#include "base/inflate.h"
#include "base/never_destroyed.h"
#include "plan/limits.h"

namespace lathe::api::guest {
namespace {

std::string errno_text() { return std::generic_category().message(errno); }

std::string loader_text() {
  const char* text = dlerror();
  return text ? text : "the loader says no more";
}

// Images of plans that are mapped now.
struct Images {
  std::recursive_mutex mutex;  // where mapping one fails, it is unmapped by the thread that has the mutex
  std::map<Digest, std::weak_ptr<const Library>> mapped;
};
Images& images() {
  static NeverDestroyed<Images> all;  // for engines
  return *all;
}

}  // namespace

Result<> check_note(const LibraryNote& note, const std::string& what) {
  const Version version = note.library_version(), own = library_version();
  if (note.generation != NV_TENSORRT_MAJOR && note.generation != kOtherGeneration)
    return fail(
        ErrorCode::library_refused,
        "{} is Lathe {} with interface {}, and this Lathe {} knows 10 and 11; take that version's library for one "
        "of these",
        what, version.to_string(), note.generation, own.to_string());
  if (version > own)
    return fail(ErrorCode::library_refused, "{} is {}: a runtime loads those of versions up to its own. Update Lathe",
                what, version.newer_than(own));
  if (version < kOldestCompatible)
    return fail(ErrorCode::library_refused, "{} is Lathe {}; runtimes are loaded from Lathe {} on", what,
                version.to_string(), kOldestCompatible.to_string());
  return {};
}

Result<std::shared_ptr<const Library>> Library::open(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> whole(::realpath(path.c_str(), nullptr), &std::free);
  if (!whole) return fail(ErrorCode::file_not_found, "cannot open '{}': {}", path, errno_text());
  LATHE_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(whole.get()));
  const std::string what = fmt::format("'{}'", path);
  Result<LibraryNote> note = read_library_note(file->bytes());
  if (!note) return fail(with_context(std::move(note).error(), what));
  LATHE_TRY(check_note(*note, what));
  Mapped handle(::dlopen(whole.get(), RTLD_NOW | RTLD_LOCAL));
  if (!handle) return fail(ErrorCode::library_refused, "{} cannot be loaded: {}", what, loader_text());
  return std::shared_ptr<const Library>(new Library(*note, std::move(handle), nullptr));
}

Result<std::shared_ptr<const Library>> Library::map_image(std::span<const std::byte> compressed, const Version& version,
                                                          const ImagePolicy& policy) {
  const std::string what = "the plan's own runtime";
  LATHE_ASSIGN(std::unique_ptr<PrivateFile> file, PrivateFile::make(policy, what));
  LATHE_TRY(inflate_to(compressed, plan::kMaxHostCode,
                       [&](std::span<const std::byte> part) -> Result<> { return file->add(part); }));
  LATHE_ASSIGN(const std::shared_ptr<const MappedFile> image, MappedFile::open(file->path()));
  LATHE_ASSIGN(const LibraryNote note, read_library_note(image->bytes()));
  LATHE_TRY(check_note(note, what));
  if (note.library_version() != version)
    return fail(ErrorCode::library_refused, "the plan is of Lathe {} and holds a runtime of Lathe {}; build it again",
                version.to_string(), note.library_version().to_string());
  Mapped handle(::dlopen(file->path().c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!handle)
    return fail(ErrorCode::library_refused, "{} cannot be loaded from '{}': {}", what, file->path(), loader_text());
  file->hide();
  return std::shared_ptr<const Library>(new Library(note, std::move(handle), std::move(file)));
}

Result<std::shared_ptr<const Library>> Library::open_image(std::span<const std::byte> compressed, const Digest& digest,
                                                           const Version& version, const ImagePolicy& policy) {
  Images& all = images();
  const std::lock_guard lock(all.mutex);
  if (const auto known = all.mapped.find(digest); known != all.mapped.end())
    if (std::shared_ptr<const Library> library = known->second.lock()) return library;
  LATHE_ASSIGN(std::shared_ptr<const Library> library, map_image(compressed, version, policy));
  all.mapped[digest] = library;
  return library;
}

Library::~Library() {
  if (file_) {
    const std::lock_guard lock(images().mutex);
    std::erase_if(images().mapped, [](const auto& image) { return image.second.expired(); });
  }
  // Devices that are kept open hold threads and memory, which nothing would give back afterwards.
  if (auto* const release = function<void()>("_ZN5lathe18releaseIdleDevicesEv")) release();
}

void Library::Unmapper::operator()(void* handle) const { ::dlclose(handle); }

void* Library::symbol(const char* name) const { return ::dlsym(handle_.get(), name); }

}  // namespace lathe::api::guest
