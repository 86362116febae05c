// SPDX-License-Identifier: Apache-2.0
// Ed25519 signatures of plans. docs/plan_format.md says what is signed.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "plan/header.h"

namespace lathe::plan {

using PublicKey = std::array<std::byte, 32>;
using SecretKey = std::array<std::byte, 64>;  // libsodium's form: seed and public key

struct KeyPair {
  PublicKey public_key;
  SecretKey secret_key;
};
Result<KeyPair> make_key_pair();

// The plan with a signature section; a section that is there already is replaced. Checks header and digests first, so
// that a damaged plan is not signed.
Result<std::vector<std::byte>> sign_plan(std::span<const std::byte> plan, const SecretKey& key);

// Succeeds when one of `trusted` signed the plan. `plan` starts at the header and has been checked against it.
Result<> verify_signature(std::span<const std::byte> plan, const PlanHeader& header,
                          std::span<const PublicKey> trusted);

}  // namespace lathe::plan
