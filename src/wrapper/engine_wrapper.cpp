// SPDX-License-Identifier: Apache-2.0
// lathe_wrapper.h: checks what may be null, takes turns, and reports failures.
#include "lathe_wrapper.h"

#include <cstring>

#include "wrapper/wrapped_engine.h"

namespace lathe {

using wrapper::WrappedEngine;

namespace {

// Functions that have no engine have nobody to report to: wrapperError() tells.
template <class Body>
bool guarded_alone(const char* where, Body&& body) noexcept {
  const api::Reporter nobody(nullptr);
  return api::guarded(nobody, where, std::forward<Body>(body));
}

template <class Body>
bool guarded(WrappedEngine& engine, const char* where, Body&& body) noexcept {
  return api::guarded(engine.reporter(), where, [&]() -> Result<> {
    const std::lock_guard lock(engine.mutex());
    Result<> done = body();
    if (done) return {};
    return fail(with_context(std::move(done).error(), engine.where()));
  });
}

// Why a runtime loads no plan it has reported by itself.
Result<std::unique_ptr<WrappedEngine>> start(std::unique_ptr<WrappedEngine> wrapped) {
  const Result<> started = wrapped->start();
  if (started) return wrapped;
  Error error = with_context(started.error(), wrapped->where());
  if (!wrapped->is_reported()) return fail(std::move(error));
  api::set_last_error(error.to_string());
  return nullptr;
}

// `read` gives what the wrapper is made of, `own` makes it.
template <class Read, class Own>
std::unique_ptr<EngineWrapper> make(std::shared_ptr<nvinfer1::IRuntime> runtime, const Read& read,
                                    const Own& own) noexcept {
  api::Reporter reporter(runtime ? runtime->getLogger() : nullptr);
  if (runtime) reporter.set_recorder(runtime->getErrorRecorder());
  return api::guarded(reporter, "EngineWrapper::create()", std::unique_ptr<EngineWrapper>(),
                      [&]() -> Result<std::unique_ptr<EngineWrapper>> {
                        LATHE_ASSIGN(wrapper::RecordContent content, read());
                        if (!runtime)
                          return fail(ErrorCode::invalid_argument,
                                      "the runtime is null: createInferRuntime() makes one");
                        auto wrapped = std::make_unique<WrappedEngine>(std::move(runtime), std::move(content));
                        LATHE_ASSIGN(wrapped, start(std::move(wrapped)));
                        return wrapped ? own(std::move(wrapped)) : nullptr;
                      });
}

}  // namespace

const char* wrapperError() noexcept { return api::last_error(); }

// ---- Records -------------------------------------------------------------------------------------------------------

int32_t recordSlot(const char* name) noexcept {
  for (int32_t slot = 0; name && slot < SERIALIZATION_LEN; ++slot)
    if (std::strcmp(recordSlotName(slot), name) == 0) return slot;
  return -1;
}

const char* recordSlotName(int32_t slot) noexcept {
  return slot >= 0 && slot < SERIALIZATION_LEN ? wrapper::slot_names()[static_cast<size_t>(slot)] : nullptr;
}

int32_t recordLength() noexcept { return SERIALIZATION_LEN; }

const char* recordAbi() noexcept { return kRecordAbi; }

bool checkRecordLayout(const char* const* names, int32_t nbNames, const char* abi) noexcept {
  return guarded_alone("checkRecordLayout()", [&] { return wrapper::compare_layout(names, nbNames, abi); });
}

bool describeRecord(const EngineRecord& record, std::string& text) noexcept {
  return guarded_alone("describeRecord()", [&]() -> Result<> {
    text = wrapper::record_text(record);
    return {};
  });
}

// ---- Fields --------------------------------------------------------------------------------------------------------

bool currentTarget(EngineTarget& target) noexcept {
  return guarded_alone("currentTarget()", [&]() -> Result<> {
    LATHE_ASSIGN(const std::vector<EngineTarget> gpus, wrapper::list_gpus());
    if (gpus.empty()) return fail(ErrorCode::cuda_no_device, "the CUDA driver finds no GPU: say kCPU for CPU engines");
    target = gpus[static_cast<size_t>(std::max(wrapper::current_gpu(), 0))];
    return {};
  });
}

bool checkRuntimeSettings(const RuntimeSettings& settings) noexcept {
  return guarded_alone("checkRuntimeSettings()", [&]() -> Result<> {
    LATHE_TRY(wrapper::parse_settings(settings));
    return {};
  });
}

WrapperFeatures wrapperFeatures() noexcept { return wrapper::features_of<nvinfer1::ICudaEngine>(); }

bool capturable(const char* specialization, bool dynamicInputs) noexcept {
  bool may = false;
  guarded_alone("capturable()", [&]() -> Result<> {
    if (!specialization) return fail(ErrorCode::invalid_argument, "the strategy is null");
    LATHE_ASSIGN(const wrapper::Specialization strategy, wrapper::parse_specialization(specialization));
    may = wrapper::is_capturable(strategy, dynamicInputs);
    return {};
  });
  return may;
}

// ---- The wrapper ---------------------------------------------------------------------------------------------------

EngineWrapper::EngineWrapper(std::unique_ptr<WrappedEngine> wrapped) noexcept : wrapped_(std::move(wrapped)) {}
EngineWrapper::~EngineWrapper() noexcept = default;

std::unique_ptr<EngineWrapper> EngineWrapper::createOfFields(std::shared_ptr<nvinfer1::IRuntime> runtime,
                                                             const std::string& plan, const EngineFields& fields,
                                                             RuntimeSettings settings) noexcept {
  const auto read = [&]() -> Result<wrapper::RecordContent> {
    wrapper::RecordContent content;
    LATHE_ASSIGN(content.settings, wrapper::parse_settings(settings));
    content.has_settings = wrapperFeatures().runtimeConfig;
    content.fields = fields;
    content.fields.name = wrapper::record_name(fields.name);
    LATHE_TRY(wrapper::write_record(content));  // what no record can hold is refused now
    content.plan = plan;
    return content;
  };
  return make(std::move(runtime), read,
              [](auto wrapped) { return std::unique_ptr<EngineWrapper>(new EngineWrapper(std::move(wrapped))); });
}

std::unique_ptr<EngineWrapper> EngineWrapper::createOfRecord(std::shared_ptr<nvinfer1::IRuntime> runtime,
                                                             const EngineRecord& record) noexcept {
  const auto read = [&] { return wrapper::read_record(record); };
  return make(std::move(runtime), read,
              [](auto wrapped) { return std::unique_ptr<EngineWrapper>(new EngineWrapper(std::move(wrapped))); });
}

bool EngineWrapper::record(EngineRecord& record) const noexcept {
  return guarded(*wrapped_, "record()", [&]() -> Result<> {
    LATHE_ASSIGN(record, wrapped_->record());
    return {};
  });
}

bool EngineWrapper::run(const std::vector<InputTensor>& inputs, std::vector<OutputTensor>& outputs,
                        cudaStream_t stream) noexcept {
  return guarded(*wrapped_, "run()", [&] { return wrapped_->run(inputs, outputs, stream); });
}

bool EngineWrapper::isStreamCapturable(cudaStream_t stream) const noexcept {
  bool may = false;
  guarded(*wrapped_, "isStreamCapturable()", [&]() -> Result<> {
    LATHE_ASSIGN(may, wrapped_->is_stream_capturable(stream));
    return {};
  });
  return may;
}

bool EngineWrapper::setCudaGraphs(bool on) noexcept {
  return guarded(*wrapped_, "setCudaGraphs()", [&] { return wrapped_->set_graphs(on); });
}

bool EngineWrapper::setPreAllocatedOutputs(bool on) noexcept {
  return guarded(*wrapped_, "setPreAllocatedOutputs()", [&]() -> Result<> {
    wrapped_->set_pre_allocated(on);
    return {};
  });
}

bool EngineWrapper::setOutputAllocator(bool on) noexcept {
  return guarded(*wrapped_, "setOutputAllocator()", [&] { return wrapped_->set_output_allocator(on); });
}

bool EngineWrapper::setResourceAllocation(ResourceAllocation allocation) noexcept {
  return guarded(*wrapped_, "setResourceAllocation()", [&] { return wrapped_->set_allocation(allocation); });
}

bool EngineWrapper::setWeightStreamingBudget(int64_t bytes) noexcept {
  return guarded(*wrapped_, "setWeightStreamingBudget()", [&] { return wrapped_->set_budget(bytes); });
}

bool EngineWrapper::setCommunicator(void* communicator) noexcept {
  return guarded(*wrapped_, "setCommunicator()", [&] { return wrapped_->set_communicator(communicator); });
}

bool EngineWrapper::releaseCommunicator() noexcept {
  return guarded(*wrapped_, "releaseCommunicator()", [&] { return wrapped_->release_communicator(); });
}

bool EngineWrapper::setProfiling(bool on) noexcept {
  return guarded(*wrapped_, "setProfiling()", [&] { return wrapped_->set_profiling(on); });
}

bool EngineWrapper::profileJson(std::string& json) const noexcept {
  return guarded(*wrapped_, "profileJson()", [&]() -> Result<> {
    json = wrapped_->profile();
    return {};
  });
}

void EngineWrapper::setMultiDeviceSafeMode(bool on) noexcept { WrappedEngine::safe_mode = on; }
bool EngineWrapper::multiDeviceSafeMode() noexcept { return WrappedEngine::safe_mode; }

namespace {

// What setters change is read in turn with them.
template <class Read>
auto read(const WrappedEngine& engine, Read&& read) noexcept {
  const std::lock_guard lock(engine.mutex());
  return read();
}

}  // namespace

bool EngineWrapper::cudaGraphs() const noexcept {
  return read(*wrapped_, [&] { return wrapped_->graphs(); });
}
bool EngineWrapper::recordsGraphs() const noexcept {
  return read(*wrapped_, [&] { return wrapped_->records(); });
}
bool EngineWrapper::preAllocatedOutputs() const noexcept {
  return read(*wrapped_, [&] { return wrapped_->pre_allocated(); });
}
bool EngineWrapper::outputAllocator() const noexcept {
  return read(*wrapped_, [&] { return wrapped_->output_allocator(); });
}
ResourceAllocation EngineWrapper::resourceAllocation() const noexcept {
  return read(*wrapped_, [&] { return wrapped_->content().fields.allocation; });
}
int64_t EngineWrapper::weightStreamingBudget() const noexcept {
  return read(*wrapped_, [&] { return wrapped_->engine().getWeightStreamingBudgetV2(); });
}
RuntimeSettings EngineWrapper::settings() const noexcept {
  RuntimeSettings settings;
  guarded(*wrapped_, "settings()", [&]() -> Result<> {
    settings = wrapper::settings_text(wrapped_->content().settings);
    return {};
  });
  return settings;
}
bool EngineWrapper::isCapturedByRuntime() const noexcept {
  return read(*wrapped_, [&] { return wrapped_->content().settings.runtime_captures(); });
}
WrapperCounts EngineWrapper::counts() const noexcept {
  return read(*wrapped_, [&] { return wrapped_->counts(); });
}
int64_t EngineWrapper::streamableWeights() const noexcept { return wrapped_->engine().getStreamableWeightsSize(); }
const std::string& EngineWrapper::name() const noexcept { return wrapped_->content().fields.name; }
const EngineFields& EngineWrapper::fields() const noexcept { return wrapped_->content().fields; }
const EngineTarget& EngineWrapper::device() const noexcept { return wrapped_->device().target(); }
bool EngineWrapper::dynamicInputs() const noexcept { return wrapped_->content().settings.dynamic_inputs; }
nvinfer1::ICudaEngine& EngineWrapper::engine() const noexcept { return wrapped_->engine(); }

}  // namespace lathe
