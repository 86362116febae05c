// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "NvOnnxParser.h"
#include "failure.h"
#include "input_elements.h"
#include "layer_types.h"
#include "tactic_sources.h"

namespace lathe::cli {
namespace {

using nvinfer1::TensorIOMode;

// What the library logged, or else what it last said, becomes the failure.
[[noreturn]] void fail(ConsoleLogger& logger, std::string_view what) {
  std::string reason = logger.take_errors();
  if (reason.empty()) reason = lastError();
  throw Failure(reason.empty() ? std::string(what) : reason);
}

// The timing cache of a file, which is written back when the build is done.
class CacheFile {
 public:
  CacheFile(const std::string& path, nvinfer1::IBuilderConfig& config) : path_(path) {
    if (path_.empty()) return;
    std::string bytes;
    if (access(path_.c_str(), F_OK) == 0) bytes = read_file(path_);
    cache_.reset(config.createTimingCache(bytes.data(), bytes.size()));
    if (!cache_) {
      fmt::print(stderr, "warning: {} is no timing cache of this version; a new one takes its place\n", path_);
      cache_.reset(config.createTimingCache(nullptr, 0));
    }
    if (cache_ && !config.setTimingCache(*cache_, false)) cache_.reset();
  }
  // What both have is kept.
  void merge(const std::string& path, nvinfer1::IBuilderConfig& config, ConsoleLogger& logger) {
    const std::string bytes = read_file(path);
    const std::unique_ptr<nvinfer1::ITimingCache> other(config.createTimingCache(bytes.data(), bytes.size()));
    if (!other || !cache_ || !cache_->combine(*other, true)) fail(logger, path + " is no timing cache");
  }
  void write() const {
    const Plan bytes(cache_ ? cache_->serialize() : nullptr);
    if (bytes) write_file(path_, text_of(*bytes));
  }
  // Of a build that failed, whose error is the one to tell.
  void write_if_possible() const {
    try {
      write();
    } catch (const Failure& failure) {
      fmt::print(stderr, "warning: the timing cache is not kept: {}\n", failure.what());
    }
  }

 private:
  const std::string& path_;
  std::unique_ptr<nvinfer1::ITimingCache> cache_;
};

void warn_of_open_shapes(const nvinfer1::INetworkDefinition& network) {
  for (int32_t i = 0; i < network.getNbInputs(); ++i) {
    const nvinfer1::ITensor& input = *network.getInput(i);
    if (!is_dynamic(input.getDimensions())) continue;
    const std::string dims = to_text(to_vector(input.getDimensions()));
    fmt::print(stderr,
               "warning: input '{0}' has shape {1}: the engine will take any sizes, but is tuned for ?=1; say what it "
               "is for with --minShapes, --optShapes, --maxShapes={0}:...\n",
               input.getName(), dims);
  }
}

// The engine is for what these inputs hold, where they are shapes.
void set_shape_values(nvinfer1::IOptimizationProfile& profile, const nvinfer1::INetworkDefinition& network,
                      const std::vector<HostTensor>& inputs) {
  using nvinfer1::OptProfileSelector;
  for (int32_t i = 0; i < network.getNbInputs(); ++i) {
    const nvinfer1::ITensor& input = *network.getInput(i);
    for (const HostTensor& given : inputs) {
      if (given.name != input.getName() || !input.isShapeTensor()) continue;
      std::vector<int64_t> values;
      for (int64_t k = 0; k < volume(given.dims); ++k) values.push_back(static_cast<int64_t>(element(given, k)));
      for (const auto select : {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX})
        if (!profile.setShapeValuesV2(input.getName(), select, values.data(), static_cast<int32_t>(values.size())))
          throw Failure(lastError());
    }
  }
}

void set_target(nvinfer1::IBuilderConfig& config, const BuildSettings& settings) {
  using nvinfer1::DataType;
  if (!settings.target.empty() && !setTarget(config, settings.target.c_str())) throw UsageError(lastError());
  if (!settings.targets.empty() && !setTargets(config, settings.targets.c_str())) throw UsageError(lastError());
  setVariantWeights(config, settings.stores_weights ? VariantWeights::kSTORED : VariantWeights::kDERIVED);
  const DataType narrow = settings.fp16 || settings.best ? DataType::kHALF
                          : settings.bf16                ? DataType::kBF16
                                                         : DataType::kFLOAT;
  if (!setPrecision(config, narrow)) throw UsageError(lastError());
  setInt8(config, settings.int8);
  if (settings.sparsity != "disable") config.setFlag(nvinfer1::BuilderFlag::kSPARSE_WEIGHTS);
  setForcedSparsity(config, settings.sparsity == "force");
  set_layer_types(config, settings);
  if (settings.no_tf32 || settings.strongly_typed) config.clearFlag(nvinfer1::BuilderFlag::kTF32);
}

void set_passes(nvinfer1::IBuilderConfig& config, const BuildSettings& settings) {
  if (!setPassDump(config, settings.pass_dump.c_str())) throw Failure(lastError());
  for (const std::string& pass : settings.skip)
    if (!setPassSkipped(config, pass.c_str(), true)) throw UsageError(fmt::format("--skipPass: {}", lastError()));
}

// Of another library, which stays mapped; it is found as this program's own libraries are.
nvinfer1::IRuntime* make_runtime_of(const std::string& library, ConsoleLogger& logger) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw Failure(fmt::format("--useRuntime: {}", dlerror()));
  auto* const make = reinterpret_cast<void* (*)(void*, int32_t)>(dlsym(handle, "createInferRuntime_INTERNAL"));
  auto* const runtime = make ? static_cast<nvinfer1::IRuntime*>(make(&logger, NV_TENSORRT_VERSION)) : nullptr;
  if (!runtime) fail(logger, library + ": the runtime could not be made");
  return runtime;
}

void check_input(const Session& session, const std::vector<std::string>& names, const std::string& wanted) {
  if (std::find(names.begin(), names.end(), wanted) != names.end()) return;
  std::string known;
  for (const std::string& name : names) {
    const InputSpec input = session.expected(name);
    known += fmt::format("{}{} ({} {})", known.empty() ? "" : ", ", name, type_name(input.type), to_text(input.dims));
  }
  throw UsageError(fmt::format("there is no input '{}'; the inputs: {}", wanted, known.empty() ? "none" : known));
}

}  // namespace

