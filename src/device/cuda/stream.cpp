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
  if (kind_ != Kind::capture) context_->add_stream(stream_);
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
  const ContextScope scope(*context_);
  if (kind_ != Kind::capture) context_->remove_stream(stream_);
  if (kind_ != Kind::borrowed) context_->driver().cuStreamDestroy(stream_);
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
