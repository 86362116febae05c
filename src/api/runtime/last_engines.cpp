// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/last_engines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <string_view>

namespace lathe::api {
namespace {

using Name = std::array<char, 64>;  // its beginning, with a zero behind it: noting one allocates nothing

std::atomic<uint64_t> last_context{0};
std::mutex names_mutex;
std::array<Name, 4> names{};  // the latest first; an empty one = there are no more

}  // namespace

uint64_t new_context_number() {
  static std::atomic<uint64_t> contexts{0};
  return ++contexts;
}

void note_work(uint64_t context, const std::string& engine) {
  if (last_context.load(std::memory_order_relaxed) == context) return;
  Name name{};
  const std::string_view text = engine.empty() ? "(unnamed)" : std::string_view(engine);
  std::copy_n(text.begin(), std::min(text.size(), name.size() - 1), name.begin());
  const std::lock_guard lock(names_mutex);
  const auto own = std::find(names.begin(), names.end() - 1, name);  // where it was, or the oldest
  std::move_backward(names.begin(), own, own + 1);
  names.front() = name;
  last_context.store(context, std::memory_order_relaxed);
}

Error with_last_engines(Error error) {
  if (error.code != ErrorCode::device_fault && error.code != ErrorCode::device_lost) return error;
  error.message += "; engines that were given work last:";
  const std::lock_guard lock(names_mutex);
  for (const Name& name : names)
    if (name[0] != '\0') error.message += fmt::format(" '{}'", name.data());
  return error;
}

}  // namespace lathe::api
