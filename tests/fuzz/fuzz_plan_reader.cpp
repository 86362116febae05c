// SPDX-License-Identifier: Apache-2.0
// Plan files: plain ones, version-compatible ones with a runtime and plugin libraries, signed ones, and those of
// several variants. The first byte chooses: the file as it is; with its digests repaired; or the rest as the metadata
// section of an otherwise correct file (whose code section it sizes), which reaches the decoder and the validator at
// once.
#include <array>
#include <cstdlib>

#include "base/deflate.h"
#include "base/inflate.h"
#include "plan/amend.h"
#include "plan/compatibility.h"
#include "plan/header.h"
#include "plan/limits.h"
#include "plan/metadata.h"
#include "plan/packed_plan.h"
#include "plan/plugin_libraries.h"
#include "plan/random_plan.h"
#include "plan/reader.h"
#include "plan/repair.h"
#include "plan/signing.h"
#include "plan/validate.h"
#include "plan/variants.h"
#include "plan/writer.h"

namespace lathe::plan {
namespace {

// The first byte of an input.
enum Form : uint8_t { as_it_is, repaired, metadata_only, kForms };
constexpr size_t kCodeUnit = 8;

void require(bool condition) {
  if (!condition) std::abort();
}

// What is accepted can be used: windows checked for some shapes, written again, read back.
void use(const LoadedPlan& loaded) {
  for (const int64_t value : {int64_t{0}, int64_t{1}, int64_t{7}, INT64_MAX, Expr::kUnbound}) {
    const std::vector<int64_t> values(loaded.plan.symbols.size(), value);
    (void)check_windows(loaded.plan, values);
  }
  const auto again = write_plan(loaded.plan);
  require(again.has_value());
  ReadOptions options;
  options.without_weights = true;
  require(read_plan(*again, nullptr, options).has_value());
}

const SecretKey& key() {
  static const SecretKey key = *SecretKey::make();
  return key;
}

// A plan that is a file: the start of what the fuzzer changes.
std::vector<std::byte> make_file(unsigned seed, const Plan& plan) {
  std::vector<std::byte> bytes = *write_plan(plan);
  const std::vector<std::byte> some(seed % 200, std::byte{1});
  if (seed % 3 == 1) {
    Plan other = plan;
    other.target = "cuda-sm_90";
    const std::vector<std::byte> second = *write_plan(other);
    if (auto merged = merge_plans(std::array<std::span<const std::byte>, 2>{bytes, second})) bytes = *std::move(merged);
  }
  if (seed % 2 == 1) {
    require(make_version_compatible(bytes).has_value());
    require(
        put_section(bytes, kPluginLibraries, *pack_plugin_libraries(std::array{PluginLibrary{"a", some}})).has_value());
    require(put_section(bytes, kLeanRuntime, *deflate_bytes(some)).has_value());
  }
  return seed % 4 < 2 ? *sign_plan(bytes, key()) : bytes;
}

// One whose second variant has the weights of the first in another order.
std::vector<std::byte> make_derived(unsigned seed) {
  const auto plan_for = [&](const char* target, const Packing& packing) {
    OwnedPlan owned = PlanGenerator(seed).make(2, 4096);
    owned.plan.target = target;
    pack_weights(owned, packing, Orders::named);
    return *write_plan(owned.plan);
  };
  const std::vector<std::byte> first = plan_for("cuda-sm_90", {{1024}, {{0, 0, {1024}, {1}, {1}}}});
  const std::vector<std::byte> second =
      plan_for("cpu-x86_64-avx512", {{32, 32}, {{0, 0, {32, 16, 2}, {1, 64, 32}, {32, 2, 1}}}});
  return *merge_plans(std::array<std::span<const std::byte>, 2>{first, second});
}

// As a runtime goes through a file: header, policy, code for the host, variants.
void load(std::span<const std::byte> bytes) {
  const auto header = read_header(bytes);
  if (!header) return;
  const auto whole = bytes.subspan(header->prefix_bytes);
  (void)signature_of(whole, *header);
  (void)authenticate(whole, *header, std::vector{key().public_key()});
  for (const Section& section : header->sections) {
    if (section.trust != TrustClass::host_code) continue;
    const auto content = host_code(bytes, *header, section);
    if (content && section.name == kPluginLibraries) (void)unpack_plugin_libraries(*content);
    if (content && section.name == kLeanRuntime) (void)inflate_bytes(*content, size_t{1} << 20);
  }
  (void)read_amendments(bytes);
  ReadOptions options;
  options.without_weights = true;
  for (size_t i = 0; i < std::min(targets_of(*header).size(), kMaxVariants); ++i) {
    const auto variant = take_variant(bytes, i);
    if (!variant) continue;
    const auto loaded = read_plan(*variant, nullptr, options);
    if (loaded) use(*loaded);
  }
}

}  // namespace
}  // namespace lathe::plan

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// Starts from a real plan's metadata when the input is too small to become one.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  using namespace lathe::plan;
  if (size < 64 && max_size >= 16384) {
    OwnedPlan owned = PlanGenerator(seed).make(1 + seed % 4, seed % 40, seed % 7 % 4, seed % 3 != 0);
    if (seed % 11 == 0) owned.plan.detached = detach(owned.plan.weights), owned.plan.weights_file = "w";
    const bool whole = seed % 5 == 0;
    const bool derives = whole && seed / 5 % 4 == 0;
    const std::vector<std::byte> plan = derives ? make_derived(seed)
                                        : whole ? make_file(seed / 5, owned.plan)
                                                : *write_plan(owned.plan);
    const auto header = read_header(plan);
    const Section* code = header->find(kCode);
    const auto part = whole ? std::span<const std::byte>(plan)
                            : std::span<const std::byte>(plan).subspan(kHeaderBytes, header->sections[0].bytes);
    if (part.size() + 1 <= max_size) {
      const size_t code_units = code ? code->bytes / kCodeUnit : 0;
      data[0] = whole ? repaired : static_cast<uint8_t>(metadata_only + kForms * code_units);
      std::memcpy(data + 1, part.data(), part.size());
      return part.size() + 1;
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lathe::plan;
  if (size == 0) return 0;
  const auto rest = std::as_bytes(std::span(data, size)).subspan(1);
  std::vector<std::byte> bytes(rest.begin(), rest.end());
  if (data[0] % kForms == repaired) repair_digests(bytes);
  if (data[0] % kForms == metadata_only) bytes = wrap_metadata(rest, data[0] / kForms * kCodeUnit);
  load(bytes);
  return 0;
}
