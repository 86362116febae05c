// SPDX-License-Identifier: Apache-2.0
// An engine with all that running it takes, as frameworks hold one: docs/engine_wrapper.md. It is made of fields or of
// a record, a list of strings that can be stored, and becomes such a record again. A library of its own,
// liblathe_wrapper, which calls nothing but the interface of NvInferRuntime.h and the CUDA driver: it works with
// whichever runtime library the program links.
//
// Functions report failure with nullptr, false or -1, and once to the runtime's error recorder or else its logger;
// wrapperError() then says what went wrong. Nothing throws.
#ifndef LATHE_WRAPPER_H
#define LATHE_WRAPPER_H

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "NvInferRuntime.h"

namespace lathe {

namespace wrapper {
class WrappedEngine;
}

// The last failure of this library on the calling thread, as "LATHE-4001 plan_malformed: ..."; "" when there was none.
// Valid until the thread's next call that fails.
TENSORRTAPI const char* wrapperError() noexcept;

// ---- Records -------------------------------------------------------------------------------------------------------

// What is where in a record. Lists are joined by '%', truth is "0" or "1", numbers are decimal.
#define LATHE_RECORD_SLOTS(SLOT)                                                                                 \
  SLOT(ABI_TARGET_IDX)                                    /* kRecordAbi */                                       \
  SLOT(NAME_IDX)                                          /* '.' is written as '_' */                            \
  SLOT(DEVICE_IDX)                                        /* id%major%minor%kind%name, of EngineTarget */        \
  SLOT(ENGINE_IDX)                                        /* the plan, in base64 */                              \
  SLOT(INPUT_BINDING_NAMES_IDX)                           /* list */                                             \
  SLOT(OUTPUT_BINDING_NAMES_IDX)                          /* list */                                             \
  SLOT(HW_COMPATIBLE_IDX)                                 /* truth */                                            \
  SLOT(SERIALIZED_METADATA_IDX)                           /* the caller's */                                     \
  SLOT(TARGET_PLATFORM_IDX)                               /* "linux_x86_64", ... */                              \
  SLOT(REQUIRES_OUTPUT_ALLOCATOR_IDX)                     /* truth */                                            \
  SLOT(RESOURCE_ALLOCATION_STRATEGY_IDX)                  /* number of ResourceAllocation */                     \
  SLOT(REQUIRES_NATIVE_MULTIDEVICE_IDX)                   /* truth */                                            \
  SLOT(HAS_RUNTIME_CFG_IDX)                               /* truth: who wrote the record knows the next three */ \
  SLOT(RUNTIME_CACHE_PATH_IDX)                            /* RuntimeSettings::cachePath */                       \
  SLOT(DYNAMIC_SHAPES_KERNEL_SPECIALIZATION_STRATEGY_IDX) /* 0 lazy, 1 eager, 2 none */                          \
  SLOT(CUDA_GRAPH_STRATEGY_IDX)                           /* 0 disabled, 1 whole_graph_capture */

enum RecordSlot : int32_t {
#define LATHE_RECORD_SLOT(name) name,
  LATHE_RECORD_SLOTS(LATHE_RECORD_SLOT)
#undef LATHE_RECORD_SLOT
      SERIALIZATION_LEN
};
inline constexpr const char* kRecordAbi = "9";
static_assert(SERIALIZATION_LEN == 16 && RUNTIME_CACHE_PATH_IDX == HAS_RUNTIME_CFG_IDX + 1,
              "records are exchanged with other programs");

using EngineRecord = std::vector<std::string>;

// The library's layout, for programs in other languages: the number of a slot by its name (-1: there is none), its name
// (nullptr: there is none), and how many there are.
TENSORRTAPI int32_t recordSlot(const char* name) noexcept;
TENSORRTAPI const char* recordSlotName(int32_t slot) noexcept;
TENSORRTAPI int32_t recordLength() noexcept;
TENSORRTAPI const char* recordAbi() noexcept;
// Whether a program that has these names, in this order, means what the library does; the error names the first slot
// where they differ. Programs call it before anything else; EngineWrapper does for this header.
TENSORRTAPI bool checkRecordLayout(const char* const* names, int32_t nbNames, const char* abi) noexcept;

// Whether this header is that of the library.
inline bool checkRecordLayout() noexcept {
#define LATHE_RECORD_SLOT(name) #name,
  static constexpr const char* kNames[] = {LATHE_RECORD_SLOTS(LATHE_RECORD_SLOT)};
#undef LATHE_RECORD_SLOT
  return checkRecordLayout(kNames, SERIALIZATION_LEN, kRecordAbi);
}

// What a record holds, for people and whether or not it can run here: a line for each slot, with its name; of a plan
// its bytes. False where there is no memory.
TENSORRTAPI bool describeRecord(const EngineRecord& record, std::string& text) noexcept;

// ---- Fields --------------------------------------------------------------------------------------------------------

// What a plan is for.
struct EngineTarget {
  enum class Kind : int32_t { kGPU = 0, kDLA = 1, kCPU = 2 };  // there are no DLA cores: such engines are refused
  int32_t id = 0;                                              // of a GPU, as the driver counts
  int32_t major = 0, minor = 0;                                // of its compute capability
  Kind kind = Kind::kGPU;
  std::string name;  // of the product
};
// The GPU that is current to the calling thread, or the first. False where there is none.
TENSORRTAPI bool currentTarget(EngineTarget& target) noexcept;

// How the context has its memory: its own for as long as it lives, or some for each run.
enum class ResourceAllocation : int32_t { kSTATIC = 0, kDYNAMIC = 1 };

// What the runtime does while engines run. Names that are not listed are refused, also where the interface lacks the
// setting and nothing comes of it (wrapperFeatures()).
struct RuntimeSettings {
  std::string cachePath;                // of compiled kernels, shared by processes; "": none
  std::string specialization = "lazy";  // "lazy", "eager", "none": DynamicShapesKernelSpecializationStrategy
  std::string cudaGraphs = "disabled";  // "disabled", "whole_graph_capture": CudaGraphStrategy
};
// Whether these are names that exist; the error lists them. To be asked before anything is built.
TENSORRTAPI bool checkRuntimeSettings(const RuntimeSettings& settings) noexcept;

struct EngineFields {
  std::string name;
  EngineTarget target;
  std::vector<std::string> inputs, outputs;  // in the caller's order, all that the engine has
  bool hardwareCompatible = false;           // runs on every GPU from compute capability 8.0 on
  std::string metadata;
  bool needsOutputAllocator = false;  // sizes of outputs depend on data
  ResourceAllocation allocation = ResourceAllocation::kSTATIC;
  bool needsMultiDevice = false;  // has collective layers: setCommunicator()
};

// What the interface that the library was compiled with has.
struct WrapperFeatures {
  int32_t interfaceMajor;  // NV_TENSORRT_MAJOR
  bool runtimeConfig;      // IRuntimeConfig; without it contexts are created with an allocation strategy alone
  bool runtimeCache;       // IRuntimeCache
  bool specialization;     // DynamicShapesKernelSpecializationStrategy
  bool cudaGraphStrategy;  // CudaGraphStrategy
  bool captureQuery;       // IExecutionContext::isStreamCapturable()
  bool communicator;       // IExecutionContext::setCommunicator()
};
TENSORRTAPI WrapperFeatures wrapperFeatures() noexcept;

// Whether a stream may be captured around a run, by what the settings and the engine's inputs say: not where kernels
// are specialised in the background for sizes that are open, for a graph would keep those from before.
TENSORRTAPI bool capturable(const char* specialization, bool dynamicInputs) noexcept;

// ---- Tensors -------------------------------------------------------------------------------------------------------

// Row-major, dense. `data` is not owned: it must stay until the work is done.
struct InputTensor {
  std::string name;
  const void* data = nullptr;
  nvinfer1::DataType type = nvinfer1::DataType::kFLOAT;
  nvinfer1::Dims dims{};
  // Where `data` is. Inputs of the host's memory are copied to a GPU, with one warning for each; those that an engine
  // reads on the host (shape tensors) are copied from a GPU, which waits for it.
  nvinfer1::TensorLocation location = nvinfer1::TensorLocation::kDEVICE;
};

// An output, where the engine leaves it: on its GPU, for CPU engines and those that getTensorLocation() says are of the
// host in the host's memory.
struct OutputTensor {
  std::string name;
  // Before the run: memory for it, not owned, of `bytes` bytes; or nullptr, for memory that the wrapper finds, which
  // `owner` then keeps alive. It is given back behind the work of the streams that runs were given.
  void* data = nullptr;
  int64_t bytes = 0;
  std::shared_ptr<void> owner;
  nvinfer1::DataType type = nvinfer1::DataType::kFLOAT;
  nvinfer1::Dims dims{};
};

// What has happened since the wrapper was made.
struct WrapperCounts {
  int64_t runs, contexts, graphsRecorded, graphReplays;
};

// ---- The wrapper ---------------------------------------------------------------------------------------------------

// All functions may be called from several threads; those of one wrapper follow each other.
class TENSORRTAPI EngineWrapper {
 public:
  // Settings are looked at first, then fields, then the platform and the GPUs of this machine: the current one is
  // taken if it runs the plan, else the one of the recorded number, else one of the recorded product, else the first
  // that does. Then the plan is loaded, a plan that can stream weights with the budget that the runtime proposes.
  // Load no plan that you do not trust (docs/trust.md).
  // The header's layout of records is compared with the library's before all that.
  static std::unique_ptr<EngineWrapper> create(std::shared_ptr<nvinfer1::IRuntime> runtime, const std::string& plan,
                                               const EngineFields& fields, RuntimeSettings settings = {}) noexcept {
    if (!checkRecordLayout()) return nullptr;
    return createOfFields(std::move(runtime), plan, fields, std::move(settings));
  }
  static std::unique_ptr<EngineWrapper> create(std::shared_ptr<nvinfer1::IRuntime> runtime,
                                               const EngineRecord& record) noexcept {
    return checkRecordLayout() ? createOfRecord(std::move(runtime), record) : nullptr;
  }
  // Saves the runtime cache, then lets go of profile, context and engine. Waits for the work of the context.
  ~EngineWrapper() noexcept;
  EngineWrapper(const EngineWrapper&) = delete;
  EngineWrapper& operator=(const EngineWrapper&) = delete;

