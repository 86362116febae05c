// SPDX-License-Identifier: Apache-2.0
// The control functions of a stand-in library.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string_view>
#include <type_traits>

namespace lathe::cuda {

struct FakeLibrary {
  explicit FakeLibrary(const char* path) {
    void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    EXPECT_TRUE(library) << dlerror();
    if (!library) return;
    const auto find = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    };
    find("fake_library_reset", reset);
    find("fake_library_set_version", set_version);
    find("fake_library_fail", fail);
    find("fake_library_calls", calls);
    find("fake_library_call", call);
    find("fake_library_live", live);
    find("fake_library_offer", offer);
  }
  void (*reset)() = nullptr;
  void (*set_version)(size_t version) = nullptr;
  void (*fail)(const char* function, size_t nth, int status) = nullptr;
  size_t (*calls)() = nullptr;
  const char* (*call)(size_t index) = nullptr;
  size_t (*live)() = nullptr;
  void (*offer)(size_t count) = nullptr;

  size_t count(std::string_view function) const {  // of its calls since the reset
    size_t count = 0;
    for (size_t i = 0; i < calls(); ++i) count += function == call(i);
    return count;
  }
};

}  // namespace lathe::cuda
