// SPDX-License-Identifier: Apache-2.0
// Signatures are checked by the runtime library that is installed beside this one, for that takes a third of what
// liblathe_dispatch.so is. Nothing of the plan runs meanwhile.
#include "api/guest/installed.h"
#include "api/guest/library.h"
#include "api/runtime/trust_policy.h"

namespace lathe::api {

Result<> check_signer(std::span<const std::byte> plan, const plan::PlanHeader&,
                      std::span<const plan::PublicKey> trusted, int) {
  LATHE_ASSIGN(const std::string path, guest::installed_lean());
  LATHE_ASSIGN(const std::shared_ptr<const guest::Library> library, guest::Library::open(path));
  auto* const verify = library->function<bool(const void*, std::size_t, const char*)>("_ZN5lathe10verifyPlanEPKvmPKc");
  auto* const last_error = library->function<const char*()>("_ZN5lathe9lastErrorEv");
  if (!verify || !last_error)
    return fail(ErrorCode::plan_signature, "'{}' cannot check signatures, and plans of trusted keys alone are allowed",
                path);
  std::string keys;
  for (const plan::PublicKey& key : trusted) keys += (keys.empty() ? "" : ",") + plan::to_text(key);
  if (verify(plan.data(), plan.size(), keys.c_str())) return {};
  return fail(ErrorCode::plan_signature, "{}", last_error());
}

}  // namespace lathe::api
