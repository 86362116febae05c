// SPDX-License-Identifier: Apache-2.0
// One GPU's primary context: what memory, streams, modules and graphs of the device hold on to, so that they may be
// destroyed in any order. The first fault that ends the context is remembered; all later calls report it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>

#include "device/cuda/device_properties.h"

namespace lathe::cuda {

class PrimaryContext {
 public:
  static Result<std::shared_ptr<PrimaryContext>> create(const Driver& driver, const DeviceProperties& properties);
  ~PrimaryContext();
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;

  const Driver& driver() const { return driver_; }
  const DeviceProperties& properties() const { return properties_; }

  // device_lost once a fault has ended the context.
  Result<> usable() const {
    if (lost_.load(std::memory_order_acquire)) return fail(lost_error());
    return {};
  }
  // Turns what a call of the driver has given into a result; `doing` says what the call was for.
  Result<> check(CUresult result, std::string_view doing) {
    if (result == CUDA_SUCCESS) return {};
    return fail(failure(result, doing));
  }
  Error failure(CUresult result, std::string_view doing);

  // The context becomes the thread's current one, over the caller's; pop() restores that.
  Result<> push();
  void pop();
  // The same without a look at faults: what a lost context holds is given back too.
  CUresult push_for_release() { return driver_.cuCtxPushCurrent(context_); }

  // Streams with work of this device; of the application's, which it may destroy, events behind that work.
  void add_stream(CUstream stream);
  void remove_stream(CUstream stream);  // what it has to do still counts as work of the device
  void add_mark(CUevent mark);
  void remove_mark(CUevent mark);  // likewise; destroys it
  // Makes `follower` wait for the work that all of these have now. The context must be current.
  void follow_all(CUstream follower);

  // Streams that belong to the context: memory comes into being on one, and is freed on the other after all work.
  CUstream allocations() const { return allocations_; }
  CUstream releases() const { return releases_; }

 private:
  PrimaryContext(const Driver& driver, const DeviceProperties& properties) : driver_(driver), properties_(properties) {}
  Result<> start();
  void follow(CUstream follower, CUstream stream);
  void follow_mark(CUstream follower, CUevent mark);
  Error lost_error() const;

  const Driver& driver_;
  const DeviceProperties properties_;
  CUcontext context_ = nullptr;
  CUstream allocations_ = nullptr, releases_ = nullptr;

  mutable std::mutex mutex_;  // guards what follows
  std::multiset<CUstream> streams_;
  std::set<CUevent> marks_;
  std::string lost_reason_;
  std::atomic<bool> lost_ = false;
};

// The context current for a scope, in which calls that are unsafe in other threads' captures are allowed.
class ContextScope {
 public:
  static Result<ContextScope> enter(PrimaryContext& context);
  // For destructors: enters a lost context too, because what it holds must be given back; may fail.
  explicit ContextScope(PrimaryContext& context);
  ContextScope(ContextScope&& other) noexcept : context_(other.context_), mode_(other.mode_) {
    other.context_ = nullptr;
  }
  ContextScope& operator=(ContextScope&&) = delete;
  ~ContextScope();

 private:
  ContextScope() = default;
  PrimaryContext* context_ = nullptr;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace lathe::cuda
