// SPDX-License-Identifier: Apache-2.0
#include "trtexec/engine.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "NvOnnxParser.h"
#include "cli/console.h"
#include "cli/failure.h"
#include "cli/file_view.h"
#include "cli/tensor_file.h"
#include "lathe.h"
#include "trtexec/build.h"
#include "trtexec/values.h"

namespace lathe::trtexec {
namespace {

using cli::Clock;
using cli::Failure;
using cli::FileView;
using cli::seconds_since;
using cli::UsageError;

// --asyncFileReader
class EngineFileReader final : public nvinfer1::IStreamReaderV2 {
 public:
  explicit EngineFileReader(const std::string& path) : file_(path, std::ios::binary) {
    if (!file_) throw Failure(fmt::format("Error opening engine file: {}: {}", path, std::strerror(errno)));
  }
  int64_t read(void* destination, int64_t bytes, cudaStream_t) noexcept override {
    file_.clear();
    file_.read(static_cast<char*>(destination), bytes);
    return file_.bad() ? -1 : file_.gcount();
  }
  bool seek(int64_t offset, nvinfer1::SeekPosition where) noexcept override {
    file_.clear();
    file_.seekg(offset, where == nvinfer1::SeekPosition::kSET   ? std::ios::beg
                        : where == nvinfer1::SeekPosition::kCUR ? std::ios::cur
                                                                : std::ios::end);
    return !file_.fail();
  }

