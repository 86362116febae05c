// SPDX-License-Identifier: Apache-2.0
// numpy's .npz: a ZIP archive of .npy files.
#include <fmt/core.h>

#include "failure.h"
#include "tensor_file.h"

namespace lathe::cli {
namespace {

// Reads little-endian numbers and pieces of the archive, whose offsets nobody vouches for.
class Archive {
 public:
  explicit Archive(std::string_view bytes) : bytes_(bytes) {}

  uint64_t number(size_t at, size_t width) const {
    const std::string_view digits = piece(at, width);
    uint64_t value = 0;
    for (size_t i = width; i-- > 0;) value = value << 8 | static_cast<uint8_t>(digits[i]);
    return value;
  }
  std::string_view piece(size_t at, size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) throw Failure("the .npz file is cut short");
    return bytes_.substr(at, size);
  }
  size_t directory_end() const {
    const size_t found = bytes_.rfind(std::string_view("PK\5\6", 4));
    if (found == std::string_view::npos) throw Failure("this is not a .npz file: it has no directory");
    return found;
  }

 private:
  std::string_view bytes_;
};

constexpr uint64_t kStored = 0, kDeflated = 8;

std::string content(const Archive& archive, size_t header, size_t entry) {
  const uint64_t method = archive.number(entry + 10, 2), packed = archive.number(entry + 20, 4),
                 size = archive.number(entry + 24, 4);
  if (packed == 0xffffffff || size == 0xffffffff) throw Failure("it holds an array above 4 GiB: use .npy files");
  const size_t begin = header + 30 + archive.number(header + 26, 2) + archive.number(header + 28, 2);
  const std::string_view bytes = archive.piece(begin, packed);
  if (method == kStored) return std::string(bytes);
  if (method == kDeflated) return inflated(bytes, size);
  throw Failure(fmt::format("it is compressed by method {} of ZIP: use numpy.savez or savez_compressed", method));
}

}  // namespace

std::map<std::string, std::string> parse_npz(std::string_view bytes) {
  const Archive archive(bytes);
  const size_t end = archive.directory_end();
  size_t entry = archive.number(end + 16, 4);
  std::map<std::string, std::string> arrays;
  for (uint64_t left = archive.number(end + 10, 2); left > 0; --left) {
    if (archive.piece(entry, 4) != std::string_view("PK\1\2", 4)) throw Failure("the directory of the .npz is damaged");
    const size_t name_length = archive.number(entry + 28, 2);
    std::string_view name = archive.piece(entry + 46, name_length);
    if (name.ends_with(".npy")) name.remove_suffix(4);
    arrays[std::string(name)] = content(archive, archive.number(entry + 42, 4), entry);
    entry += 46 + name_length + archive.number(entry + 30, 2) + archive.number(entry + 32, 2);
  }
  return arrays;
}

}  // namespace lathe::cli
