// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/stream.h"

namespace lathe::cuda {
namespace {

// Hopper and newer launch programmatically; graphs take that up since CUDA 12.3.
constexpr int kMinOverlapMajor = 9;
constexpr int kMinOverlapDriver = 12030;

}  // namespace

Stream::Stream(std::shared_ptr<PrimaryContext> context, CUstream stream, Kind kind)
    : context_(std::move(context)),
      stream_(stream),
      kind_(kind),
      overlaps_(context_->properties().major >= kMinOverlapMajor && context_->driver().version >= kMinOverlapDriver) {
  if (kind_ == Kind::own) context_->add_stream(stream_);
}

Result<std::unique_ptr<Stream>> Stream::create(std::shared_ptr<PrimaryContext> context, Kind kind) {
  LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(*context));
  CUstream stream = nullptr;
  LATHE_TRY(context->check(context->driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "making a stream"));
  return std::unique_ptr<Stream>(new Stream(std::move(context), stream, kind));
}

Result<std::unique_ptr<Stream>> Stream::create(std::shared_ptr<PrimaryContext> context) {
  return create(std::move(context), Kind::own);
}

Result<std::unique_ptr<Stream>> Stream::create_for_capture(std::shared_ptr<PrimaryContext> context) {
  return create(std::move(context), Kind::capture);
}

std::unique_ptr<Stream> Stream::borrow(std::shared_ptr<PrimaryContext> context, CUstream stream) {
  return std::unique_ptr<Stream>(new Stream(std::move(context), stream, Kind::borrowed));
}

Stream::~Stream() {
  drop_auxiliary();
  const ContextScope scope(*context_);
  if (kind_ == Kind::own) context_->remove_stream(stream_);
  if (kind_ != Kind::borrowed) context_->driver().cuStreamDestroy(stream_);
  if (mark_) context_->remove_mark(mark_);
}

void Stream::end() {
  if (kind_ == Kind::borrowed) mark();
  context_->pop();
}

// The application may destroy its stream before the objects that have used it: from then on the driver is asked about
// an event alone. Where that cannot be had, the work is waited for now.
void Stream::mark() {
  const Driver& driver = context_->driver();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (driver.cuStreamIsCapturing(stream_, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE) return;
  if (!mark_ && driver.cuEventCreate(&mark_, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS) context_->add_mark(mark_);
  if (!mark_ || driver.cuEventRecord(mark_, stream_) != CUDA_SUCCESS) driver.cuStreamSynchronize(stream_);
}

Result<> Stream::record_event(void* event) {
  return context_->check(context_->driver().cuEventRecord(static_cast<CUevent>(event), stream_),
                         "recording the application's event");
}

Result<> Stream::keep_in_cache(const void* base, size_t bytes) {
  if (!context_->driver().has_cache_windows()) return {};
  LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(*context_));
  CUlaunchAttributeValue value{};
  value.accessPolicyWindow = {const_cast<void*>(base), bytes, bytes > 0 ? 1.0F : 0.0F,
                              bytes > 0 ? CU_ACCESS_PROPERTY_PERSISTING : CU_ACCESS_PROPERTY_NORMAL,
                              bytes > 0 ? CU_ACCESS_PROPERTY_STREAMING : CU_ACCESS_PROPERTY_NORMAL};
  return context_->check(
      context_->driver().cuStreamSetAttribute(stream_, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value),
      "choosing what stays in the L2 cache");
}

// Those of a stream that is captured hold no work of their own, as it does not.
Result<Stream::Auxiliary> Stream::make_auxiliary(size_t number) {
  LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(*context_));
  Auxiliary made;
  if (number <= given_.size()) {
    made.stream = borrow(context_, given_[number - 1]);
  } else {
    LATHE_ASSIGN(made.stream, create(context_, kind_ == Kind::capture ? Kind::capture : Kind::own));
  }
  LATHE_TRY(
      context_->check(context_->driver().cuEventCreate(&made.forked, CU_EVENT_DISABLE_TIMING), "making an event"));
  Result<> both =
      context_->check(context_->driver().cuEventCreate(&made.joined, CU_EVENT_DISABLE_TIMING), "making an event");
  if (both) return made;
  context_->driver().cuEventDestroy(made.forked);
  return fail(std::move(both).error());
}

void Stream::drop_auxiliary() {
  if (auxiliary_.empty()) return;
  const ContextScope scope(*context_);
  for (const Auxiliary& auxiliary : auxiliary_)
    for (CUevent event : {auxiliary.forked, auxiliary.joined}) context_->driver().cuEventDestroy(event);
  auxiliary_.clear();
}

void Stream::set_auxiliary(std::span<void* const> streams) {
  drop_auxiliary();
  given_.clear();
  for (void* stream : streams) given_.push_back(static_cast<CUstream>(stream));
}

Result<Queue*> Stream::fork(size_t number) {
  while (auxiliary_.size() < number) {
    LATHE_ASSIGN(Auxiliary made, make_auxiliary(auxiliary_.size() + 1));
    auxiliary_.push_back(std::move(made));
  }
  const Auxiliary& auxiliary = auxiliary_[number - 1];
  LATHE_TRY(order(*this, auxiliary.forked, *auxiliary.stream));
  return auxiliary.stream.get();
}

Result<> Stream::join(size_t number) {
  const Auxiliary& auxiliary = auxiliary_[number - 1];
  return order(*auxiliary.stream, auxiliary.joined, *this);
}

Result<> Stream::order(const Stream& before, CUevent event, const Stream& after) {
  const Driver& driver = context_->driver();
  LATHE_TRY(context_->check(driver.cuEventRecord(event, before.stream_), "marking where streams meet"));
  return context_->check(driver.cuStreamWaitEvent(after.stream_, event, 0), "letting a stream wait for another");
}

bool Stream::is_captured() const {
  if (kind_ != Kind::borrowed) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const ContextScope scope(*context_);
  return context_->driver().cuStreamIsCapturing(stream_, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

Result<> Stream::wait() {
  LATHE_ASSIGN(const ContextScope scope, ContextScope::enter(*context_));
  return context_->check(context_->driver().cuStreamSynchronize(stream_), "running work on the device");
}

Result<> Stream::capture_begin() {
  return context_->check(context_->driver().cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                         "beginning to record work");
}

Result<CUgraph> Stream::capture_end() {
  CUgraph graph = nullptr;
  LATHE_TRY(context_->check(context_->driver().cuStreamEndCapture(stream_, &graph), "capturing work"));
  LATHE_CHECK(graph != nullptr);
  return graph;
}

}  // namespace lathe::cuda
