// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/trust_policy.h"

#include <cstdlib>

#include "api/own_settings.h"
#include "api/runtime/runtime.h"
#include "base/own_object.h"
#include "lathe.h"

namespace lathe::api {
namespace {

constexpr const char* kVariable = "LATHE_TRUSTED_KEYS";

}  // namespace

TrustPolicy::TrustPolicy() {
  if (const char* const list = std::getenv(kVariable)) environment_ = plan::parse_keys(list);
}

Result<> TrustPolicy::set(const char* keys) {
  std::shared_ptr<const Keys> own;
  if (keys) {
    LATHE_ASSIGN(Keys parsed, plan::parse_keys(keys));
    own = std::make_shared<const Keys>(std::move(parsed));
  }
  const std::lock_guard lock(mutex_);
  own_ = std::move(own);
  return {};
}

Result<> TrustPolicy::check(std::span<const std::byte> plan, const plan::PlanHeader& header, int threads) const {
  const std::span<const std::byte> whole = plan.subspan(header.prefix_bytes);
  if (environment_) {
    if (!*environment_) return fail(with_context(Error(environment_->error()), kVariable));
    LATHE_TRY(check_signer(whole, header, **environment_, threads));
  }
  std::unique_lock lock(mutex_);
  const std::shared_ptr<const Keys> own = own_;
  lock.unlock();
  return own ? check_signer(whole, header, *own, threads) : Result<>();
}

std::string TrustPolicy::keys() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (size_t i = 0; own_ && i < own_->size(); ++i) text += (i > 0 ? "," : "") + plan::to_text((*own_)[i]);
  return text;
}

}  // namespace lathe::api

namespace lathe {

bool setTrustedKeys(nvinfer1::IRuntime& runtime, const char* keys) noexcept {
  return api::guarded(api::silent(), "lathe::setTrustedKeys", [&]() -> Result<> {
    LATHE_ASSIGN(api::Runtime* const own, own_object<api::Runtime>(runtime));
    return own->core().trust.set(keys);
  });
}

}  // namespace lathe
