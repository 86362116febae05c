// SPDX-License-Identifier: Apache-2.0
// A runtime of another version at work for one of ours: it lives, and its library stays mapped, until the last of the
// objects dies that it has made, in whatever order. Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "NvInferRuntime.h"
#include "api/guest/library.h"
#include "api/guest/table.h"
#include "api/report.h"

namespace lathe::api::guest {

class OtherSide;
struct ObjectClass;

class Guest {
 public:
  ~Guest();
  // A new runtime of the library. `host` is kept while objects of the guest live: they use its registry, say.
  static Result<nv::IRuntime*> start(std::shared_ptr<const Library> library, std::shared_ptr<const Reporter> reporter,
                                     std::shared_ptr<const void> host);

  // Takes up an object that the guest has made, or null, and returns it. Null and one report where memory is short.
  template <class I>
  I* adopt(I* object) noexcept;
  // An object is gone; the last one ends the guest.
  void release() noexcept;

  const Reporter& reporter() const { return *reporter_; }
  const Library& library() const { return *library_; }
  OtherSide* other_side() const { return other_side_.get(); }  // null where it is of this generation
  // The copy for objects that have this table.
  const Table& table(Table::Words original, size_t slots, std::span<const Patch> patches);

 private:
  Guest(std::shared_ptr<const Library> library, std::shared_ptr<const Reporter> reporter,
        std::shared_ptr<const void> host);
  void* take_up(void* object, const ObjectClass& of);
  void* adopt(void* object, const ObjectClass& of) noexcept;

  std::shared_ptr<const void> host_;
  std::shared_ptr<const Reporter> reporter_;
  std::unique_ptr<OtherSide> other_side_;
  std::shared_ptr<const Library> library_;  // unmapped before what its objects used is let go
  std::atomic<size_t> objects_{0};
  std::mutex mutex_;
  std::map<Table::Words, std::unique_ptr<Table>> tables_;  // by their originals
};

// The runtime looks for plugins in the registry, too.
void set_registry_parent(nv::IRuntime& runtime, nv::IPluginRegistry& registry);

// A runtime of a guest as its own library knows it, for functions that are called by their names.
nv::IRuntime& object_of_guest(nv::IRuntime& runtime);

// The function that stands in tables instead of one that makes objects: those are the guest's, too.
template <auto kMethod>
struct Creation;
template <class V, class I, class... Args, I* (V::*kMethod)(Args...) noexcept>
struct Creation<kMethod> {
  static I* call(V* self, Args... args) noexcept {
    const Table& table = Table::of(self);
    return table.guest().adopt(table.original<I* (*)(V*, Args...)>(slot_of(kMethod))(self, args...));
  }
};
template <class V, class I, class... Args, I* (V::*kMethod)(Args...) const noexcept>
struct Creation<kMethod> {
  static I* call(const V* self, Args... args) noexcept {
    const Table& table = Table::of(self);
    return table.guest().adopt(table.original<I* (*)(const V*, Args...)>(slot_of(kMethod))(self, args...));
  }
};

template <auto kMethod>
Patch creation() {
  return {slot_of(kMethod), reinterpret_cast<void*>(&Creation<kMethod>::call)};
}

template <size_t kSize>
struct Name {
  char text[kSize];
  constexpr Name(const char (&from)[kSize]) { std::copy_n(from, kSize, text); }  // NOLINT: from a literal
};

void report_missing(const Guest& guest, const char* name) noexcept;

// The function that stands in the place of one that came after the guest's version: it reports that, and returns
// nothing.
template <auto kMethod, Name kName>
struct Refusal;
template <class V, class R, class... Args, R (V::*kMethod)(Args...) noexcept, Name kName>
struct Refusal<kMethod, kName> {
  static R call(V* self, Args...) noexcept {
    report_missing(Table::of(self).guest(), kName.text);
    return R();
  }
};
template <class V, class R, class... Args, R (V::*kMethod)(Args...) const noexcept, Name kName>
struct Refusal<kMethod, kName> {
  static R call(const V* self, Args...) noexcept {
    report_missing(Table::of(self).guest(), kName.text);
    return R();
  }
};

template <auto kMethod, Name kName>
Patch refusal() {
  return {slot_of(kMethod), reinterpret_cast<void*>(&Refusal<kMethod, kName>::call)};
}

}  // namespace lathe::api::guest
