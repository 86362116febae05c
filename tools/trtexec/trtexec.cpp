// SPDX-License-Identifier: Apache-2.0
#include "trtexec/trtexec.h"

#include <dlfcn.h>

#include <cstdlib>
#include <optional>

#include "NvInferPlugin.h"
#include "cli/failure.h"
#include "cli/tensor_file.h"
#include "lathe.h"
#include "trtexec/build.h"
#include "trtexec/engine.h"
#include "trtexec/flags.h"
#include "trtexec/report.h"
#include "trtexec/session.h"

namespace lathe::trtexec {
namespace {

using cli::Failure;
using cli::UsageError;

enum class Verdict { running, passed, failed };

void print_verdict(Verdict verdict, const std::string& command) {
  const char* word = verdict == Verdict::running ? "RUNNING" : verdict == Verdict::passed ? "PASSED" : "FAILED";
  std::fflush(stderr);
  fmt::print("&&&& {} TensorRT.trtexec [TensorRT v{}] [b{}] # {}\n", word, getInferLibVersion(), NV_TENSORRT_BUILD,
             command);
  std::fflush(stdout);
}

QuerySettings settings_of(const Options& options) {
  const int generation = options.generation ? options.generation : getInferLibVersion() / 10000;
  const bool eleven = generation >= 11;
  QuerySettings settings;
  settings.transfers = options.transfers.value_or(!eleven);
  settings.cuda_graph = options.cuda_graph.value_or(eleven);
  settings.spin_wait = options.spin_wait.value_or(eleven);
  settings.expose_dma = options.expose_dma;
  return settings;
}

void load_plugins(const Options& options, TrtexecLog& log) {
  log.info("Loading standard plugins");
  if (!initLibNvInferPlugins(&log, "")) throw Failure("The standard plugins could not be loaded");
  for (const std::string& library : options.static_plugins) {
    log.info("Loading supplied plugin library: {}", library);
    if (!dlopen(library.c_str(), RTLD_LAZY | RTLD_GLOBAL))
      throw Failure(fmt::format("Could not load plugin library: {}: {}", library, dlerror()));
  }
}

void print_build_routes(TrtexecLog& log) {
  const std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(log));
  const std::unique_ptr<nvinfer1::IBuilderConfig> config(builder ? builder->createBuilderConfig() : nullptr);
  if (!config) fail_as_reported("Config creation failed");
  const char* routes = config->getAllBuildRoutes();
  log.info("Build routes: {}", routes && *routes ? routes : "none");
}

// The plan that was built and saved; nothing where an engine is loaded.
std::unique_ptr<nvinfer1::IHostMemory> make_plan(const Options& options, TrtexecLog& log) {
  if (!options.builds()) return nullptr;
  if (!options.save_engine.empty()) cli::check_writable(options.save_engine);
  std::unique_ptr<nvinfer1::IHostMemory> plan = build_engine(options, log);
  if (!options.save_engine.empty())
    cli::write_file(options.save_engine, {static_cast<const char*>(plan->data()), plan->size()});
  return plan;
}

// A GPU engine runs on the device of --device.
void measure_engine(OpenedEngine& opened, const GpuContext* gpu, const Options& options, const QuerySettings& settings,
                    TrtexecLog& log, bool& accurate) {
  if (opened.runs_on_gpu() && !gpu)
    throw Failure(fmt::format("The engine is for {}, but there is no GPU", opened.target));
  if (!opened.runs_on_gpu())
    log.info("The engine runs on the CPU ({}); inputs and outputs are used in place.", opened.target);
  MeasuringSession session(*opened.engine, opened.runs_on_gpu() ? gpu : nullptr, settings, options, log);
  session.prepare();
  report_layers(*opened.engine, session.context(), options, log);
  session.measure();
  session.profile_layers();
  session.save_debug_tensors();
  accurate = session.compare();
}

// Whether all went well.
bool run_engine(const Options& options, const GpuContext* gpu, const QuerySettings& settings, TrtexecLog& log) {
  const std::unique_ptr<nvinfer1::IHostMemory> plan = make_plan(options, log);
  if (options.time_deserialize) {
    time_deserialize(plan.get(), options, log);
    return true;
  }
  OpenedEngine opened = open_engine(plan.get(), options, log);
  set_weight_budget(*opened.engine, options, log);
  refit_engine(opened, options, log);
  if (options.dump_optimization_profile) print_profiles(*opened.engine, log);
  if (options.skip_inference) {
    report_layers(*opened.engine, nullptr, options, log);
    log.info("Skipped inference phase since --skipInference is added.");
    return true;
  }
  bool accurate = true;
  measure_engine(opened, gpu, options, settings, log, accurate);
  if (!accurate) log.error("Outputs differ from those of --loadRefOutputs by more than --accuracyThreshold.");
  return accurate;
}

bool run_options(Options& options, TrtexecLog& log) {
  if (!options.help.empty()) {
    fmt::print("{}", options.help == "markdown" ? help_table() : help_text());
    return true;
  }
  log.set_verbose(options.verbose);
  for (const std::string& warning : options.warnings) log.warn("{}", warning);
  if (!options.help_route.empty()) return print_build_routes(log), true;
  if (options.plan_version_only) {
    log.info("Plan was created with TensorRT version {}", plan_version(options));
    return true;
  }
  std::string why;
  const CudaCalls* const calls = cuda_calls(why);
  if (calls && options.device >= gpu_count(*calls))
    throw UsageError(fmt::format("Cannot find device ID {}!", options.device));
  const QuerySettings settings = settings_of(options);
  print_options(options, settings, log);
  print_devices(calls, why, options, log);
  const int32_t version = getInferLibVersion();
  log.info("TensorRT version: {}.{}.{} (Lathe {})", version / 10000, version / 100 % 100, version % 100,
           lathe::latheVersion());
  if (options.target.empty() && !std::getenv("LATHE_TARGET"))
    options.target = calls ? fmt::format("cuda:{}", options.device) : "cpu";
  load_plugins(options, log);
  std::optional<GpuContext> gpu;
  if (calls && (options.target.starts_with("cuda") || !options.load_engine.empty() || options.target.empty()))
    gpu.emplace(*calls, options.device);
  return run_engine(options, gpu ? &*gpu : nullptr, settings, log);
}

}  // namespace

int run_trtexec(const std::string& program, const std::vector<std::string>& arguments) noexcept {
  std::string command = program;
  bool good = false;
  try {
    for (const std::string& argument : arguments) command += " " + argument;
    print_verdict(Verdict::running, command);
    TrtexecLog log;
    try {
      Options options = parse_words(arguments);
      good = run_options(options, log);
    } catch (const UsageError& error) {
      log.error("{}", error.what());
      log.info("`{} --help` shows all flags.", program);
    } catch (const std::bad_alloc&) {
      log.error("Out of memory.");
    } catch (const std::exception& error) {
      log.error("{}", error.what());
    }
    print_verdict(good ? Verdict::passed : Verdict::failed, command);
  } catch (...) {  // not even the last line could be printed
    good = false;
  }
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace lathe::trtexec
