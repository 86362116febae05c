// SPDX-License-Identifier: Apache-2.0
// For libraries that are to be small: functions that libsodium and zlib reference from the object files that are linked
// of them, so that the object files which define these are left out. All that is used of the two is BLAKE2b, the check
// of Ed25519 signatures and the inflation of zlib streams.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" {
void sodium_memzero(void* memory, size_t bytes) {
  for (auto* byte = static_cast<volatile std::byte*>(memory); bytes > 0; --bytes) *byte++ = std::byte{0};
}

// Both take the same time whatever the bytes are.
int sodium_memcmp(const void* a, const void* b, size_t bytes) {
  volatile unsigned char different = 0;
  for (size_t i = 0; i < bytes; ++i)
    different = different | (static_cast<const unsigned char*>(a)[i] ^ static_cast<const unsigned char*>(b)[i]);
  return different == 0 ? 0 : -1;
}
int sodium_is_zero(const unsigned char* bytes, size_t count) {
  volatile unsigned char any = 0;
  for (size_t i = 0; i < count; ++i) any = any | bytes[i];
  return any == 0 ? 1 : 0;
}

// Never called: nothing is random, keys of hashes are not used, and BLAKE2b's portable form is what runs unless
// sodium_init() is called. Declared as libsodium's header does, which lint reads before.
void sodium_misuse() { std::abort(); }
void randombytes_buf(void*, size_t) { std::abort(); }
int blake2b_compress_ssse3(void*, const uint8_t*) { std::abort(); }
int blake2b_compress_sse41(void*, const uint8_t*) { std::abort(); }
int blake2b_compress_avx2(void*, const uint8_t*) { std::abort(); }
}