std::string take_text(nvinfer1::IHostMemory* report) {
  const Plan owned(report);
  if (!owned) throw Failure(lastError());
  return std::string(text_of(*owned));
}

bool is_model_file(const std::string& path) { return path.ends_with(".onnx"); }

namespace {

using BuildCall = std::function<bool(nvinfer1::IBuilder&, nvinfer1::INetworkDefinition&, nvinfer1::IBuilderConfig&)>;

void build_by(const BuildCall& call, const std::string& model, const BuildRequest& request, ConsoleLogger& logger) {
  const BuildSettings& settings = *request.settings;
  const std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(logger));
  if (!builder) fail(logger, "the builder could not be made");
  const std::unique_ptr<nvinfer1::INetworkDefinition> network(builder->createNetworkV2(0));
  const std::unique_ptr<nvonnxparser::IParser> parser(network ? nvonnxparser::createParser(*network, logger) : nullptr);
  if (!parser) fail(logger, "the parser could not be made");
  set_input_elements(*parser, settings.input_elements);
  if (!parser->parseFromFile(model.c_str(), static_cast<int>(settings.least_severity())))
    fail(logger, "the model could not be parsed");

  const std::unique_ptr<nvinfer1::IBuilderConfig> config(builder->createBuilderConfig());
  if (!config) fail(logger, "the configuration could not be made");
  config->setProfilingVerbosity(nvinfer1::ProfilingVerbosity::kDETAILED);
  if (settings.level >= 0) config->setBuilderOptimizationLevel(settings.level);
  if (!setBuildBudget(*config, settings.budget) || !setCpuThreads(*config, settings.threads))
    throw UsageError(lastError());
  set_target(*config, settings);
  if (settings.version_compatible) config->setFlag(nvinfer1::BuilderFlag::kVERSION_COMPATIBLE);
  if (settings.exclude_lean_runtime) config->setFlag(nvinfer1::BuilderFlag::kEXCLUDE_LEAN_RUNTIME);
  set_tactic_sources(*config, settings.tactic_sources);
  set_passes(*config, settings);
  if (!request.shapes.empty()) {
    nvinfer1::IOptimizationProfile* profile = builder->createOptimizationProfile();
    if (!profile) fail(logger, "the profile could not be made");
    fill_profile(*profile, *network, request.shapes);
    if (request.shape_inputs) set_shape_values(*profile, *network, *request.shape_inputs);
    if (config->addOptimizationProfile(profile) < 0) fail(logger, "the shapes are not valid");
  } else if (request.show_progress) {
    warn_of_open_shapes(*network);
  }
  CacheFile cache(settings.timing_cache, *config);
  for (const std::string& other : request.merged_caches) cache.merge(other, *config, logger);
  std::optional<Progress> progress;
  if (request.show_progress) config->setProgressMonitor(&progress.emplace(settings.budget));
  const bool built = call(*builder, *network, *config);
  progress.reset();
  if (!built) {
    cache.write_if_possible();  // all may have been measured, and the plan alone not be written
    fail(logger, "the engine could not be built");
  }
  cache.write();
  if (request.report) *request.report = take_text(buildReportJson(*builder));
}

}  // namespace

