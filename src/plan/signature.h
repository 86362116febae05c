// SPDX-License-Identifier: Apache-2.0
// Ed25519 signatures of plans. docs/plan_format.md says what is signed.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "base/result.h"
#include "plan/header.h"
#include "plan/public_keys.h"

namespace lathe::plan {

using Signature = std::array<std::byte, 64>;

// What the signature section holds.
struct SignedBy {
  PublicKey key;
  Signature signature;
};
inline constexpr size_t kSignatureSectionBytes = sizeof(PublicKey) + sizeof(Signature);

// Null where the plan is not signed. `plan` starts at the header.
Result<std::optional<SignedBy>> signature_of(std::span<const std::byte> plan, const PlanHeader& header);

// Succeeds when one of `trusted` has signed the plan and all of it is as it was then: each section by its digest.
// Weights that are detached are the caller's to compare. `plan` starts at the header, which read_header() has read. So
// many threads look at large weights; 0 = as many as may.
Result<> authenticate(std::span<const std::byte> plan, const PlanHeader& header, std::span<const PublicKey> trusted,
                      int threads = 0);

}  // namespace lathe::plan
