// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/cache_limit.h"
#include "base/never_destroyed.h"

#include <map>
#include <mutex>
#include <string>

namespace lathe::api {
namespace {

// What the process's contexts have, by the device's name.
struct Shares {
  std::mutex mutex;
  std::map<std::string, size_t, std::less<>> bytes;
};
Shares& shares() {
  static NeverDestroyed<Shares> all;  // for contexts
  return *all;
}

}  // namespace

CacheLimit::~CacheLimit() {
  if (device_) (void)set(device_, 0, null_log());
}

Result<> CacheLimit::set(const std::shared_ptr<Device>& device, size_t bytes, Log& log) {
  const size_t most = device->most_cache_aside();
  if (most == 0) {
    bytes_ = bytes;
    return {};
  }
  if (bytes > most)
    return fail(ErrorCode::invalid_argument, "{} bytes of L2 cache: {} can set aside {}", bytes, device->name(), most);
  Shares& all = shares();
  const std::lock_guard lock(all.mutex);
  size_t& sum = all.bytes[std::string(device->name())];
  const size_t changed = sum - bytes_ + bytes;
  LATHE_TRY(device->set_aside_cache(changed));
  if (changed > most && bytes > bytes_)
    log.print(Severity::warning,
              "the contexts of {} ask for {} bytes of its L2 cache to be set aside, and it can set aside {}: they take "
              "each other's place",
              device->name(), changed, most);
  sum = changed;
  bytes_ = bytes;
  device_ = bytes > 0 ? device : nullptr;
  return {};
}

}  // namespace lathe::api
