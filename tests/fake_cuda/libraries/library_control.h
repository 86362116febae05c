// SPDX-License-Identifier: Apache-2.0
// What tests say to a stand-in for cuBLASLt or cuDNN, and ask of it. Both libraries have these functions; tests find
// them by dlsym. Each stand-in defines its first version in kFirstVersion.
#pragma once

#include <cstddef>

extern "C" {
void fake_library_reset();  // back to the beginning: nothing fails, the version is the first one
void fake_library_set_version(size_t version);
// The nth call from now of `function` (null: of any function) gives `status`.
void fake_library_fail(const char* function, size_t nth, int status);
size_t fake_library_calls();                  // since the reset
const char* fake_library_call(size_t index);  // name of that call
size_t fake_library_live();                   // handles and descriptors that were made and not destroyed
// How many of its algorithms or engines the library has.
void fake_library_offer(size_t count);
}
