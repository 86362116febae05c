// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/header.h"
#include "plan/public_keys.h"

namespace lathe::api {

// plan::authenticate(); the dispatching library has another one do it. `plan` starts at the header.
Result<> check_signer(std::span<const std::byte> plan, const plan::PlanHeader& header,
                      std::span<const plan::PublicKey> trusted, int threads);

// Whose plans a runtime loads. There may be two lists of keys, that of the environment (LATHE_TRUSTED_KEYS, as it was
// when the runtime was made) and that of the application (lathe::setTrustedKeys): a plan has to satisfy both. A list
// that cannot be read refuses every plan. Thread-safe.
class TrustPolicy {
 public:
  TrustPolicy();
  // Null takes the application's list away. Nothing changes where the list cannot be read.
  Result<> set(const char* keys);
  // Whether the plan may be loaded: all of it is compared with what was signed, by so many threads. Nothing is looked
  // at where no list is.
  Result<> check(std::span<const std::byte> plan, const plan::PlanHeader& header, int threads) const;
  // The application's keys, as text; empty = none.
  std::string keys() const;

 private:
  using Keys = std::vector<plan::PublicKey>;
  std::optional<Result<Keys>> environment_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Keys> own_;
};

}  // namespace lathe::api
