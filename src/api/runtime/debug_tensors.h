// SPDX-License-Identifier: Apache-2.0
// A context's debug tensors: what markDebug() asked for, and what an IDebugListener is given.
#pragma once

#include <map>
#include <string>

#include "api/runtime/cuda_engine.h"
#include "runtime/context.h"

namespace lathe::api {

class DebugTensors {
 public:
  // Gives the tensors that are no outputs of the engine a place in memory. `context` outlives this.
  DebugTensors(const EngineCore& engine, Context& context);

  nv::IDebugListener* listener() const { return listener_; }
  void set_listener(nv::IDebugListener* listener);

  Result<> turn(const char* name, bool on);
  void turn_all(bool on);
  Result<bool> is_on(const char* name);

  // All results of steps, on the host; fails where the network was not marked so.
  Result<> turn_unfused(bool on);
  bool unfused() const { return unfused_; }

  // Before a run.
  void begin(cudaStream_t stream) { stream_ = stream; }
  // Behind a run, on whose stream the tensors become complete: gives the listener what is turned on. An error when it
  // was not content.
  Result<> deliver() const;

 private:
  struct Entry {
    size_t binding = 0;
    bool on = false;
    DeviceMemory memory;  // empty for outputs
  };
  Result<Entry*> find(const char* name);
  std::byte* provide(Entry& entry, size_t bytes) const;
  void watch_steps();
  Result<> give(const void* data, nv::TensorLocation location, DType dtype, const Dims& dims,
                const std::string& name) const;

  const EngineCore& engine_;
  Context& context_;
  std::map<std::string, Entry, std::less<>> tensors_;
  nv::IDebugListener* listener_ = nullptr;
  bool unfused_ = false;
  cudaStream_t stream_ = nullptr;  // of the run in progress
};

}  // namespace lathe::api
