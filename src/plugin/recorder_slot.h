// SPDX-License-Identifier: Apache-2.0
// The error recorder of an object, which one thread may exchange while another reports to it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "NvInferRuntime.h"

namespace lathe::plugin {

// Holds one reference to the recorder, null or not. Thread-safe.
class RecorderSlot {
 public:
  struct Release {
    void operator()(nvinfer1::IErrorRecorder* recorder) const noexcept { recorder->decRefCount(); }
  };
  using Held = std::unique_ptr<nvinfer1::IErrorRecorder, Release>;

  RecorderSlot() = default;
  ~RecorderSlot() { set(nullptr); }
  RecorderSlot(const RecorderSlot&) = delete;
  RecorderSlot& operator=(const RecorderSlot&) = delete;

  void set(nvinfer1::IErrorRecorder* recorder) noexcept {
    if (recorder) recorder->incRefCount();
    const Held old(exchange(recorder));
  }
  nvinfer1::IErrorRecorder* get() const noexcept { return recorder_; }
  // The recorder with a reference of its own, for calling it: it lives on while it is held, even if another thread
  // replaces it in the slot.
  Held hold() const noexcept {
    const std::lock_guard lock(mutex_);
    nvinfer1::IErrorRecorder* recorder = recorder_;
    if (recorder) recorder->incRefCount();
    return Held(recorder);
  }

 private:
  nvinfer1::IErrorRecorder* exchange(nvinfer1::IErrorRecorder* recorder) noexcept {
    const std::lock_guard lock(mutex_);
    return recorder_.exchange(recorder);
  }

  // Held while the pointer is read and its count raised in hold(): without it, set() could drop the last reference
  // between the two.
  mutable std::mutex mutex_;
  std::atomic<nvinfer1::IErrorRecorder*> recorder_{nullptr};
};

}  // namespace lathe::plugin
