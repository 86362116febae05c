// SPDX-License-Identifier: Apache-2.0
// A guest: a runtime library, of another version mostly, that is mapped into this process beside this one. Its names
// stay its own (RTLD_LOCAL; it was linked with -Bsymbolic), so that several versions can be there at a time.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "api/guest/private_file.h"
#include "base/hash.h"
#include "base/library_note.h"
#include "base/result.h"

namespace lathe::api::guest {

// What the note of a library must say for it to be used here: a version from kOldestCompatible to this one, and a
// generation of the interface that is known. `what` names the library.
Result<> check_note(const LibraryNote& note, const std::string& what);

class Library {
 public:
  // Reads what the file is before any of its code runs. One that is mapped already is not mapped again (is_same()).
  static Result<std::shared_ptr<const Library>> open(const std::string& path);
  // The same of a section of a plan: the library, compressed, with the section's digest. Images with equal digests are
  // mapped once. Fails where the library is not of the version.
  static Result<std::shared_ptr<const Library>> open_image(std::span<const std::byte> compressed, const Digest& digest,
                                                           const Version& version, const ImagePolicy& policy);
  ~Library();  // unmaps it
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const LibraryNote& note() const { return note_; }
  bool is_same(const Library& other) const { return handle_ == other.handle_; }
  // Null where it has none of that name.
  template <class Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }

 private:
  struct Unmapper {
    void operator()(void* handle) const;
  };
  using Mapped = std::unique_ptr<void, Unmapper>;
  Library(const LibraryNote& note, Mapped handle, std::unique_ptr<PrivateFile> file)
      : note_(note), file_(std::move(file)), handle_(std::move(handle)) {}
  static Result<std::shared_ptr<const Library>> map_image(std::span<const std::byte> compressed, const Version& version,
                                                          const ImagePolicy& policy);
  void* symbol(const char* name) const;

  LibraryNote note_;
  std::unique_ptr<PrivateFile> file_;  // of an image; closed behind the library
  Mapped handle_;
};

}  // namespace lathe::api::guest
