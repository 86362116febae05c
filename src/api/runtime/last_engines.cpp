// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/last_engines.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>

namespace lathe::api {
namespace {

constexpr size_t kNames = 4;

std::atomic<uint64_t> last_context{0};
std::mutex names_mutex;
std::deque<std::string>& names() {  // the latest first
  static std::deque<std::string> names;
  return names;
}

}  // namespace

uint64_t new_context_number() {
  static std::atomic<uint64_t> contexts{0};
  return ++contexts;
}

void note_work(uint64_t context, const std::string& engine) {
  if (last_context.load(std::memory_order_relaxed) == context) return;
  const std::lock_guard lock(names_mutex);
  std::erase(names(), engine);
  names().push_front(engine);
  if (names().size() > kNames) names().pop_back();
  last_context.store(context, std::memory_order_relaxed);
}

Error with_last_engines(Error error) {
  if (error.code != ErrorCode::device_fault && error.code != ErrorCode::device_lost) return error;
  const std::lock_guard lock(names_mutex);
  error.message += fmt::format("; engines that were given work last: '{}'", fmt::join(names(), "', '"));
  return error;
}

}  // namespace lathe::api
