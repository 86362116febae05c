// SPDX-License-Identifier: Apache-2.0
#include "base/library_note.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

namespace lathe {
namespace {

#if defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#else
constexpr uint16_t kMachine = EM_X86_64;
#endif

template <class T>
T read(std::span<const std::byte> file, size_t offset) {
  T value;
  std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

Result<std::vector<Elf64_Phdr>> read_segments(std::span<const std::byte> file) {
  if (file.size() < sizeof(Elf64_Ehdr) || std::memcmp(file.data(), ELFMAG, SELFMAG) != 0)
    return fail(ErrorCode::library_refused, "the file is not a shared library");
  const auto header = read<Elf64_Ehdr>(file, 0);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN || header.e_machine != kMachine ||
      header.e_phentsize != sizeof(Elf64_Phdr))
    return fail(ErrorCode::library_refused, "the file is not a shared library of this machine");
  if (header.e_phoff > file.size() || (file.size() - header.e_phoff) / sizeof(Elf64_Phdr) < header.e_phnum)
    return fail(ErrorCode::library_refused, "the library is truncated: {} bytes", file.size());
  std::vector<Elf64_Phdr> segments;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    segments.push_back(read<Elf64_Phdr>(file, header.e_phoff + i * sizeof(Elf64_Phdr)));
    const Elf64_Phdr& segment = segments.back();
    if (segment.p_offset > file.size() || file.size() - segment.p_offset < segment.p_filesz)
      return fail(ErrorCode::library_refused, "the library is truncated: {} bytes", file.size());
  }
  return segments;
}

size_t padded(size_t bytes) { return (bytes + 3) / 4 * 4; }

}  // namespace

Result<LibraryNote> read_library_note(std::span<const std::byte> file) {
  LATHE_ASSIGN(const std::vector<Elf64_Phdr> segments, read_segments(file));
  const LibraryNote wanted;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_NOTE || segment.p_align > 4) continue;  // of other alignments are others' notes
    auto notes = file.subspan(segment.p_offset, segment.p_filesz);
    while (notes.size() >= sizeof(Elf64_Nhdr)) {
      const auto head = read<Elf64_Nhdr>(notes, 0);
      const size_t size = sizeof head + padded(head.n_namesz) + padded(head.n_descsz);
      if (size > notes.size()) break;
      if (head.n_namesz == wanted.name_bytes && head.n_type == wanted.type && head.n_descsz >= wanted.content_bytes &&
          std::memcmp(notes.data() + sizeof head, wanted.name.data(), wanted.name_bytes) == 0)
        return read<LibraryNote>(notes, 0);
      notes = notes.subspan(size);
    }
  }
  return fail(ErrorCode::library_refused, "the library is none of Lathe's: it has no note that says which version");
}

Result<std::vector<std::byte>> strip_library(std::span<const std::byte> file) {
  LATHE_ASSIGN(const std::vector<Elf64_Phdr> segments, read_segments(file));
  auto header = read<Elf64_Ehdr>(file, 0);
  size_t end = header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr);
  for (const Elf64_Phdr& segment : segments) end = std::max<size_t>(end, segment.p_offset + segment.p_filesz);
  header.e_shoff = 0;
  header.e_shnum = header.e_shstrndx = 0;
  std::vector<std::byte> stripped(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(end));
  std::memcpy(stripped.data(), &header, sizeof header);
  return stripped;
}

}  // namespace lathe
