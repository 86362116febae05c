// SPDX-License-Identifier: Apache-2.0
// A queue that is a CUDA stream.
#pragma once

#include <memory>
#include <vector>

#include "device/cuda/context.h"
#include "device/forking_queue.h"

namespace lathe::cuda {

class Stream : public Queue, public ForkingQueue {
 public:
  static Result<std::unique_ptr<Stream>> create(std::shared_ptr<PrimaryContext> context);
  // One that work is captured on, and that never runs any.
  static Result<std::unique_ptr<Stream>> create_for_capture(std::shared_ptr<PrimaryContext> context);
  // On the application's stream.
  static std::unique_ptr<Stream> borrow(std::shared_ptr<PrimaryContext> context, CUstream stream);
  ~Stream() override;

  Result<> begin() override { return context_->push(); }
  void end() override;
  bool is_captured() const override;
  Result<> record_event(void* event) override;
  Result<> keep_in_cache(const void* base, size_t bytes) override;
  Result<Queue*> fork(size_t number) override;
  Result<> join(size_t number) override;
  void set_auxiliary(std::span<void* const> streams) override;

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
  // A stream beside this one, and events for the order of both.
  struct Auxiliary {
    std::unique_ptr<Stream> stream;
    CUevent forked = nullptr, joined = nullptr;
  };
  void mark();
  Result<Auxiliary> make_auxiliary(size_t number);
  void drop_auxiliary();
  // What `after` is given from now on comes behind what `before` has been given.
  Result<> order(const Stream& before, CUevent event, const Stream& after);

  std::shared_ptr<PrimaryContext> context_;
  CUstream stream_;
  Kind kind_;
  CUevent mark_ = nullptr;            // borrowed: behind all that it was given, but for captured work
  std::vector<CUstream> given_;       // the application's, for the first auxiliary streams
  std::vector<Auxiliary> auxiliary_;  // those that have been used
  bool overlaps_;                     // whether kernels may start before the one before them ends
};

}  // namespace lathe::cuda
