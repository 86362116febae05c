// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/order_event.h"

#include "device/cuda/stream.h"

namespace lathe::cuda {

Result<std::unique_ptr<Event>> OrderEvent::create(std::shared_ptr<PrimaryContext> context) {
  LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(*context));
  CUevent event = nullptr;
  LATHE_TRY(context->check(context->driver().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "making an event"));
  return std::unique_ptr<Event>(new OrderEvent(std::move(context), event));
}

OrderEvent::~OrderEvent() {
  const ContextScope scope(*context_);
  context_->driver().cuEventDestroy(event_);
}

Result<> OrderEvent::record(Queue& queue) {
  const CUstream stream = static_cast<Stream&>(queue).handle();
  return context_->check(context_->driver().cuEventRecord(event_, stream), "marking the end of a run");
}

Result<> OrderEvent::wait() {
  LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(*context_));
  return context_->check(context_->driver().cuEventSynchronize(event_), "running work on the device");
}

// A captured stream cannot wait for an event that was recorded outside the capture: the host waits instead.
Result<> OrderEvent::hold(Queue& queue) {
  if (queue.is_captured()) return wait();
  LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(*context_));
  const CUstream stream = static_cast<Stream&>(queue).handle();
  return context_->check(context_->driver().cuStreamWaitEvent(stream, event_, 0), "waiting for another stream's run");
}

}  // namespace lathe::cuda
