// SPDX-License-Identifier: Apache-2.0
// Where an engine runs: the host, or a GPU. Memory, copies and streams there.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "device/cuda/captured_graph.h"
#include "lathe_wrapper.h"

namespace lathe::wrapper {

// The GPUs of this machine, as the driver counts them; empty where there is no driver or GPU.
Result<std::vector<EngineTarget>> list_gpus();
// The number, among list_gpus(), of the one that is current to this thread; -1 where none is.
int current_gpu();

// Which of the GPUs runs an engine for `wanted`: of equal compute capability, or, if it is hardware-compatible, of 8.0
// and later. The current one comes first, then that of the same number, then one of the same product, then the first.
// plan_target, naming all GPUs, where none does.
Result<EngineTarget> choose_gpu(const EngineTarget& wanted, bool hardware_compatible,
                                const std::vector<EngineTarget>& gpus, int current);

// Streams are used within a turn of theirs (QueueTurn): memory that is freed later waits for what they were given.
class EngineDevice {
 public:
  static Result<EngineDevice> open(const EngineTarget& target);

  bool is_host() const { return !context_; }
  const EngineTarget& target() const { return target_; }

  // Makes the GPU current to the thread; the former one is again when the scope ends. Nothing on the host.
  Result<std::optional<cuda::ContextScope>> enter() const;

  Result<DeviceMemory> allocate(size_t bytes) const;
  // A stream of the application's, and one of its own.
  std::unique_ptr<cuda::Stream> borrow(void* stream) const;
  Result<std::unique_ptr<cuda::Stream>> make_stream() const;
  Result<std::unique_ptr<cuda::CudaGraph>> capture(const std::function<Result<>(void* stream)>& work) const;
  // What `after` is given from now on comes behind what `before` has been given.
  Result<> order(cuda::Stream& before, cuda::Stream& after) const;

  bool is_accessible(const void* address) const;  // whether kernels can read there
  Result<> copy(void* to, const void* from, size_t bytes, cuda::Stream* stream) const;  // on the device
  Result<> upload(void* to, const void* from, size_t bytes, cuda::Stream* stream) const;
  Result<> download(void* to, const void* from, size_t bytes, cuda::Stream* stream) const;

 private:
  EngineTarget target_;
  std::shared_ptr<cuda::PrimaryContext> context_;  // null: the host
};

// Memory as owners of outputs hold it.
std::shared_ptr<void> share(DeviceMemory memory);

}  // namespace lathe::wrapper