  // The record, of the engine as it is now. A wrapper that was made of a record gives the same one, byte for byte,
  // unless it was refitted.
  bool record(EngineRecord& record) const noexcept;

  // Runs the engine once: all inputs by name, in any order. Outputs that are listed go where they say, all others are
  // appended; an empty list gets all in the order of the fields. With a GPU the work is queued on `stream`, and
  // complete there; null is the default stream, whose work is done on another one that it waits for. A stream that the
  // caller captures gets the engine's steps; inputs and outputs must then be in the device's memory and stay there.
  // False leaves the outputs undefined.
  bool run(const std::vector<InputTensor>& inputs, std::vector<OutputTensor>& outputs,
           cudaStream_t stream = nullptr) noexcept;

  // Whether the caller may capture the next run on this stream: capturable(), and what the context says.
  bool isStreamCapturable(cudaStream_t stream) const noexcept;

  // Graphs of the wrapper's own: each run whose sizes are those of the last is one launch; inputs and outputs are
  // copied. Off at first. Refused where the engine needs output allocators or they were asked for. No graph is recorded
  // on a CPU, while the runtime captures by itself (cudaGraphs), where capturable() says no, and in the caller's own
  // capture.
  bool setCudaGraphs(bool on) noexcept;
  bool cudaGraphs() const noexcept;  // whether they were asked for
  // Whether runs are recorded by the wrapper: asked for, on a GPU, and not by the runtime itself.
  bool recordsGraphs() const noexcept;
  // Memory for the next run's outputs is found while this one works; it is used where their sizes stay. Off at first.
  bool setPreAllocatedOutputs(bool on) noexcept;
  bool preAllocatedOutputs() const noexcept;
  // Outputs take their memory when their sizes are known. On where the engine needs it.
  bool setOutputAllocator(bool on) noexcept;
  bool outputAllocator() const noexcept;
  bool setResourceAllocation(ResourceAllocation allocation) noexcept;
  ResourceAllocation resourceAllocation() const noexcept;

