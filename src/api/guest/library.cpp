// SPDX-License-Identifier: Apache-2.0
#include "api/guest/library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <map>
#include <mutex>
#include <system_error>

#include "NvInferVersion.h"
#include "base/deflate.h"
#include "base/file.h"
#include "plan/limits.h"

namespace lathe::api::guest {
namespace {

constexpr uint32_t kGeneration = NV_TENSORRT_MAJOR;

std::string errno_text() { return std::generic_category().message(errno); }

std::string loader_text() {
  const char* text = dlerror();
  return text ? text : "the loader says no more";
}

// An open file that nobody else sees, and by which name the loader finds it.
struct PrivateFile {
  int descriptor = -1;
  std::string path;
  bool is_linked = false;  // in a folder

  PrivateFile() = default;
  PrivateFile(const PrivateFile&) = delete;
  PrivateFile& operator=(const PrivateFile&) = delete;
  ~PrivateFile() {
    if (is_linked) ::unlink(path.c_str());
    if (descriptor >= 0) ::close(descriptor);
  }
};

// The loader takes equal names for the same library, even of one that is gone but for threads that still use it:
// slashes make the name another one.
std::string path_of(int descriptor) {
  static std::atomic<unsigned> files = 0;
  constexpr unsigned kNames = 512;
  return fmt::format("/proc/self/fd{}{}", std::string(1 + files++ % kNames, '/'), descriptor);
}

bool open_in_memory(PrivateFile& file) {
  constexpr unsigned kExecutable = 0x10;  // MFD_EXEC of Linux 6.3, where a file may otherwise not be executed
  constexpr const char* kName = "lathe_lean";
  file.descriptor = ::memfd_create(kName, MFD_CLOEXEC | kExecutable);
  if (file.descriptor < 0 && errno == EINVAL) file.descriptor = ::memfd_create(kName, MFD_CLOEXEC);
  if (file.descriptor < 0) return false;
  file.path = path_of(file.descriptor);
  return true;
}

Result<> open_in_folder(PrivateFile& file, const std::string& folder) {
  LATHE_TRY(check_directory(folder));
  file.path = folder + "/lathe_lean_XXXXXX";
  file.descriptor = ::mkostemp(file.path.data(), O_CLOEXEC);  // mode 0600
  if (file.descriptor < 0)
    return fail(ErrorCode::file_read, "cannot make a temporary file in '{}': {}", folder, errno_text());
  file.is_linked = true;
  return {};
}

Result<> open_private(PrivateFile& file, const ImagePolicy& policy) {
  std::string reason = "TempfileControlFlags do not allow files in memory";
  if (policy.in_memory) {
    if (open_in_memory(file)) return {};
    reason = fmt::format("the kernel gives no file in memory ({})", errno_text());
  }
  if (!policy.temporary_files)
    return fail(ErrorCode::library_refused,
                "the plan's own runtime cannot be loaded: {}, nor temporary ones; allow one by "
                "IRuntime::setTempfileControlFlags()",
                reason);
  return open_in_folder(file, policy.directory.empty() ? default_directory() : policy.directory);
}

Result<> write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return fail(ErrorCode::file_read, "cannot write the plan's own runtime: {}", errno_text());
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

// Images of plans that are mapped now. Never destroyed: engines may outlive main().
struct Images {
  std::mutex mutex;
  std::map<Digest, std::weak_ptr<const Library>> mapped;
};
Images& images() {
  static auto& all = *new Images;
  return all;
}

}  // namespace

Result<> check_note(const LibraryNote& note, const std::string& what) {
  const Version version = note.library_version(), own = library_version();
  if (note.generation != kGeneration)
    return fail(ErrorCode::library_refused,
                "{} is Lathe {} with interface {}, whose classes are laid out differently from those of {} that this "
                "program uses; take that version's library for interface {}",
                what, version.to_string(), note.generation, kGeneration, kGeneration);
  if (version > own)
    return fail(ErrorCode::library_refused,
                "{} is Lathe {}, which is newer than this Lathe {}: a runtime loads those of versions up to its own. "
                "Update Lathe",
                what, version.to_string(), own.to_string());
  if (version < kOldestCompatible)
    return fail(ErrorCode::library_refused, "{} is Lathe {}; runtimes are loaded from Lathe {} on", what,
                version.to_string(), kOldestCompatible.to_string());
  return {};
}

std::string default_directory() {
  const char* directory = std::getenv("TMPDIR");
  return directory && *directory ? directory : "/tmp";
}

Result<> check_directory(const std::string& path) {
  if (::access((path + "/").c_str(), R_OK | W_OK | X_OK) == 0) return {};
  return fail(ErrorCode::file_read, "temporary files cannot be made in '{}': {}", path, errno_text());
}

Result<std::shared_ptr<const Library>> Library::open(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> whole(::realpath(path.c_str(), nullptr), &std::free);
  if (!whole) return fail(ErrorCode::file_not_found, "cannot open '{}': {}", path, errno_text());
  LATHE_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(whole.get()));
  const std::string what = fmt::format("'{}'", path);
  Result<LibraryNote> note = read_library_note(file->bytes());
  if (!note) return fail(with_context(std::move(note).error(), what));
  LATHE_TRY(check_note(*note, what));
  void* const handle = ::dlopen(whole.get(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) return fail(ErrorCode::library_refused, "{} cannot be loaded: {}", what, loader_text());
  return std::shared_ptr<const Library>(new Library(*note, handle, -1));
}

Result<std::shared_ptr<const Library>> Library::map_image(std::span<const std::byte> image, const LibraryNote& note,
                                                          const ImagePolicy& policy) {
  PrivateFile file;
  LATHE_TRY(open_private(file, policy));
  LATHE_TRY(write_all(file.descriptor, image));
  void* const handle = ::dlopen(file.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return fail(ErrorCode::library_refused, "the plan's own runtime cannot be loaded from {}: {}",
                file.is_linked ? fmt::format("'{}'", file.path) : "memory", loader_text());
  // Its number must not become that of another file while the loader knows the library by it.
  const int kept = file.is_linked ? -1 : std::exchange(file.descriptor, -1);
  return std::shared_ptr<const Library>(new Library(note, handle, kept));
}

Result<std::shared_ptr<const Library>> Library::open_image(std::span<const std::byte> compressed, const Digest& digest,
                                                           const Version& version, const ImagePolicy& policy) {
  Images& all = images();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.mapped, [](const auto& image) { return image.second.expired(); });
  if (const auto known = all.mapped.find(digest); known != all.mapped.end())
    if (std::shared_ptr<const Library> library = known->second.lock()) return library;
  LATHE_ASSIGN(const std::vector<std::byte> image, inflate_bytes(compressed, plan::kMaxHostCode));
  LATHE_ASSIGN(const LibraryNote note, read_library_note(image));
  LATHE_TRY(check_note(note, "the plan's own runtime"));
  if (note.library_version() != version)
    return fail(ErrorCode::library_refused, "the plan is of Lathe {} and holds a runtime of Lathe {}; build it again",
                version.to_string(), note.library_version().to_string());
  LATHE_ASSIGN(std::shared_ptr<const Library> library, map_image(image, note, policy));
  all.mapped[digest] = library;
  return library;
}

Library::~Library() {
  // Devices that are kept open hold threads and memory, which nothing would give back afterwards.
  if (auto* const release = function<void()>("_ZN5lathe18releaseIdleDevicesEv")) release();
  ::dlclose(handle_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

void* Library::symbol(const char* name) const { return ::dlsym(handle_, name); }

}  // namespace lathe::api::guest
