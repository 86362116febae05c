// SPDX-License-Identifier: Apache-2.0
#include "plan/signature.h"

#include <sodium/core.h>
#include <sodium/crypto_sign_ed25519.h>

#include <algorithm>
#include <cstring>

#include "plan/reader.h"

namespace lathe::plan {
namespace {

constexpr size_t kSignatureBytes = crypto_sign_ed25519_BYTES;
constexpr size_t kSectionBytes = sizeof(PublicKey) + kSignatureBytes;
static_assert(sizeof(PublicKey) == crypto_sign_ed25519_PUBLICKEYBYTES);
static_assert(sizeof(SecretKey) == crypto_sign_ed25519_SECRETKEYBYTES);

const unsigned char* raw(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }
unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

// The header of the same plan with an empty signature section at the end.
PlanHeader with_signature_section(PlanHeader header) {
  std::erase_if(header.sections, [](const Section& s) { return s.name == kSignature; });
  header.sections.push_back(named_section(kSignature));
  header.sections.back().bytes = kSectionBytes;
  header.prefix_bytes = 0;
  place_sections(header);
  return header;
}

}  // namespace

Result<KeyPair> make_key_pair() {
  if (sodium_init() < 0) return fail(ErrorCode::internal, "libsodium cannot be initialised");
  KeyPair pair;
  crypto_sign_ed25519_keypair(raw(pair.public_key.data()), raw(pair.secret_key.data()));
  return pair;
}

Result<std::vector<std::byte>> sign_plan(std::span<const std::byte> plan, const SecretKey& key) {
  LATHE_ASSIGN(const PlanHeader original, read_header(plan));
  plan = plan.subspan(original.prefix_bytes);
  LATHE_TRY(check_sections(plan, original, WeightsCheck::digest));
  PlanHeader header = with_signature_section(original);
  Section& section = header.sections.back();

  std::array<std::byte, kSectionBytes> content;
  std::copy_n(key.begin() + 32, sizeof(PublicKey),
              content.begin());  // the second half of a secret key is the public key
  const Digest message = signed_digest(header);
  crypto_sign_ed25519_detached(raw(content.data() + sizeof(PublicKey)), nullptr, raw(message.data()), message.size(),
                               raw(key.data()));
  seal(section, content);

  std::vector<std::byte> result(header.plan_bytes);
  const auto head = encode_header(header);
  const size_t kept = std::min<uint64_t>(original.plan_bytes, section.offset);  // all but an earlier signature
  std::copy(plan.begin(), plan.begin() + static_cast<std::ptrdiff_t>(kept), result.begin());
  std::copy(head.begin(), head.end(), result.begin());
  std::copy(content.begin(), content.end(), result.begin() + static_cast<std::ptrdiff_t>(section.offset));
  return result;
}

Result<> verify_signature(std::span<const std::byte> plan, const PlanHeader& header,
                          std::span<const PublicKey> trusted) {
  const Section* section = header.find(kSignature);
  if (!section) return fail(ErrorCode::plan_signature, "the plan is not signed, and only signed plans are allowed");
  if (section->bytes != kSectionBytes)
    return fail(ErrorCode::plan_malformed, "the plan's signature has {} bytes", section->bytes);
  const std::byte* content = plan.data() + section->offset;
  const bool known = std::any_of(trusted.begin(), trusted.end(), [&](const PublicKey& key) {
    return std::memcmp(key.data(), content, key.size()) == 0;
  });
  if (!known) return fail(ErrorCode::plan_signature, "the plan is signed by a key that is not trusted");
  const Digest message = signed_digest(header);
  if (crypto_sign_ed25519_verify_detached(raw(content + sizeof(PublicKey)), raw(message.data()), message.size(),
                                          raw(content)) != 0)
    return fail(ErrorCode::plan_signature, "the plan's signature does not match its content");
  return {};
}

}  // namespace lathe::plan