Plan build_plan(const std::string& model, const BuildRequest& request, ConsoleLogger& logger) {
  Plan plan;
  const auto build = [&](auto& builder, auto& network, auto& config) {
    plan.reset(builder.buildSerializedNetwork(network, config));
    return plan != nullptr;
  };
  build_by(build, model, request, logger);
  return plan;
}

void build_file(const std::string& model, const BuildRequest& request, const std::string& output,
                ConsoleLogger& logger) {
  const auto build = [&](auto& builder, auto& network, auto& config) {
    return buildEngineFile(builder, network, config, output.c_str());
  };
  build_by(build, model, request, logger);
}

Session Session::make(int threads, ConsoleLogger& logger, Use use) {
  Session session;
  session.runtime_.reset(nvinfer1::createInferRuntime(logger));
  if (!session.runtime_) fail(logger, "the runtime could not be made");
  if (!setCpuThreads(*session.runtime_, threads)) throw UsageError(lastError());
  setInspectionOnly(*session.runtime_, use == Use::inspect);
  return session;
}

Session Session::make(const RuntimeSettings& settings, int threads, ConsoleLogger& logger, Use use) {
  Session session;
  if (settings.which == "full") {
    session = make(threads, logger, use);
  } else {
    if (threads != 0) throw UsageError("--threads is for --useRuntime=full");
    session.runtime_.reset(make_runtime_of(fmt::format("liblathe_{}.so", settings.which), logger));
  }
  if (!settings.trusted_keys.empty()) {
    if (settings.which != "full")
      throw UsageError("--trustedKeys is for --useRuntime=full; elsewhere set LATHE_TRUSTED_KEYS");
    if (!setTrustedKeys(*session.runtime_, settings.trusted_keys.c_str())) throw UsageError(lastError());
  }
  if (!settings.cache_file.empty()) {
    if (settings.which != "full") throw UsageError("--runtimeCacheFile is for --useRuntime=full");
    if (!setRuntimeCacheFile(*session.runtime_, settings.cache_file.c_str())) throw UsageError(lastError());
  }
  if (settings.allow_host_code) session.runtime_->setEngineHostCodeAllowed(true);
  if (settings.lean_library.empty()) return session;
  session.loaded_.reset(session.runtime_->loadRuntime(settings.lean_library.c_str()));
  if (!session.loaded_) fail(logger, "the runtime library could not be loaded");
  return session;
}

void Session::load(const RuntimeSettings& settings, const std::string& path, ConsoleLogger& logger) {
  if (settings.which == "full" && !loaded_) {
    engine_.reset(loadEngineFile(*runtime_, path.c_str()));
  } else {
    const std::string plan = read_file(path);
    engine_.reset((loaded_ ? *loaded_ : *runtime_).deserializeCudaEngine(plan.data(), plan.size()));
  }
  if (!engine_) fail(logger, path + ": the engine could not be loaded");
}

Session Session::load(const void* plan, size_t size, int threads, ConsoleLogger& logger, Use use) {
  Session session = make(threads, logger, use);
  session.engine_.reset(session.runtime_->deserializeCudaEngine(plan, size));
  if (!session.engine_) fail(logger, "the engine could not be loaded");
  return session;
}

Session Session::open(const std::string& path, const BuildRequest& request, ConsoleLogger& logger, Use use) {
  const RuntimeSettings standard;
  const RuntimeSettings& runtime = request.runtime ? *request.runtime : standard;
  if (is_model_file(path)) {
    if (runtime.which != "full" || !runtime.lean_library.empty())
      throw UsageError("--useRuntime and --leanDLLPath are for engines: build the model first");
    const Plan plan = build_plan(path, request, logger);
    return load(plan->data(), plan->size(), request.settings->threads, logger, use);
  }
  Session session = make(runtime, request.settings->threads, logger, use);
  session.load(runtime, path, logger);
  return session;
}

