// SPDX-License-Identifier: Apache-2.0
// The inputs and outputs of one context: their shapes, their memory on both sides, what is in it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/tensor.h"
#include "trtexec/gpu.h"
#include "trtexec/log.h"
#include "trtexec/options.h"

namespace lathe::trtexec {

// Where inputs and outputs lie: in memory of the GPU, or of the host, for engines of the CPU.
class IoPlace {
 public:
  IoPlace() = default;  // the host
  IoPlace(const CudaCalls& calls, bool managed) : calls_(&calls), managed_(managed) {}
  bool is_host() const { return !calls_; }
  bool has_copies() const { return calls_ && !managed_; }  // the host sees other memory than the engine
  const CudaCalls& calls() const { return *calls_; }
  std::shared_ptr<void> engine_memory(size_t bytes) const;
  std::shared_ptr<void> host_memory(size_t bytes) const;

 private:
  const CudaCalls* calls_ = nullptr;
  bool managed_ = false;
};

// Gives an output as much as it turns out to need.
class GrowingOutput final : public nvinfer1::IOutputAllocator {
 public:
  explicit GrowingOutput(const IoPlace& place) : place_(place) {}
  void* reallocateOutputAsync(const char*, void*, uint64_t size, uint64_t, cudaStream_t) noexcept override;
  void notifyShape(const char*, const nvinfer1::Dims& dims) noexcept override { dims_ = dims; }
  const std::shared_ptr<void>& memory() const { return memory_; }
  const nvinfer1::Dims& dims() const { return dims_; }

 private:
  const IoPlace& place_;
  std::shared_ptr<void> memory_;
  uint64_t size_ = 0;
  nvinfer1::Dims dims_{};
};

struct IoBinding {
  std::string name;
  DataType type = DataType::kFLOAT;
  bool is_input = false;
  bool on_host = false;  // the engine reads or writes it there, whatever its device
  std::vector<int64_t> dims;
  size_t bytes = 0;
  std::shared_ptr<void> host, engine;      // the same where nothing is copied
  std::unique_ptr<GrowingOutput> growing;  // for outputs whose size is found while running

  bool is_copied() const { return host != engine; }
};

class IoBindings {
 public:
  // Sets the context's shapes. `place` outlives this. Throws cli::UsageError and cli::Failure.
  IoBindings(nvinfer1::IExecutionContext& context, const IoPlace& place, const Options& options,
             const ReferencePair& files, TrtexecLog& log);

  void bind(nvinfer1::IExecutionContext& context) const;  // all addresses
  bool has_growing_outputs() const;
  size_t copied_bytes() const;
  // Queues copies of all inputs to the engine's memory, of all outputs to the host's.
  void copy_inputs(const GpuStream& stream) const;
  void copy_outputs(const GpuStream& stream);
  // Those that the last inference gave, once their copies are done.
  std::vector<cli::HostTensor> outputs() const;
  const std::vector<IoBinding>& all() const { return bindings_; }

 private:
  void add_input(nvinfer1::IExecutionContext& context, const char* name, const Options& options,
                 const ReferencePair& files, TrtexecLog& log);
  void add_output(nvinfer1::IExecutionContext& context, const char* name, TrtexecLog& log);
  void give_memory(IoBinding& binding, const nvinfer1::ICudaEngine& engine) const;

  const IoPlace& place_;
  std::vector<IoBinding> bindings_;
};

}  // namespace lathe::trtexec
