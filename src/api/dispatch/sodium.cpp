// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdlib>

// What digests take of libsodium besides. Its own stand beside the choice of an implementation for each of its
// functions and beside random numbers, and would bring all of that into the library.
extern "C" {
[[noreturn]] void sodium_misuse() { std::abort(); }
[[noreturn]] void randombytes_buf(void*, size_t) { std::abort(); }
void sodium_memzero(void* memory, size_t bytes) {
  for (auto* byte = static_cast<volatile std::byte*>(memory); bytes > 0; --bytes) *byte++ = std::byte{0};
}
}