std::vector<std::string> Session::names(TensorIOMode mode) const {
  std::vector<std::string> names;
  for (int32_t i = 0; i < engine_->getNbIOTensors(); ++i)
    if (engine_->getTensorIOMode(engine_->getIOTensorName(i)) == mode) names.emplace_back(engine_->getIOTensorName(i));
  return names;
}

InputSpec Session::expected(const std::string& input) const {
  return {input, engine_->getTensorDataType(input.c_str()), to_vector(engine_->getTensorShape(input.c_str()))};
}

OutputMemory::~OutputMemory() { std::free(data_); }

void* OutputMemory::reallocateOutputAsync(const char*, void*, uint64_t size, uint64_t alignment, cudaStream_t) {
  if (data_ && size <= size_) return data_;
  std::free(data_);
  size_ = (size + alignment - 1) / alignment * alignment;
  return data_ = std::aligned_alloc(alignment, size_);
}

Inference::Inference(Session& session, const std::vector<HostTensor>& inputs, ConsoleLogger& logger)
    : logger_(logger), engine_(session.engine()), context_(session.engine().createExecutionContext()) {
  if (!context_) fail(logger_, "the context could not be made");
  for (int32_t i = 0; i < engine_.getNbIOTensors(); ++i)
    if (const char* name = engine_.getIOTensorName(i); engine_.getTensorFormat(name) != nvinfer1::TensorFormat::kLINEAR)
      throw Failure(
          fmt::format("tensor '{}' is in format '{}': this command knows row-major ones; trtexec runs the engine", name,
                      engine_.getTensorFormatDesc(name)));
  static const std::byte nothing{};  // the address of tensors without elements
  for (const HostTensor& input : inputs) {
    const void* data = input.data.empty() ? &nothing : input.data.data();
    if (!context_->setInputShape(input.name.c_str(), to_dims(input.dims)) ||
        !context_->setInputTensorAddress(input.name.c_str(), data))
      fail(logger_, "an input was refused");
  }
  for (const std::string& name : session.names(TensorIOMode::kOUTPUT))
    if (!context_->setOutputAllocator(name.c_str(), &memory_[name])) fail(logger_, "an output was refused");
}

void Inference::run() {
  if (!context_->enqueueV3(nullptr)) fail(logger_, "the engine could not be run");
}

std::vector<HostTensor> Inference::outputs() const {
  std::vector<HostTensor> outputs;
  for (int32_t i = 0; i < engine_.getNbIOTensors(); ++i) {
    const char* name = engine_.getIOTensorName(i);
    const auto it = memory_.find(name);
    if (it == memory_.end()) continue;
    HostTensor tensor{name, engine_.getTensorDataType(name), to_vector(it->second.dims()), {}};
    const size_t bytes = byte_size(tensor.type, tensor.dims);
    tensor.data.assign(it->second.data(), it->second.data() + bytes);
    outputs.push_back(std::move(tensor));
  }
  return outputs;
}

std::vector<HostTensor> gather_inputs(Session& session, const std::map<std::string, std::string>& files,
                                      const ShapeMap& shapes, bool generate) {
  const std::vector<std::string> names = session.names(TensorIOMode::kINPUT);
  for (const auto& entry : files) check_input(session, names, entry.first);
  for (const auto& entry : shapes) check_input(session, names, entry.first);
  std::vector<HostTensor> tensors;
  for (const std::string& name : names) {
    InputSpec expected = session.expected(name);
    if (const auto file = files.find(name); file != files.end()) {
      tensors.push_back(read_tensor_file(file->second, expected));
      continue;
    }
    if (!generate)
      throw UsageError(fmt::format("input '{}' ({}, {}) is not given: add --loadInputs={}:FILE", name,
                                   type_name(expected.type), to_text(expected.dims), name));
    if (const auto shape = shapes.find(name); shape != shapes.end()) {
      expected.dims = shape->second;
    } else {
      expected.dims = to_vector(session.engine().getProfileShape(name.c_str(), 0, nvinfer1::OptProfileSelector::kOPT));
    }
    tensors.push_back(make_input(name, expected.type, expected.dims, tensors.size() + 1));
  }
  return tensors;
}

}  // namespace lathe::cli
