// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/context.h"

namespace lathe::cuda {

Result<std::shared_ptr<PrimaryContext>> PrimaryContext::create(const Driver& driver,
                                                               const DeviceProperties& properties) {
  std::shared_ptr<PrimaryContext> context(new PrimaryContext(driver, properties));
  LATHE_TRY(context->start());
  return context;
}

Result<> PrimaryContext::start() {
  LATHE_TRY(check(driver_.cuDevicePrimaryCtxRetain(&context_, properties_.device), "starting the device's context"));
  LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(*this));
  LATHE_TRY(check(driver_.cuStreamCreate(&allocations_, CU_STREAM_NON_BLOCKING), "making a stream"));
  return check(driver_.cuStreamCreate(&releases_, CU_STREAM_NON_BLOCKING), "making a stream");
}

PrimaryContext::~PrimaryContext() {
  if (!context_) return;
  {
    const ContextScope scope(*this);
    for (CUstream stream : {allocations_, releases_})
      if (stream) driver_.cuStreamDestroy(stream);
  }
  driver_.cuDevicePrimaryCtxRelease(properties_.device);
}

Error PrimaryContext::failure(CUresult result, std::string_view doing) {
  Error error = driver_error(result, fmt::format("cuda:{}: {}", properties_.ordinal, doing));
  if (!is_lost(result)) return error;
  error.message += "; work that ran before on this device may be the cause, another engine's or the application's own";
  const std::lock_guard lock(mutex_);
  if (lost_reason_.empty()) lost_reason_ = error.message;
  lost_.store(true, std::memory_order_release);
  return error;
}

Error PrimaryContext::lost_error() const {
  const std::lock_guard lock(mutex_);
  return {ErrorCode::device_lost,
          fmt::format("device cuda:{} cannot be used any more, because a fault has ended its context ({}): destroy all "
                      "engines and contexts on it and load them again, or start the process again",
                      properties_.ordinal, lost_reason_),
          {}};
}

Result<> PrimaryContext::push() {
  LATHE_TRY(usable());
  return check(driver_.cuCtxPushCurrent(context_), "making the device's context current");
}

void PrimaryContext::pop() {
  CUcontext popped = nullptr;
  driver_.cuCtxPopCurrent(&popped);
}

void PrimaryContext::add_stream(CUstream stream) {
  const std::lock_guard lock(mutex_);
  streams_.insert(stream);
}

void PrimaryContext::remove_stream(CUstream stream) {
  const std::lock_guard lock(mutex_);
  follow(releases_, stream);
  streams_.erase(streams_.find(stream));
}

void PrimaryContext::add_mark(CUevent mark) {
  const std::lock_guard lock(mutex_);
  marks_.insert(mark);
}

void PrimaryContext::remove_mark(CUevent mark) {
  const std::lock_guard lock(mutex_);
  follow_mark(releases_, mark);
  marks_.erase(mark);
  driver_.cuEventDestroy(mark);
}

void PrimaryContext::follow_mark(CUstream follower, CUevent mark) {
  if (driver_.cuStreamWaitEvent(follower, mark, 0) != CUDA_SUCCESS) driver_.cuEventSynchronize(mark);
}

void PrimaryContext::follow_all(CUstream follower) {
  const std::lock_guard lock(mutex_);
  for (CUevent mark : marks_) follow_mark(follower, mark);
  for (auto stream = streams_.begin(); stream != streams_.end(); stream = streams_.upper_bound(*stream))
    follow(follower, *stream);
}

// A stream that is captured has no work of its own yet, and an event of it would draw the follower into the capture.
// Failures have nowhere to go: a later call on the stream reports them.
void PrimaryContext::follow(CUstream follower, CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (driver_.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE) return;
  CUevent event = nullptr;
  if (driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    driver_.cuStreamSynchronize(stream);
    return;
  }
  if (driver_.cuEventRecord(event, stream) != CUDA_SUCCESS ||
      driver_.cuStreamWaitEvent(follower, event, 0) != CUDA_SUCCESS)
    driver_.cuStreamSynchronize(stream);
  driver_.cuEventDestroy(event);
}

Result<ContextScope> ContextScope::enter(PrimaryContext& context) {
  LATHE_TRY(context.push());
  ContextScope scope;
  scope.context_ = &context;
  context.driver().cuThreadExchangeStreamCaptureMode(&scope.mode_);
  return scope;
}

ContextScope::ContextScope(PrimaryContext& context) {
  if (context.push_for_release() != CUDA_SUCCESS) return;
  context_ = &context;
  context.driver().cuThreadExchangeStreamCaptureMode(&mode_);
}

ContextScope::~ContextScope() {
  if (!context_) return;
  context_->driver().cuThreadExchangeStreamCaptureMode(&mode_);
  context_->pop();
}

}  // namespace lathe::cuda
