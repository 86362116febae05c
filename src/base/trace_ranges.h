// SPDX-License-Identifier: Apache-2.0
// Ranges of NVTX: what profilers that listen in this process show on their timelines.
#pragma once

namespace lathe {

// Whether a profiler listens: the library that NVTX_INJECTION64_PATH names, which is loaded at the first call.
// Thread-safe.
bool has_trace_listener();

// A range of the domain "TensorRT", on this thread, while the object lives; of null there is none.
class TraceRange {
 public:
  explicit TraceRange(const char* name);
  ~TraceRange();
  TraceRange(const TraceRange&) = delete;
  TraceRange& operator=(const TraceRange&) = delete;

 private:
  bool is_open_;
};

}  // namespace lathe
