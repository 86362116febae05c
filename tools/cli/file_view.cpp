// SPDX-License-Identifier: Apache-2.0
#include "file_view.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "failure.h"

namespace lathe::cli {

FileView::FileView(const std::string& path) : data_(MAP_FAILED) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat facts {};
  const bool found = file >= 0 && fstat(file, &facts) == 0;
  size_ = found ? static_cast<size_t>(facts.st_size) : 0;
  if (size_) data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
  const int reason = found ? EINVAL : errno;
  if (file >= 0) close(file);
  if (size_ == 0 || data_ == MAP_FAILED)
    throw Failure(fmt::format("Error opening engine file: {}: {}", path,
                              size_   ? std::strerror(errno)
                              : found ? "it is empty"
                                      : std::strerror(reason)));
}

FileView::~FileView() { munmap(data_, size_); }

}  // namespace lathe::cli
