// SPDX-License-Identifier: Apache-2.0
#include "fake_cuda/libraries/library_state.h"

#include "fake_cuda/driver/control.h"

#define FAKE_CONTROL __attribute__((visibility("default")))

namespace fake_library {

State& state() {
  static State& known = *[] {
    auto* made = new State;  // outlives every user
    made->version = kFirstVersion;
    made->offered = kMostOffered;
    return made;
  }();
  return known;
}

int enter(const char* function) {
  const std::lock_guard lock(state().mutex);
  state().calls.push_back(function);
  int status = 0;
  for (State::Failure& failure : state().failures) {
    if (failure.countdown == 0 || (!failure.function.empty() && failure.function != function)) continue;
    if (--failure.countdown == 0 && status == 0) status = failure.status;
  }
  return status;
}

int submit(void* stream, const void* kind, std::function<void()> work) {
  return fake_cuda_submit(
      stream, kind, [](void* user) { (*static_cast<std::function<void()>*>(user))(); },
      new std::function<void()>(std::move(work)), [](void* user) { delete static_cast<std::function<void()>*>(user); });
}

bool holds(const void* address, size_t bytes) { return fake_cuda_holds(address, bytes) != 0; }

float load(lathe::DType dtype, const void* data, int64_t index) {
  if (dtype == lathe::DType::f16) return static_cast<float>(static_cast<const lathe::Half*>(data)[index]);
  if (dtype == lathe::DType::bf16) return static_cast<float>(static_cast<const lathe::BFloat16*>(data)[index]);
  return static_cast<const float*>(data)[index];
}

void store(lathe::DType dtype, void* data, int64_t index, float value) {
  if (dtype == lathe::DType::f16)
    static_cast<lathe::Half*>(data)[index] = lathe::Half(value);
  else if (dtype == lathe::DType::bf16)
    static_cast<lathe::BFloat16*>(data)[index] = lathe::BFloat16(value);
  else
    static_cast<float*>(data)[index] = value;
}

}  // namespace fake_library

using fake_library::state;

extern "C" {

FAKE_CONTROL void fake_library_reset() {
  const std::lock_guard lock(state().mutex);
  state().version = fake_library::kFirstVersion;
  state().offered = fake_library::kMostOffered;
  state().failures.clear();
  state().calls.clear();
}

FAKE_CONTROL void fake_library_set_version(size_t version) { state().version = version; }

FAKE_CONTROL void fake_library_fail(const char* function, size_t nth, int status) {
  const std::lock_guard lock(state().mutex);
  state().failures.push_back({function ? function : "", nth, status});
}

FAKE_CONTROL size_t fake_library_calls() {
  const std::lock_guard lock(state().mutex);
  return state().calls.size();
}

FAKE_CONTROL const char* fake_library_call(size_t index) {
  const std::lock_guard lock(state().mutex);
  return state().calls.at(index);
}

FAKE_CONTROL size_t fake_library_live() {
  const std::lock_guard lock(state().mutex);
  return state().live;
}

FAKE_CONTROL void fake_library_offer(size_t count) { state().offered = count; }

}  // extern "C"
