// SPDX-License-Identifier: Apache-2.0
#include "plan/signature.h"

#include <sodium/crypto_sign_ed25519.h>

#include <algorithm>
#include <cstring>

#include "plan/sections.h"

namespace lathe::plan {
namespace {

static_assert(sizeof(PublicKey) == crypto_sign_ed25519_PUBLICKEYBYTES);
static_assert(sizeof(Signature) == crypto_sign_ed25519_BYTES);

const unsigned char* raw(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }

}  // namespace

Result<std::optional<SignedBy>> signature_of(std::span<const std::byte> plan, const PlanHeader& header) {
  const Section* section = header.find(kSignature);
  if (!section) return std::nullopt;
  if (section->bytes != kSignatureSectionBytes)
    return fail(ErrorCode::plan_malformed, "the plan's signature has {} bytes", section->bytes);
  SignedBy found;
  const std::byte* const content = plan.data() + section->offset;
  std::copy_n(content, found.key.size(), found.key.begin());
  std::copy_n(content + found.key.size(), found.signature.size(), found.signature.begin());
  return found;
}

Result<> authenticate(std::span<const std::byte> plan, const PlanHeader& header, std::span<const PublicKey> trusted,
                      int threads) {
  LATHE_ASSIGN(const std::optional<SignedBy> found, signature_of(plan, header));
  if (!found)
    return fail(ErrorCode::plan_signature,
                "the plan is not signed, and only signed plans are allowed: sign it with `lathe sign`");
  if (std::ranges::find(trusted, found->key) == trusted.end())
    return fail(ErrorCode::plan_signature,
                "the plan is signed by {}, which is not a key that is trusted: trust it, or have the plan signed by "
                "another",
                to_text(found->key));
  const Digest message = signed_digest(header);
  if (crypto_sign_ed25519_verify_detached(raw(found->signature.data()), raw(message.data()), message.size(),
                                          raw(found->key.data())) != 0)
    return fail(ErrorCode::plan_signature,
                "the plan's signature does not match its content: the plan was changed after it was signed");
  return check_sections(plan, header, {ContentCheck::digest, ContentCheck::digest}, threads);
}

}  // namespace lathe::plan
