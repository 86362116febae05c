// SPDX-License-Identifier: Apache-2.0
#include "trtexec/build.h"

#include <unistd.h>

#include "cli/console.h"
#include "cli/failure.h"
#include "cli/tensor_file.h"
#include "lathe.h"

namespace lathe::trtexec {
namespace {

using cli::Clock;
using cli::Failure;
using cli::seconds_since;

// The timing cache of a file, which is written back when the build is done.
class TimingCacheFile {
 public:
  TimingCacheFile(const Options& options, nvinfer1::IBuilderConfig& config, TrtexecLog& log)
      : path_(options.builder_cache ? options.timing_cache : "") {
    if (path_.empty()) return;
    std::string bytes;
    if (access(path_.c_str(), F_OK) == 0) {
      bytes = cli::read_file(path_);
      log.info("Loaded {} bytes of timing cache from {}", bytes.size(), path_);
    } else {
      log.warn("Could not read timing cache from: {}. A new timing cache will be generated and written.", path_);
    }
    cache_.reset(config.createTimingCache(bytes.data(), bytes.size()));
    if (!cache_) {
      log.warn("{} is no timing cache of this version; a new one takes its place.", path_);
      cache_.reset(config.createTimingCache(nullptr, 0));
    }
    if (!cache_ || !config.setTimingCache(*cache_, false)) fail_as_reported("Setting the timing cache failed");
  }
  void write(TrtexecLog& log) const {
    const std::unique_ptr<nvinfer1::IHostMemory> bytes(cache_ ? cache_->serialize() : nullptr);
    if (!bytes) return;
    cli::write_file(path_, {static_cast<const char*>(bytes->data()), bytes->size()});
    log.info("Saved {} bytes of timing cache to {}", bytes->size(), path_);
  }

 private:
  std::string path_;
  std::unique_ptr<nvinfer1::ITimingCache> cache_;
};

void set_parser_flags(nvonnxparser::IParser& parser, const Options& options) {
  using nvonnxparser::OnnxParserFlag;
  if (options.plugin_instance_norm) parser.clearFlag(OnnxParserFlag::kNATIVE_INSTANCENORM);
  if (options.plugin_override) parser.setFlag(OnnxParserFlag::kENABLE_PLUGIN_OVERRIDE);
  if (options.uint8_dla) parser.setFlag(OnnxParserFlag::kENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA);
  if (options.report_capability_dla) parser.setFlag(OnnxParserFlag::kREPORT_CAPABILITY_DLA);
  if (options.adjust_for_dla) parser.setFlag(OnnxParserFlag::kADJUST_FOR_DLA);
}

void parse_model(nvonnxparser::IParser& parser, const Options& options, TrtexecLog& log) {
  log.info("Start parsing network model.");
  const auto start = Clock::now();
  const auto verbosity = options.verbose ? nvinfer1::ILogger::Severity::kVERBOSE : nvinfer1::ILogger::Severity::kINFO;
  if (!parser.parseFromFile(options.onnx.c_str(), static_cast<int>(verbosity))) {
    for (int i = 0; i < parser.getNbErrors(); ++i) {
      const nvonnxparser::IParserError& error = *parser.getError(i);
      if (error.node() >= 0)
        log.error("Node {} ({}, {}): {}", error.node(), error.nodeName(), error.nodeOperator(), error.desc());
    }
    log.error("Failed to parse onnx file");
    throw Failure("Parsing model failed");
  }
  log.info("Finished parsing network model. Parse time: {:.6g}", seconds_since(start));
}

// Plugin libraries that the plan is to hold: those named, and those that the parser has used.
void store_plugins(nvinfer1::IBuilderConfig& config, const nvonnxparser::IParser& parser, const Options& options) {
  std::vector<const char*> paths;
  for (const std::string& path : options.plugins_to_serialize) paths.push_back(path.c_str());
  int64_t count = 0;
  const char* const* used =
      options.version_compatible && options.store_parsed_plugins ? parser.getUsedVCPluginLibraries(count) : nullptr;
  for (int64_t i = 0; used && i < count; ++i) paths.push_back(used[i]);
  if (!paths.empty()) config.setPluginsToSerialize(paths.data(), static_cast<int32_t>(paths.size()));
}

}  // namespace

void fail_as_reported(const char* what) {
  const std::string reason = lathe::lastError();
  throw Failure(reason.empty() ? std::string(what) : fmt::format("{}: {}", what, reason));
}

std::unique_ptr<nvinfer1::IHostMemory> build_engine(const Options& options, TrtexecLog& log) {
  const auto start = Clock::now();
  const std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(log));
  if (!builder) fail_as_reported("Builder creation failed");
  const std::unique_ptr<nvinfer1::INetworkDefinition> network(builder->createNetworkV2(0));
  if (!network) fail_as_reported("Network creation failed");
  const std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, log));
  if (!parser) fail_as_reported("Parser creation failed");
  const std::unique_ptr<nvinfer1::IBuilderConfig> config(builder->createBuilderConfig());
  if (!config) fail_as_reported("Config creation failed");
  set_parser_flags(*parser, options);
  parse_model(*parser, options, log);
  refuse_errors(log, "A setting of the build was refused", [&] {
    set_network(*network, options);
    set_config(*config, options);
    set_layers(*config, *network, options, log);
    store_plugins(*config, *parser, options);
  });
  add_profiles(*builder, *config, *network, options, log);
  const TimingCacheFile cache(options, *config, log);
  std::unique_ptr<nvinfer1::IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
  if (!plan) throw Failure("Engine could not be created from network");
  cache.write(log);
  log.info("Engine built in {:.6g} sec.", seconds_since(start));
  log.info("Created engine with size: {:.6g} MiB", static_cast<double>(plan->size()) / 0x1p20);
  return plan;
}

}  // namespace lathe::trtexec
