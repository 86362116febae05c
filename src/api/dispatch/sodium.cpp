// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdlib>

// Stubs for symbols that libsodium's hash references, so that its random numbers are not linked in. The first two are
// never called: hashes are neither misused nor random.
extern "C" {
[[noreturn]] void sodium_misuse() { std::abort(); }
[[noreturn]] void randombytes_buf(void*, size_t) { std::abort(); }
void sodium_memzero(void* memory, size_t bytes) {
  for (auto* byte = static_cast<volatile std::byte*>(memory); bytes > 0; --bytes) *byte++ = std::byte{0};
}
}
