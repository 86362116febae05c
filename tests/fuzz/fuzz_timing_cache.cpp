// SPDX-License-Identifier: Apache-2.0
// Timing caches. The first byte of an input chooses: the file as it is, or with its digest repaired. What is read is
// written and read again.
#include <cstdlib>
#include <cstring>

#include "base/hash.h"
#include "tuning/timing_cache.h"

namespace lathe {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void repair_digest(std::vector<std::byte>& bytes) {
  if (bytes.size() < sizeof(Digest)) return;
  const Digest digest = digest_of(std::span(bytes).first(bytes.size() - sizeof(Digest)));
  std::memcpy(bytes.data() + bytes.size() - sizeof(Digest), digest.data(), sizeof digest);
}

// What the fuzzer begins with.
std::vector<std::byte> some_file() {
  TimingCache cache;
  cache.insert(TimingCache::key_of("problem", "device"), {{"gemm", "64x64", 12.5F}, {{"gemm", "32x32", 13}}});
  Target target;
  target.name = "cuda-sm_90";
  cache.note_device({"device", target});
  return cache.serialize();
}

}  // namespace
}  // namespace lathe

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned) {
  const std::vector<std::byte> file = lathe::some_file();
  if (size > 64 || file.size() + 1 > max_size) return LLVMFuzzerMutate(data, size, max_size);
  data[0] = 1;
  std::memcpy(data + 1, file.data(), file.size());
  return file.size() + 1;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lathe;
  if (size == 0) return 0;
  const auto rest = std::as_bytes(std::span(data, size)).subspan(1);
  std::vector<std::byte> bytes(rest.begin(), rest.end());
  if (data[0] % 2 == 1) repair_digest(bytes);
  TimingCache cache, again;
  if (!cache.deserialize(bytes)) return 0;
  const std::vector<std::byte> written = cache.serialize();
  require(again.deserialize(written).has_value());
  require(again.serialize() == written);
  for (const char* target : {"cuda-sm_90", ""})
    require(cache.devices_of(target).size() == again.devices_of(target).size());
  return 0;
}
