// SPDX-License-Identifier: Apache-2.0
// Signatures are checked here, in this library.
#include "api/own_settings.h"
#include "api/runtime/trust_policy.h"
#include "lathe.h"
#include "plan/signature.h"

namespace lathe::api {

Result<> check_signer(std::span<const std::byte> plan, const plan::PlanHeader& header,
                      std::span<const plan::PublicKey> trusted, int threads) {
  return plan::authenticate(plan, header, trusted, threads);
}

}  // namespace lathe::api

namespace lathe {

bool verifyPlan(const void* plan, std::size_t size, const char* keys) noexcept {
  return api::guarded(api::silent(), "lathe::verifyPlan", [&]() -> Result<> {
    if (!plan) return fail(ErrorCode::invalid_argument, "the plan is null");
    const std::span bytes(static_cast<const std::byte*>(plan), size);
    if (!keys) return fail(ErrorCode::invalid_argument, "the list of trusted keys is null");
    LATHE_ASSIGN(const std::vector<plan::PublicKey> trusted, plan::parse_keys(keys));
    LATHE_ASSIGN(const plan::PlanHeader header, plan::read_header(bytes));
    return plan::authenticate(bytes.subspan(header.prefix_bytes), header, trusted);
  });
}

}  // namespace lathe
