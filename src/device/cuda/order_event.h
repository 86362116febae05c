// SPDX-License-Identifier: Apache-2.0
// An Event as a CUDA event. It takes no times, which makes it cheaper.
#pragma once

#include "device/cuda/context.h"
#include "device/event.h"

namespace lathe::cuda {

class OrderEvent final : public Event {
 public:
  static Result<std::unique_ptr<Event>> create(std::shared_ptr<PrimaryContext> context);
  ~OrderEvent() override;

  Result<> record(Queue& queue) override;
  Result<> wait() override;
  Result<> hold(Queue& queue) override;

 private:
  OrderEvent(std::shared_ptr<PrimaryContext> context, CUevent event) : context_(std::move(context)), event_(event) {}

  std::shared_ptr<PrimaryContext> context_;
  CUevent event_;
};

}  // namespace lathe::cuda
