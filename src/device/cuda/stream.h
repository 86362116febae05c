// SPDX-License-Identifier: Apache-2.0
// A queue that is a CUDA stream.
#pragma once

#include <memory>

#include "device/cuda/context.h"
#include "device/kernel.h"

namespace lathe::cuda {

class Stream : public Queue {
 public:
  static Result<std::unique_ptr<Stream>> create(std::shared_ptr<PrimaryContext> context);
  // One that work is captured on, and that never runs any.
  static Result<std::unique_ptr<Stream>> create_for_capture(std::shared_ptr<PrimaryContext> context);
  // On the application's stream.
  static std::unique_ptr<Stream> borrow(std::shared_ptr<PrimaryContext> context, CUstream stream);
  ~Stream() override;

  Result<> begin() override { return context_->push(); }
  void end() override { context_->pop(); }
  bool is_captured() const override;
  Result<> record_event(void* event) override;
  Result<> keep_in_cache(const void* base, size_t bytes) override;

  CUstream handle() const { return stream_; }
  PrimaryContext& context() const { return *context_; }
  const std::shared_ptr<PrimaryContext>& shared_context() const { return context_; }
  Result<> wait();
  // Begins to capture what is put into the stream, whose graph capture_end() gives. The context must be current.
  Result<> capture_begin();
  Result<CUgraph> capture_end();
  bool overlaps() const { return overlaps_; }

 private:
  enum class Kind { own, capture, borrowed };
  Stream(std::shared_ptr<PrimaryContext> context, CUstream stream, Kind kind);
  static Result<std::unique_ptr<Stream>> create(std::shared_ptr<PrimaryContext> context, Kind kind);

  std::shared_ptr<PrimaryContext> context_;
  CUstream stream_;
  Kind kind_;
  bool overlaps_;  // whether kernels may start before the one before them ends
};

}  // namespace lathe::cuda
