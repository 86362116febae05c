// SPDX-License-Identifier: Apache-2.0
#include "onnx/external_data.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <system_error>
#include <vector>

namespace lathe::onnx {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(Descriptor&& other) noexcept : value_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  int get() const { return value_; }
  bool valid() const { return value_ >= 0; }
  int release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;  // non-blocking: a FIFO must not hang us

std::string reason_of(int error) {
  if (error == ELOOP) return "a part of the path is a symbolic link, which external data may not use";
  if (error == EXDEV) return "the path leaves the model's directory";
  return std::generic_category().message(error);
}

// Splits at '/', refusing whatever could leave the directory.
Result<std::vector<std::string>> components_of(std::string_view location) {
  const auto refuse = [](const char* reason) { return fail(ErrorCode::model_external_data, "{}", reason); };
  if (location.empty()) return refuse("the location is empty");
  if (location.front() == '/' || location.front() == '\\') return refuse("absolute paths are not allowed");
  if (location.find('\0') != std::string_view::npos) return refuse("the path holds a zero byte");
  std::vector<std::string> components;
  for (size_t begin = 0; begin <= location.size();) {
    const size_t end = std::min(location.find('/', begin), location.size());
    const std::string_view component = location.substr(begin, end - begin);
    if (component == "..") return refuse("'..' is not allowed in the path");
    if (!component.empty() && component != ".") components.emplace_back(component);
    begin = end + 1;
  }
  if (components.empty()) return refuse("the path names no file");
  return components;
}

// For kernels and sandboxes without openat2: one component at a time, following no link.
int open_by_components(int directory, const std::vector<std::string>& components) {
  Descriptor current(::fcntl(directory, F_DUPFD_CLOEXEC, 0));
  for (size_t i = 0; i + 1 < components.size(); ++i) {
    Descriptor next(::openat(current.get(), components[i].c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!next.valid()) {
      struct stat info {};
      const int error = errno;
      const bool link =
          ::fstatat(current.get(), components[i].c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode);
      errno = link ? ELOOP : error;
      return -1;
    }
    current = std::move(next);
  }
  return ::openat(current.get(), components.back().c_str(), kOpenFlags);
}

int open_beneath(int directory, const std::vector<std::string>& components) {
  std::string path = components.front();
  for (size_t i = 1; i < components.size(); ++i) path += "/" + components[i];
  struct open_how how {};
  how.flags = kOpenFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  const long descriptor = ::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how);
  if (descriptor >= 0 || (errno != ENOSYS && errno != EPERM && errno != EINVAL)) return static_cast<int>(descriptor);
  return open_by_components(directory, components);
}

Result<std::optional<uint64_t>> number_of(std::string_view text, const char* what) {
  if (text.empty()) return std::optional<uint64_t>();
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return fail(ErrorCode::model_external_data, "its {} '{}' is not a number of bytes", what, text);
  return std::optional(value);
}

Result<std::span<const std::byte>> cut(const ExternalReference& reference, std::span<const std::byte> file,
                                       uint64_t size) {
  LATHE_ASSIGN(const std::optional<uint64_t> offset, number_of(reference.offset, "offset"));
  LATHE_ASSIGN(const std::optional<uint64_t> length, number_of(reference.length, "length"));
  if (length && *length != size)
    return fail(ErrorCode::model_external_data, "its length is given as {} bytes, but its type and dims need {}",
                *length, size);
  const uint64_t begin = offset.value_or(0);
  if (begin > file.size() || size > file.size() - begin)
    return fail(ErrorCode::model_external_data, "it needs {} bytes from offset {}, but the file has {}", size, begin,
                file.size());
  return file.subspan(begin, size);
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> ExternalData::map(std::string_view location) {
  if (directory_.empty())
    return fail(
        ErrorCode::model_external_data,
        "the model was read from memory, so its directory is unknown; read it from its file or give the directory");
  LATHE_ASSIGN(const std::vector<std::string> components, components_of(location));
  const Descriptor directory(::open(directory_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid())
    return fail(ErrorCode::model_external_data, "cannot open '{}': {}", directory_, reason_of(errno));
  Descriptor file(open_beneath(directory.get(), components));
  if (!file.valid()) return fail(ErrorCode::model_external_data, "{}", reason_of(errno));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return fail(ErrorCode::model_external_data, "{}", reason_of(errno));
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::model_external_data, "it is not a regular file");
  if (info.st_nlink > 1)
    return fail(ErrorCode::model_external_data, "it has {} hard links; copy it so that it has one name only",
                info.st_nlink);
  return MappedFile::map_descriptor(file.release(), fmt::format("{}/{}", directory_, location));
}

Result<ExternalData::Piece> ExternalData::find(std::string_view tensor, const ExternalReference& reference,
                                               uint64_t size) {
  const auto blame = [&](const Error& error) {
    return fail(ErrorCode::model_external_data, "tensor '{}', file '{}': {}", tensor, reference.location,
                error.message);
  };
  auto known = files_.find(reference.location);
  if (known == files_.end()) {
    auto file = map(reference.location);
    if (!file) return blame(file.error());
    known = files_.emplace(std::string(reference.location), std::move(*file)).first;
  }
  const auto bytes = cut(reference, known->second->bytes(), size);
  if (!bytes) return blame(bytes.error());
  return Piece{*bytes, known->second};
}

std::vector<std::shared_ptr<const MappedFile>> ExternalData::files() const {
  std::vector<std::shared_ptr<const MappedFile>> files;
  for (const auto& [location, file] : files_) files.push_back(file);
  return files;
}

}  // namespace lathe::onnx