  // Bytes of the device's memory for weights that can be streamed; more than there are is all. Refused where it is
  // negative or the plan has no such weights. Waits for the work of the context.
  bool setWeightStreamingBudget(int64_t bytes) noexcept;
  int64_t weightStreamingBudget() const noexcept;
  int64_t streamableWeights() const noexcept;

  // An ncclComm_t for collective layers, of engines that need it; kept for contexts that come later. Giving it up saves
  // the runtime cache before the context goes.
  bool setCommunicator(void* communicator) noexcept;
  bool releaseCommunicator() noexcept;

  // Times of layers, from now on: {"name", "runs", "layers": [{"name", "milliseconds"}]}, milliseconds being the mean.
  // Runs wait for their work meanwhile. Off at first.
  bool setProfiling(bool on) noexcept;
  bool profileJson(std::string& json) const noexcept;

  // For all wrappers of this process: each run makes sure that the engine's GPU is the thread's current one, with one
  // warning for each wrapper where it is not, and leaves the thread's as it was. Off at first; then the caller sees to
  // it.
  static void setMultiDeviceSafeMode(bool on) noexcept;
  static bool multiDeviceSafeMode() noexcept;

  const std::string& name() const noexcept;
  const EngineFields& fields() const noexcept;
  const EngineTarget& device() const noexcept;  // that the engine is on
  RuntimeSettings settings() const noexcept;    // that are in effect
  bool dynamicInputs() const noexcept;          // whether some input, also of values, is of no fixed size
  bool isCapturedByRuntime() const noexcept;    // whether the runtime itself captures graphs
  WrapperCounts counts() const noexcept;
  // The engine, to be looked at and refitted. It must not be run or deleted.
  nvinfer1::ICudaEngine& engine() const noexcept;

 private:
  static std::unique_ptr<EngineWrapper> createOfFields(std::shared_ptr<nvinfer1::IRuntime> runtime,
                                                       const std::string& plan, const EngineFields& fields,
                                                       RuntimeSettings settings) noexcept;
  static std::unique_ptr<EngineWrapper> createOfRecord(std::shared_ptr<nvinfer1::IRuntime> runtime,
                                                       const EngineRecord& record) noexcept;
  explicit EngineWrapper(std::unique_ptr<wrapper::WrappedEngine> wrapped) noexcept;
  std::unique_ptr<wrapper::WrappedEngine> wrapped_;
};

}  // namespace lathe

#endif  // LATHE_WRAPPER_H
