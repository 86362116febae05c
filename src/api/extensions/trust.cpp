// SPDX-License-Identifier: Apache-2.0
// Keys and signatures; see lathe.h.
#include "api/convert.h"
#include "api/host_memory.h"
#include "api/own_settings.h"
#include "lathe.h"
#include "plan/signing.h"

namespace lathe {
namespace {

namespace nv = nvinfer1;

Result<std::span<const std::byte>> bytes_of(const void* plan, std::size_t size) {
  if (!plan) return fail(ErrorCode::invalid_argument, "the plan is null");
  return std::span(static_cast<const std::byte*>(plan), size);
}

}  // namespace

bool makeKeyFiles(const char* secretKeyFile, const char* publicKeyFile) noexcept {
  return api::guarded(api::silent(), "lathe::makeKeyFiles", [&]() -> Result<> {
    LATHE_ASSIGN(const std::string secret, api::to_string(secretKeyFile, "path of the secret key"));
    LATHE_ASSIGN(const std::string open, api::to_string(publicKeyFile, "path of the public key"));
    LATHE_ASSIGN(const plan::SecretKey key, plan::SecretKey::make());
    return plan::write_key_files(key, secret, open);
  });
}

nv::IHostMemory* signPlan(const void* plan, std::size_t size, const char* secretKeyFile) noexcept {
  return api::guarded(api::silent(), "lathe::signPlan", static_cast<nv::IHostMemory*>(nullptr),
                      [&]() -> Result<nv::IHostMemory*> {
                        LATHE_ASSIGN(const std::span<const std::byte> bytes, bytes_of(plan, size));
                        LATHE_ASSIGN(const std::string path, api::to_string(secretKeyFile, "path of the secret key"));
                        LATHE_ASSIGN(const plan::SecretKey key, plan::SecretKey::read(path));
                        LATHE_ASSIGN(std::vector<std::byte> result, plan::sign_plan(bytes, key));
                        return new api::HostMemory(std::move(result));
                      });
}

}  // namespace lathe
