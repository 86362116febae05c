// SPDX-License-Identifier: Apache-2.0
// From a file to an engine, and from inputs to outputs.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "commands.h"
#include "console.h"
#include "shapes.h"
#include "tensor_file.h"

namespace lathe::cli {

using Plan = std::unique_ptr<nvinfer1::IHostMemory>;
using Engine = std::unique_ptr<nvinfer1::ICudaEngine>;

inline std::string_view text_of(const nvinfer1::IHostMemory& memory) {
  return {static_cast<const char*>(memory.data()), memory.size()};
}

// The text of a report of lathe.h. Throws Failure when there is none.
std::string take_text(nvinfer1::IHostMemory* report);

bool is_model_file(const std::string& path);  // .onnx, as opposed to an engine

// Reads shapes and the like; a line of progress unless told not to. `report` receives buildReportJson().
struct BuildRequest {
  const BuildSettings* settings = nullptr;
  ShapeRanges shapes;
  bool show_progress = true;
  std::string* report = nullptr;
  const std::vector<HostTensor>* shape_inputs = nullptr;  // what those of them hold that are shapes
  std::vector<std::string> merged_caches = {};            // files, whose measurements go into the timing cache
  const RuntimeSettings* runtime = nullptr;               // null = the standard ones
};
Plan build_plan(const std::string& model, const BuildRequest& request, ConsoleLogger& logger);
void build_file(const std::string& model, const BuildRequest& request, const std::string& output,
                ConsoleLogger& logger);

// A runtime and an engine of it.
class Session {
 public:
  // From an engine file, or a model that is built first.
  enum class Use : uint8_t { run, inspect };
  static Session open(const std::string& path, const BuildRequest& request, ConsoleLogger& logger, Use use = Use::run);
  static Session load(const void* plan, size_t size, int threads, ConsoleLogger& logger, Use use = Use::run);

  nvinfer1::ICudaEngine& engine() { return *engine_; }
  std::vector<std::string> names(nvinfer1::TensorIOMode mode) const;
  InputSpec expected(const std::string& input) const;

 private:
  static Session make(int threads, ConsoleLogger& logger, Use use);
  static Session make(const RuntimeSettings& settings, int threads, ConsoleLogger& logger, Use use);
  void load(const RuntimeSettings& settings, const std::string& path, ConsoleLogger& logger);

  std::unique_ptr<nvinfer1::IRuntime> runtime_;
  std::unique_ptr<nvinfer1::IRuntime> loaded_;  // by runtime_, of another library
  Engine engine_;
};

// An output as large as it turns out to be.
class OutputMemory final : public nvinfer1::IOutputAllocator {
 public:
  ~OutputMemory() override;
  OutputMemory() = default;
  OutputMemory(const OutputMemory&) = delete;
  OutputMemory& operator=(const OutputMemory&) = delete;
  void* reallocateOutputAsync(const char*, void*, uint64_t size, uint64_t alignment, cudaStream_t) override;
  void notifyShape(const char*, const nvinfer1::Dims& dims) noexcept override { dims_ = dims; }
  const std::byte* data() const { return static_cast<const std::byte*>(data_); }
  const nvinfer1::Dims& dims() const { return dims_; }

 private:
  void* data_ = nullptr;
  uint64_t size_ = 0;
  nvinfer1::Dims dims_{};
};

// A context with inputs and outputs in place, which may run many times.
class Inference {
 public:
  // `inputs` must cover all inputs and outlive this. Throws Failure.
  Inference(Session& session, const std::vector<HostTensor>& inputs, ConsoleLogger& logger);

  void run();
  // Is told the time of each layer of the runs that follow.
  void set_profiler(nvinfer1::IProfiler* profiler) { context_->setProfiler(profiler); }
  std::vector<HostTensor> outputs() const;

 private:
  ConsoleLogger& logger_;
  const nvinfer1::ICudaEngine& engine_;
  std::map<std::string, OutputMemory> memory_;
  std::unique_ptr<nvinfer1::IExecutionContext> context_;
};

// The inputs of an engine from files (name:file,...). Throws UsageError when one is missing and `generate` is false;
// else it is made up, in `shapes` or the profile's favourite shape.
std::vector<HostTensor> gather_inputs(Session& session, const std::map<std::string, std::string>& files,
                                      const ShapeMap& shapes, bool generate);

}  // namespace lathe::cli