 private:
  std::ifstream file_;
};

std::string target_of(const void* plan, size_t size) {
  const std::unique_ptr<nvinfer1::IHostMemory> report(lathe::planJson(plan, size));
  if (!report) fail_as_reported("The engine cannot be read");
  const auto json = nlohmann::json::parse(std::string_view(static_cast<const char*>(report->data()), report->size()));
  return json.value("target", "");
}

// Of a library besides the one that this program is linked with.
nvinfer1::IRuntime* make_other_runtime(const Options& options, TrtexecLog& log) {
  const std::string flag = "--useRuntime=" + options.use_runtime;
  const bool given = options.use_runtime == "lean" && !options.lean_library.empty();
  const std::string path = given ? options.lean_library : fmt::format("liblathe_{}.so", options.use_runtime);
  if (options.cpu_threads) throw UsageError("--cpuThreads is for --useRuntime=full");
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw Failure(fmt::format("{}: {}", flag, dlerror()));
  auto* const make = reinterpret_cast<void* (*)(void*, int32_t)>(dlsym(library, "createInferRuntime_INTERNAL"));
  if (!make) throw Failure(fmt::format("{}: {} is no runtime", flag, path));
  return static_cast<nvinfer1::IRuntime*>(make(&log, NV_TENSORRT_VERSION));
}

// Whether the library of --leanDLLPath is loaded by the runtime, rather than being it.
bool loads_lean(const Options& options) { return options.use_runtime != "lean" && !options.lean_library.empty(); }

void set_tempfiles(nvinfer1::IRuntime& runtime, const Options& options) {
  using nvinfer1::TempfileControlFlag;
  if (!options.temporary_directory.empty()) runtime.setTemporaryDirectory(options.temporary_directory.c_str());
  nvinfer1::TempfileControlFlags flags = runtime.getTempfileControlFlags();
  for (const auto& [what, how] : named_values("--tempfileControls", options.tempfile_controls)) {
    if ((what != "in_memory" && what != "temporary") || (how != "allow" && how != "deny"))
      throw UsageError("--tempfileControls: say in_memory:allow, in_memory:deny, temporary:allow or temporary:deny");
    const uint32_t bit = 1U << static_cast<uint32_t>(what == "in_memory" ? TempfileControlFlag::kALLOW_IN_MEMORY_FILES
                                                                         : TempfileControlFlag::kALLOW_TEMPORARY_FILES);
    flags = how == "allow" ? flags | bit : flags & ~bit;
  }
  if (flags != runtime.getTempfileControlFlags()) runtime.setTempfileControlFlags(flags);
}

std::unique_ptr<nvinfer1::IRuntime> make_runtime(const Options& options, TrtexecLog& log) {
  const bool full = options.use_runtime == "full";
  std::unique_ptr<nvinfer1::IRuntime> runtime(full ? nvinfer1::createInferRuntime(log)
                                                   : make_other_runtime(options, log));
  if (!runtime) fail_as_reported("Runtime creation failed");
  if (full && !lathe::setCpuThreads(*runtime, options.cpu_threads)) throw UsageError(lathe::lastError());
  refuse_errors(log, "A setting of the runtime was refused", [&] { set_tempfiles(*runtime, options); });
  if (options.version_compatible) runtime->setEngineHostCodeAllowed(true);
  if (!loads_lean(options)) return runtime;
  std::unique_ptr<nvinfer1::IRuntime> loaded(runtime->loadRuntime(options.lean_library.c_str()));
  if (!loaded) throw Failure("--leanDLLPath: the runtime could not be loaded");
  return loaded;
}

nvinfer1::ICudaEngine* deserialize(nvinfer1::IRuntime& runtime, const nvinfer1::IHostMemory* plan,
                                   const Options& options) {
  if (plan) return runtime.deserializeCudaEngine(plan->data(), plan->size());
  if (options.async_file_reader) {
    EngineFileReader reader(options.load_engine);
    return runtime.deserializeCudaEngine(reader);
  }
  if (options.use_runtime == "full" && !loads_lean(options))
    return lathe::loadEngineFile(runtime, options.load_engine.c_str());
  const FileView file(options.load_engine);
  return runtime.deserializeCudaEngine(file.data(), file.size());
}

}  // namespace

OpenedEngine open_engine(const nvinfer1::IHostMemory* plan, const Options& options, TrtexecLog& log) {
  OpenedEngine opened;
  if (plan) {
    opened.target = target_of(plan->data(), plan->size());
  } else {
    const FileView file(options.load_engine);
    opened.target = target_of(file.data(), file.size());
    log.info("Loaded engine with size: {:.6g} MiB", static_cast<double>(file.size()) / 0x1p20);
  }
  opened.runtime = make_runtime(options, log);
  for (const std::string& library : options.dynamic_plugins)
    if (!opened.runtime->getPluginRegistry().loadLibrary(library.c_str()))
      fail_as_reported(fmt::format("--dynamicPlugins: {} could not be loaded", library).c_str());
  const auto start = Clock::now();
  opened.engine.reset(deserialize(*opened.runtime, plan, options));
  if (!opened.engine) throw Failure("Engine deserialization failed");
  log.info("Engine deserialized in {:.6g} sec.", seconds_since(start));
  return opened;
}

std::string plan_version(const Options& options) {
  const FileView file(options.load_engine);
  constexpr size_t kVersionAt = 24;     // docs/plan_format.md
  target_of(file.data(), file.size());  // it is a plan
  unsigned char version[4];
  std::memcpy(version, static_cast<const char*>(file.data()) + kVersionAt, sizeof(version));
  return fmt::format("{}.{}.{}.{}", version[0], version[1], version[2], version[3]);
}

void time_deserialize(const nvinfer1::IHostMemory* plan, const Options& options, TrtexecLog& log) {
  constexpr int kRuns = 20;
  const std::unique_ptr<nvinfer1::IRuntime> runtime = make_runtime(options, log);
  double first = 0, total = 0;
  log.info("Begin deserialization engine timing...");
  for (int run = 0; run <= kRuns; ++run) {
    const auto start = Clock::now();
    const std::unique_ptr<nvinfer1::ICudaEngine> engine(deserialize(*runtime, plan, options));
    if (!engine) throw Failure("Engine deserialization failed");
    (run ? total : first) += seconds_since(start) * 1e3;
  }
  log.info("First deserialization time = {:.6g} milliseconds", first);
  log.info("Total deserialization time = {:.6g} milliseconds in {} iterations, average time = {:.6g} milliseconds",
           total, kRuns, total / kRuns);
}

// Where an engine's new weights are; an engine that was just built without any is to run with those of its model.
static std::string new_weights(const Options& options) {
  const bool lacks_weights = options.builds() && (options.strip_weights || options.strip_all_weights);
  return options.refit_model.empty() && lacks_weights && !options.skip_inference ? options.onnx : options.refit_model;
}

void refit_engine(OpenedEngine& opened, const Options& options, TrtexecLog& log) {
  const std::string model = new_weights(options);
  const bool wanted = !model.empty() || options.time_refit || options.dump_refit;
  if (!wanted) return;
  const std::unique_ptr<nvinfer1::IRefitter> refitter(nvinfer1::createInferRefitter(*opened.engine, log));
  if (!refitter) fail_as_reported("Refitter creation failed");
  if (options.dump_refit) {
    std::vector<const char*> names(static_cast<size_t>(std::max(refitter->getAllWeights(0, nullptr), 0)));
    refitter->getAllWeights(static_cast<int32_t>(names.size()), names.data());
    log.info("Refittable weights: {}", names.size());
    for (const char* name : names) log.info("  {}", name);
  }
  if (model.empty()) {
    if (options.time_refit) throw UsageError("--timeRefit needs the new weights: --refitFromOnnx=FILE");
    return;
  }
  const std::unique_ptr<nvonnxparser::IParserRefitter> parser(nvonnxparser::createParserRefitter(*refitter, log));
  if (!parser) fail_as_reported("Parser refitter creation failed");
  const auto start = Clock::now();
  if (!parser->refitFromFile(model.c_str()) || !refitter->refitCudaEngine()) throw Failure("Engine refit failed");
  log.info("Engine refitted in {:.6g} sec.", seconds_since(start));
  if (!options.time_refit) return;
  constexpr int kRuns = 10;
  const auto timing = Clock::now();
  for (int run = 0; run < kRuns; ++run)
    if (!parser->refitFromFile(model.c_str()) || !refitter->refitCudaEngine()) throw Failure("Engine refit failed");
  const double total = seconds_since(timing) * 1e3;
  log.info("Total refit time = {:.6g} milliseconds in {} iterations, average time = {:.6g} milliseconds", total, kRuns,
           total / kRuns);
}

void set_weight_budget(nvinfer1::ICudaEngine& engine, const Options& options, TrtexecLog& log) {
  const std::string& text = options.weight_budget;
  if (text.empty()) return;
  const int64_t streamable = engine.getStreamableWeightsSize();
  int64_t budget = streamable;
  if (text == "-1") {
    budget = engine.getWeightStreamingAutomaticBudget();
  } else if (text.ends_with('%')) {
    const double percent = real_number("--weightStreamingBudget", std::string_view(text).substr(0, text.size() - 1));
    if (percent < 0 || percent > 100) throw UsageError("--weightStreamingBudget: per cent are from 0 to 100");
    budget = static_cast<int64_t>(percent / 100 * static_cast<double>(streamable));
  } else if (text != "-2") {
    const bool bare = text.find_first_not_of("0123456789.") == std::string::npos;
    budget = static_cast<int64_t>(size_of("--weightStreamingBudget", bare ? text + "B" : text));
  }
  if (streamable == 0)
    return log.warn("--weightStreamingBudget has no effect: no weights of this engine can be streamed.");
  if (!engine.setWeightStreamingBudgetV2(budget)) fail_as_reported("The weight streaming budget was refused");
  log.info("Weight streaming budget: {} of {} bytes", budget, streamable);
}

}  // namespace lathe::trtexec
